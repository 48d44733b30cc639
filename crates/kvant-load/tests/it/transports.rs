//! Transports other than plain TCP.

use crate::harness::{Setup, ensure, experiment, text};
use crate::server::{Behaviour, CHUNKED_RESPONSE, Server};
use crate::tls;
use kvant_load::{Errors, Target};
use std::time::Duration;

const AT_ONCE: Behaviour = Behaviour::After(Duration::ZERO);

/// Runs load and checks that almost all of it is completed.
fn check(setup: &Setup) -> Result<(), String> {
    let outcome = setup.run(200.0, Duration::from_millis(500));
    assert_eq!(outcome.total.errors, Errors::default(), "{}", text(&outcome));
    ensure!(outcome.total.completed >= 80, "{}", text(&outcome));
    Ok(())
}

#[test]
fn tls_works_with_any_certificate_and_with_a_ca_file() {
    let (config, pem) = tls::server_config();
    let server = Server::start_tls(AT_ONCE, config);
    let setup = Setup::new(format!("https://{}/", server.address())).connections(4).threads(2);
    experiment(|| check(&setup));
    experiment(|| check(&setup.clone().ca_pem(pem.clone())));
}

#[test]
fn connections_with_an_untrusted_certificate_fail_to_open() {
    let (config, _) = tls::server_config();
    let (_, other_pem) = tls::server_config();
    let server = Server::start_tls(AT_ONCE, config);
    let setup = Setup::new(format!("https://{}/", server.address())).ca_pem(other_pem);
    let outcome = setup.run(50.0, Duration::from_millis(1_500));
    assert_eq!((outcome.total.completed, outcome.backlog), (0, 75), "{}", text(&outcome));
    assert!((1..=20).contains(&outcome.total.errors.connect), "{}", text(&outcome));
    assert_eq!(server.counts.requests(), 0);
}

#[test]
fn the_reason_of_a_failing_handshake_is_reported_beforehand() {
    let wait_max = Duration::from_secs(30);
    let reason = |server: &Server, ca_pem: Option<&str>| {
        let target = Target::parse(&format!("https://{}/", server.address())).unwrap();
        let target = target.resolve().unwrap().reach(wait_max).unwrap();
        target.shake_hands(ca_pem.map(str::as_bytes), wait_max)
    };
    let (config, pem) = tls::server_config();
    let (_, other_pem) = tls::server_config();
    let server = Server::start_tls(AT_ONCE, config);
    reason(&server, None).unwrap();
    reason(&server, Some(&pem)).unwrap();
    let unbelieved = reason(&server, Some(&other_pem)).unwrap_err();
    assert!(unbelieved.message().contains("certificate"), "{unbelieved}");
    let plain = Server::start(AT_ONCE);
    let without = Target::parse(&plain.url()).unwrap().resolve().unwrap();
    without.shake_hands(None, wait_max).unwrap();
}

#[test]
fn tls_responses_that_arrive_byte_by_byte_are_parsed() {
    let (config, _) = tls::server_config();
    let server = Server::start_tls(
        Behaviour::Bytewise(CHUNKED_RESPONSE, Duration::from_micros(100)),
        config,
    );
    let setup = Setup::new(format!("https://{}/", server.address())).connections(20);
    experiment(|| check(&setup));
}

/// Regression: TLS takes 64 KiB at a time, and the rest of a request waited until a time-out.
#[test]
fn long_requests_are_sent_whole_over_tls() {
    let (config, _) = tls::server_config();
    let server = Server::start_tls(AT_ONCE, config);
    let setup = Setup::new(format!("https://{}/", server.address()))
        .connections(2)
        .header("X", "x".repeat(200_000));
    experiment(|| {
        let outcome = setup.run(20.0, Duration::from_millis(500));
        assert_eq!(outcome.total.errors, Errors::default(), "{}", text(&outcome));
        ensure!(outcome.total.completed >= 5, "{}", text(&outcome));
        Ok(())
    });
}

#[test]
fn unix_sockets_work() {
    let directory = std::env::temp_dir().join(format!("kvant-load-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let path = directory.join("it.sock");
    let server = Server::start_unix(AT_ONCE, &path);
    let host = path.to_str().unwrap().replace('/', "%2F");
    let setup = Setup::new(format!("http+unix://{host}/v0")).connections(4);
    experiment(|| check(&setup));
    drop(server);
    std::fs::remove_dir_all(&directory).unwrap();
}

#[test]
fn after_an_address_that_refuses_the_next_is_used() {
    // `localhost` may resolve to ::1 first, where no server listens.
    let server = Server::start(AT_ONCE);
    let setup = Setup::new(format!("http://localhost:{}/", server.address().port())).connections(2);
    experiment(|| {
        let outcome = setup.run(200.0, Duration::from_millis(500));
        ensure!(outcome.total.completed >= 80, "{}", text(&outcome));
        Ok(())
    });
}
