//! Servers that fail: each failure counts once, the rate is kept, and no thread spins.

use crate::core::{GET, config, instant, server, target};
use crate::harness::{self, MS, Setup, check_no_spin, ensure, experiment, run, text};
use crate::server::{Behaviour, Place, Server};
use kvant_env::Env;
use kvant_load::source::fixed::FixedSource;
use kvant_load::{Load, LoadConfig, OpNames, Outcome};
use std::net::{Ipv4Addr, TcpListener};
use std::time::Duration;

#[test]
fn a_server_that_never_responds_causes_timeouts_and_a_backlog() {
    experiment(|| {
        let server = Server::start(Behaviour::Silent);
        let setup = Setup::new(server.url()).connections(4).timeout(Duration::from_millis(250));
        let outcome = setup.run(100.0, Duration::from_millis(1_600));
        let total = &outcome.total;
        assert_eq!(total.completed, 0, "{}", text(&outcome));
        assert_eq!((total.errors.read, total.errors.write, total.errors.status), (0, 0, 0));
        // Each connection times out every 250 ms and is reopened: at most 6 times in 1.6 s.
        assert!(total.errors.timeout <= 24, "{}", text(&outcome));
        ensure!(total.errors.timeout >= 16, "{}", text(&outcome));
        // Timeouts are in the histograms with the time they waited.
        assert!(outcome.service().min_ns() >= 249 * MS, "{}", outcome.service().min_ns());
        assert!(outcome.response().max_ns() >= outcome.service().max_ns());
        assert!(outcome.backlog >= 130, "{}", text(&outcome));
        // The last one may have been closed before the server accepted it.
        let requests = server.counts.requests();
        assert!(requests <= total.sent, "{requests} requests, {}", text(&outcome));
        check_no_spin(&outcome)
    });
}

/// The connection of every 10th request is dropped.
fn drops(place: Place) -> Result<(Outcome, Server), String> {
    let server = Server::start(Behaviour::Drop { every: 10, place });
    let outcome = Setup::new(server.url()).connections(8).run(500.0, Duration::from_secs(1));
    let errors = outcome.total.errors;
    assert_eq!((errors.timeout, errors.status, errors.connect), (0, 0, 0), "{}", text(&outcome));
    check_no_spin(&outcome)?;
    // The plan is kept although connections are lost.
    ensure!(outcome.backlog + outcome.in_flight <= 50, "{}", text(&outcome));
    let connections = server.counts.connections();
    ensure!(connections > 40, "{connections} connections");
    Ok((outcome, server))
}

#[test]
fn each_connection_dropped_before_or_within_the_response_is_an_error() {
    for place in [Place::Before, Place::Within] {
        experiment(|| {
            let (outcome, server) = drops(place)?;
            let errors = outcome.total.errors;
            let failed = errors.read + errors.write;
            let dropped = server.counts.dropped();
            assert!(failed <= dropped, "{place:?}: {dropped} dropped, {}", text(&outcome));
            assert!(
                dropped <= failed + outcome.in_flight,
                "{place:?}: {dropped} dropped, {}",
                text(&outcome)
            );
            ensure!(failed >= 40, "{place:?}: {}", text(&outcome));
            Ok(())
        });
    }
}

#[test]
fn a_server_that_closes_after_the_response_causes_few_errors() {
    experiment(|| {
        let (outcome, server) = drops(Place::After)?;
        let errors = outcome.total.errors;
        let dropped = server.counts.dropped();
        // The response counts. A request sent before the close arrives fails.
        assert!(errors.read + errors.write <= dropped, "{}", text(&outcome));
        ensure!(errors.read + errors.write <= 15, "{}", text(&outcome));
        ensure!(dropped >= 40, "{dropped} dropped");
        Ok(())
    });
}

#[test]
fn a_half_closed_connection_is_replaced() {
    experiment(|| {
        let server = Server::start(Behaviour::HalfClose { responses: 5 });
        let outcome = Setup::new(server.url()).connections(4).run(200.0, Duration::from_secs(1));
        let errors = outcome.total.errors;
        assert_eq!(errors.timeout, 0, "{}", text(&outcome));
        check_no_spin(&outcome)?;
        ensure!(outcome.total.completed >= 160, "{}", text(&outcome));
        ensure!(errors.read + errors.write <= 20, "{}", text(&outcome));
        let connections = server.counts.connections();
        ensure!(connections >= 30, "{connections} connections");
        Ok(())
    });
}

#[test]
fn a_half_close_instead_of_a_response_causes_errors_and_no_spin() {
    experiment(|| {
        let server = Server::start(Behaviour::HalfClose { responses: 0 });
        let outcome = Setup::new(server.url()).connections(4).run(1_000.0, Duration::from_secs(1));
        let errors = outcome.total.errors;
        assert_eq!(outcome.total.completed, 0);
        // Connections without a response back off, 1 ms to 1 s: ten attempts a second, not
        // thousands.
        assert!(errors.read <= 80, "{}", text(&outcome));
        assert!(server.counts.connections() <= 100, "{}", server.counts.connections());
        ensure!(errors.read > 0, "{}", text(&outcome));
        check_no_spin(&outcome)
    });
}

#[test]
fn connects_to_a_server_that_refuses_back_off() {
    // A free port, where no server listens.
    let address = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap();
    experiment(|| {
        let outcome = Setup::new(format!("http://{address}/"))
            .connections(4)
            .run(100.0, Duration::from_millis(1_500));
        let errors = outcome.total.errors;
        assert_eq!((outcome.total.completed, outcome.backlog), (0, 150), "{}", text(&outcome));
        // The first attempts precede the plan.
        assert!((1..=80).contains(&errors.connect), "{}", text(&outcome));
        assert_eq!(errors.read + errors.write + errors.timeout, 0, "{}", text(&outcome));
        check_no_spin(&outcome)
    });
}

/// Regression: the end of a connection that came together with its opening was overlooked, and a
/// planned request was sent on it and lost.
#[test]
fn a_connection_that_the_server_closes_at_once_gets_no_request() {
    experiment(|| {
        let closing = server(drop);
        let targets = vec![target(instant()), target(closing)];
        let config = LoadConfig { targets, ..config(closing, 1, 64) };
        let ops = OpNames::default();
        let source = FixedSource::new(&[GET.to_vec(), GET.to_vec()], ops.intern("GET"), false, 1);
        let mut load = Load::start(config, vec![Box::new(source)], ops, Env::posix()).unwrap();
        let outcome = harness::run(&mut load, 400.0, Duration::from_secs(1));
        // A request that is sent between the opening and the end is lost.
        ensure!(outcome.total.errors.read <= 5, "{}", text(&outcome));
        ensure!(outcome.total.completed >= 300, "{}", text(&outcome));
        Ok(())
    });
}

#[test]
fn the_backlog_of_a_phase_is_not_in_the_next() {
    experiment(|| {
        let server = Server::start(Behaviour::After(Duration::from_millis(300)));
        let mut load = Setup::new(server.url()).connections(3).start().unwrap();
        let overload = run(&mut load, 100.0, Duration::from_millis(700));
        assert!(overload.backlog >= 50, "{}", text(&overload));
        let next = run(&mut load, 4.0, Duration::from_secs(1));
        load.stop();
        let connections = server.counts.connections();
        assert!(connections <= 3, "{connections}: connections outlive phases");
        // Behind the backlog of the first phase they would wait for seconds.
        ensure!(next.response().max_ns() < 500 * MS, "{} us", next.response().max_ns() / 1_000);
        ensure!(next.total.completed >= 2, "{}", text(&next));
        Ok(())
    });
}
