//! Servers with known latency: what is reported is what can be computed.

use crate::harness::{MS, Setup, check_no_spin, text};
use crate::server::{Behaviour, CHUNKED_ANSWER, Server};
use kvant_load::Histogram;
use std::time::Duration;

/// Whether `percent` of the values lie where they should, within a tenth.
fn check_percentile(histogram: &Histogram, percent: f64, expected_ns: u64, what: &str) {
    let met_ns = histogram.percentile_ns(percent);
    let is_near = met_ns.abs_diff(expected_ns) <= expected_ns / 10;
    assert!(
        is_near,
        "{what}: p{percent} is {} us, not {} us",
        met_ns / 1_000,
        expected_ns / 1_000
    );
}

#[test]
fn a_server_that_answers_after_20_ms_has_that_latency() {
    let server = Server::start(Behaviour::After(Duration::from_millis(20)));
    let outcome = Setup::new(server.url())
        .connections(32)
        .run(200.0, Duration::from_millis(1_500));
    assert_eq!(outcome.total.errors, kvant_load::Errors::default());
    assert!(outcome.backlog + outcome.in_flight <= 32, "{}", text(&outcome));
    for histogram in [outcome.response(), outcome.service()] {
        // Three digits: the bucket of 20 ms may begin a thousandth below.
        assert!(
            histogram.min_ns() >= 20 * MS - 20 * MS / 1_000,
            "{}",
            histogram.min_ns()
        );
        check_percentile(&histogram, 50.0, 20 * MS, "latency");
    }
    assert_eq!(server.counts.requests(), outcome.total.sent);
    assert_eq!(server.counts.connections(), 32);
    check_no_spin(&outcome);
}

/// 0.4 s without answers in 2 s, and 2 s of load.
///
/// A share `f = S / P = 0.2` of all requests is planned within the stall, evenly, and waits from `S` (planned at its start) to
/// nothing (planned at its end). So `P(response > x) = f (1 - x / S)`, and the percentile `p` over `1 - f` is
/// `x(p) = S (1 - (1 - p) / f)`: `x(0.99) = 0.95 S = 380 ms`, `x(0.9) = 0.5 S = 200 ms`; below 0.8 there is no wait.
const STALL: Behaviour = Behaviour::Stall {
    period: Duration::from_millis(2_000),
    from: Duration::from_millis(800),
    to: Duration::from_millis(1_200),
};
const STALL_NS: u64 = 400 * MS;
const PERIOD: Duration = Duration::from_millis(2_000);

fn check_response_shows_the_stall(response: &Histogram) {
    check_percentile(response, 99.0, STALL_NS * 95 / 100, "response");
    check_percentile(response, 90.0, STALL_NS / 2, "response");
    assert!(response.max_ns() >= STALL_NS * 9 / 10, "{}", response.max_ns());
    assert!(
        response.percentile_ns(60.0) < STALL_NS / 20,
        "{}",
        response.percentile_ns(60.0)
    );
}

#[test]
fn a_stall_is_in_the_response_time_of_all_that_was_planned_within_it() {
    let server = Server::start(STALL);
    let outcome = Setup::new(server.url()).connections(2).run(1_000.0, PERIOD);
    check_response_shows_the_stall(&outcome.response());
    // Two requests met the stall; the others were sent when it was over: 2 of 2,000 are above p99.9 and no more.
    let service = outcome.service();
    assert!(
        service.percentile_ns(99.0) < STALL_NS / 8,
        "{} us",
        service.percentile_ns(99.0) / 1_000
    );
    assert!(
        service.max_ns() > STALL_NS * 8 / 10,
        "{} us",
        service.max_ns() / 1_000
    );
    // And it was not the generator that was late.
    let lag_ns = outcome.total.send_lag.percentile_ns(99.0);
    assert!(lag_ns < STALL_NS / 8, "{} us", lag_ns / 1_000);
    assert!(
        outcome.seconds.iter().map(|second| second.backlog).max() > Some(100),
        "{:?}",
        outcome.seconds
    );
    check_no_spin(&outcome);
}

#[test]
fn a_stall_is_in_the_service_time_too_when_there_are_connections_enough() {
    let server = Server::start(STALL);
    let outcome = Setup::new(server.url()).connections(300).run(500.0, PERIOD);
    check_response_shows_the_stall(&outcome.response());
    check_response_shows_the_stall(&outcome.service());
    assert_eq!(outcome.total.errors, kvant_load::Errors::default());
}

#[test]
fn a_stall_is_nearly_invisible_in_a_closed_loop() {
    let server = Server::start(STALL);
    let setup = Setup::new(server.url());
    let mut load = setup.start().unwrap();
    let phase = kvant_load::Phase {
        rate: kvant_load::Rate::Closed,
        warmup: Duration::ZERO,
        duration: PERIOD,
        request_count_max: None,
    };
    let outcome = load.run(&phase, &mut |_| true).unwrap();
    load.stop();
    assert!(outcome.total.completed > 1_000, "{}", text(&outcome));
    assert!(outcome.response().percentile_ns(99.9) < STALL_NS / 8);
    assert!(outcome.response().max_ns() > STALL_NS * 8 / 10);
    assert_eq!(outcome.total.planned, outcome.total.sent);
    assert!(
        outcome.in_flight <= 1 && outcome.backlog == 0,
        "{}",
        text(&outcome)
    );
}

#[test]
fn what_is_not_answered_at_the_end_is_counted_with_its_age() {
    // The stall begins after 0.6 s and lasts longer than the run.
    let server = Server::start(Behaviour::Stall {
        period: Duration::from_secs(60),
        from: Duration::from_millis(600),
        to: Duration::from_secs(60),
    });
    let outcome = Setup::new(server.url())
        .connections(10)
        .run(1_000.0, Duration::from_secs(1));
    assert_eq!(outcome.in_flight, 10, "{}", text(&outcome));
    assert!((380..=390).contains(&outcome.backlog), "{}", text(&outcome));
    // They are planned evenly over the last 0.4 s.
    check_percentile(&outcome.unanswered, 50.0, 200 * MS, "age");
    check_percentile(&outcome.unanswered, 100.0, 400 * MS, "age");
    assert!(outcome.response().percentile_ns(99.0) < 100 * MS);
    check_percentile(
        &outcome.response_with_unanswered(),
        99.0,
        390 * MS,
        "response with the unanswered",
    );
}

#[test]
fn answers_that_come_byte_by_byte_are_understood() {
    let distance = Duration::from_micros(100);
    let server = Server::start(Behaviour::Bytewise(CHUNKED_ANSWER, distance));
    let outcome = Setup::new(server.url())
        .connections(20)
        .run(100.0, Duration::from_secs(1));
    let total = &outcome.total;
    assert_eq!(total.errors, kvant_load::Errors::default());
    assert!(total.completed >= 80, "{}", text(&outcome));
    let answer_bytes = CHUNKED_ANSWER.len() as u64;
    // What is in flight has been read in part.
    let read_bytes = total.completed * answer_bytes..=(total.completed + outcome.in_flight) * answer_bytes;
    assert!(
        read_bytes.contains(&total.read_bytes),
        "{} bytes, {}",
        total.read_bytes,
        text(&outcome)
    );
    let least_ns = (answer_bytes - 1) * distance.as_nanos() as u64;
    assert!(
        outcome.service().min_ns() >= least_ns - least_ns / 100,
        "{}",
        outcome.service().min_ns()
    );
}

#[test]
fn pipelined_requests_are_answered_each() {
    let server = Server::start(Behaviour::After(Duration::from_millis(1)));
    let outcome = Setup::new(server.url())
        .connections(4)
        .pipeline(8)
        .run(2_000.0, Duration::from_secs(1));
    assert_eq!(outcome.total.errors, kvant_load::Errors::default());
    assert!(outcome.total.completed > 1_800, "{}", text(&outcome));
    assert_eq!(server.counts.requests(), outcome.total.sent);
}
