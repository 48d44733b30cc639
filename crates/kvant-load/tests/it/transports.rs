//! The ways to a server that are not plain TCP.

use crate::harness::{Setup, ensure, experiment, text};
use crate::server::{Behaviour, CHUNKED_ANSWER, Server};
use crate::tls;
use kvant_load::{Errors, Target};
use std::time::Duration;

const AT_ONCE: Behaviour = Behaviour::After(Duration::ZERO);

/// Load that must be answered, all but a little on a busy machine.
fn check(setup: &Setup) -> Result<(), String> {
    let outcome = setup.run(200.0, Duration::from_millis(500));
    assert_eq!(outcome.total.errors, Errors::default(), "{}", text(&outcome));
    ensure!(outcome.total.completed >= 80, "{}", text(&outcome));
    Ok(())
}

#[test]
fn tls_works_with_any_certificate_and_with_one_that_is_asked_for() {
    let (config, pem) = tls::server_config();
    let server = Server::start_tls(AT_ONCE, config);
    let setup = Setup::new(format!("https://{}/", server.address())).connections(4).threads(2);
    experiment(|| check(&setup));
    experiment(|| check(&setup.clone().ca_pem(pem.clone())));
}

#[test]
fn a_certificate_that_is_not_believed_is_a_connection_that_cannot_be_opened() {
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
fn the_reason_for_which_no_tls_can_be_had_is_told_beforehand() {
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
fn tls_answers_that_come_byte_by_byte_are_understood() {
    let (config, _) = tls::server_config();
    let server =
        Server::start_tls(Behaviour::Bytewise(CHUNKED_ANSWER, Duration::from_micros(100)), config);
    let setup = Setup::new(format!("https://{}/", server.address())).connections(20);
    experiment(|| check(&setup));
}

#[test]
fn unix_sockets_are_spoken_to() {
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
fn an_address_that_refuses_is_passed_over_for_the_next() {
    // `localhost` may be ::1 first, where nobody listens.
    let server = Server::start(AT_ONCE);
    let setup = Setup::new(format!("http://localhost:{}/", server.address().port())).connections(2);
    experiment(|| {
        let outcome = setup.run(200.0, Duration::from_millis(500));
        ensure!(outcome.total.completed >= 80, "{}", text(&outcome));
        Ok(())
    });
}
