//! Many connections.

use crate::harness::{Setup, text};
use crate::server::{Behaviour, Server};
use kvant_load::Errors;
use std::time::Duration;

#[test]
fn a_thousand_connections_are_all_used() {
    // 1,024 connections, each busy for 0.5 s: 2,048 requests a second need all of them.
    let server = Server::start(Behaviour::After(Duration::from_millis(500)));
    let setup = Setup::new(server.url()).connections(1_024).threads(3);
    let outcome = setup.run(1_900.0, Duration::from_millis(1_500));
    assert_eq!(outcome.total.errors, Errors::default(), "{}", text(&outcome));
    assert_eq!(server.counts.connections(), 1_024);
    assert!(outcome.total.completed >= 1_500, "{}", text(&outcome));
    assert!(
        outcome.response().percentile_ns(50.0) < 700_000_000,
        "{}",
        text(&outcome)
    );
}
