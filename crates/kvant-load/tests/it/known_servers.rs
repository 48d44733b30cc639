//! Servers with known latency: the reported figures equal the computed ones.

use crate::harness::{MS, Setup, check_no_spin, ensure, experiment, text};
use crate::server::{Behaviour, CHUNKED_RESPONSE, Server};
use kvant_load::{Errors, Histogram, Outcome, Phase, Rate};
use std::time::Duration;

/// Checks that a percentile is within a tenth of the expected value.
fn check_percentile(
    histogram: &Histogram,
    percent: f64,
    expected_ns: u64,
    what: &str,
) -> Result<(), String> {
    let met_ns = histogram.percentile_ns(percent);
    let is_near = met_ns.abs_diff(expected_ns) <= expected_ns / 10;
    ensure!(is_near, "{what}: p{percent} is {} us, not {} us", met_ns / 1_000, expected_ns / 1_000);
    Ok(())
}

/// Checks that the server has received what was sent. It may not have read all of it at the end.
fn check_counts(server: &Server, outcome: &Outcome, connections: u64) -> Result<(), String> {
    let seen = (server.counts.requests(), server.counts.connections());
    let wanted = (outcome.total.sent, connections);
    assert!(seen.0 <= wanted.0 && seen.1 <= wanted.1, "{seen:?}, {}", text(outcome));
    ensure!(seen == wanted, "{seen:?}, {}", text(outcome));
    Ok(())
}

#[test]
fn a_latency_of_20_ms_is_measured() {
    experiment(|| {
        let server = Server::start(Behaviour::After(Duration::from_millis(20)));
        let outcome = Setup::new(server.url()).connections(32).run(200.0, Duration::from_secs(1));
        assert_eq!(outcome.total.errors, Errors::default());
        check_counts(&server, &outcome, 32)?;
        check_no_spin(&outcome)?;
        for histogram in [outcome.response(), outcome.service()] {
            // The bucket of 20 ms may begin a thousandth below.
            assert!(histogram.min_ns() >= 20 * MS - 20 * MS / 1_000, "{}", histogram.min_ns());
            check_percentile(&histogram, 50.0, 20 * MS, "latency")?;
        }
        // 4 are in flight at any time.
        ensure!(outcome.backlog + outcome.in_flight <= 8, "{}", text(&outcome));
        Ok(())
    });
}

/// 2 s of load with a stall of 0.4 s.
///
/// A share `f = S / P = 0.2` of all requests is planned within the stall, evenly, and waits from
/// `S` (planned at its start) to 0 (planned at its end). So `P(response > x) = f (1 - x /
/// S)`, and the percentile `p` over `1 - f` is `x(p) = S (1 - (1 - p) / f)`: `x(0.99) = 0.95 S =
/// 380 ms`, `x(0.9) = 0.5 S = 200 ms`; below 0.8 there is no wait.
const STALL: Behaviour = Behaviour::Stall {
    period: Duration::from_millis(2_000),
    from: Duration::from_millis(800),
    to: Duration::from_millis(1_200),
};
const STALL_NS: u64 = 400 * MS;
const PERIOD: Duration = Duration::from_millis(2_000);

fn check_shows_the_stall(latency: &Histogram, what: &str) -> Result<(), String> {
    check_percentile(latency, 99.0, STALL_NS * 95 / 100, what)?;
    check_percentile(latency, 90.0, STALL_NS / 2, what)?;
    check_percentile(latency, 100.0, STALL_NS, what)?;
    let rest_ns = latency.percentile_ns(75.0);
    ensure!(rest_ns < STALL_NS / 20, "{what}: p75 is {} us", rest_ns / 1_000);
    Ok(())
}

#[test]
fn a_stall_is_in_the_response_time_of_all_requests_planned_within_it() {
    experiment(|| {
        let server = Server::start(STALL);
        let outcome = Setup::new(server.url()).connections(2).run(1_000.0, PERIOD);
        assert_eq!(outcome.total.errors, Errors::default());
        check_no_spin(&outcome)?;
        check_shows_the_stall(&outcome.response(), "response")?;
        // Two requests of 2,000 were sent during the stall, the others afterwards.
        let service = outcome.service();
        let p99_ns = service.percentile_ns(99.0);
        ensure!(p99_ns < STALL_NS / 20, "service: p99 is {} us", p99_ns / 1_000);
        check_percentile(&service, 100.0, STALL_NS, "service")?;
        // The generator was not late.
        let lag_ns = outcome.total.send_lag.percentile_ns(99.0);
        ensure!(lag_ns < STALL_NS / 20, "send lag: p99 is {} us", lag_ns / 1_000);
        let backlog_max = outcome.seconds.iter().map(|second| second.backlog).max();
        ensure!(backlog_max > Some(100), "{:?}", outcome.seconds);
        Ok(())
    });
}

#[test]
fn with_enough_connections_a_stall_is_in_the_service_time_too() {
    experiment(|| {
        let server = Server::start(STALL);
        let outcome = Setup::new(server.url()).connections(300).run(500.0, PERIOD);
        assert_eq!(outcome.total.errors, Errors::default());
        check_shows_the_stall(&outcome.response(), "response")?;
        check_shows_the_stall(&outcome.service(), "service")
    });
}

#[test]
fn a_stall_is_nearly_invisible_in_a_closed_loop() {
    experiment(|| {
        let server = Server::start(STALL);
        let mut load = Setup::new(server.url()).start().unwrap();
        let phase = Phase {
            rate: Rate::Closed,
            warmup: Duration::ZERO,
            duration: PERIOD,
            request_count_max: None,
        };
        let outcome = load.run(&phase, &mut |_| true).unwrap();
        load.stop();
        assert_eq!(outcome.total.planned, outcome.total.sent);
        assert!(outcome.in_flight <= 1 && outcome.backlog == 0, "{}", text(&outcome));
        ensure!(outcome.total.completed > 2_000, "{}", text(&outcome));
        let p99_ns = outcome.response().percentile_ns(99.0);
        ensure!(p99_ns < STALL_NS / 20, "p99 is {} us", p99_ns / 1_000);
        check_percentile(&outcome.response(), 100.0, STALL_NS, "response")
    });
}

#[test]
fn unanswered_requests_count_with_their_age() {
    experiment(|| {
        // The stall begins after 0.6 s and outlasts the run.
        let server = Server::start(Behaviour::Stall {
            period: Duration::from_secs(60),
            from: Duration::from_millis(600),
            to: Duration::from_secs(60),
        });
        let outcome = Setup::new(server.url()).connections(10).run(1_000.0, Duration::from_secs(1));
        assert!(outcome.in_flight <= 10, "{}", text(&outcome));
        ensure!(outcome.in_flight == 10, "{}", text(&outcome));
        ensure!((370..=391).contains(&outcome.backlog), "{}", text(&outcome));
        // They were planned evenly over the last 0.4 s.
        check_percentile(&outcome.unanswered, 50.0, 200 * MS, "age")?;
        check_percentile(&outcome.unanswered, 100.0, 400 * MS, "age")?;
        let p75_ns = outcome.response().percentile_ns(75.0);
        ensure!(p75_ns < 20 * MS, "p75 of the responses is {} us", p75_ns / 1_000);
        check_percentile(&outcome.response_with_unanswered(), 99.0, 390 * MS, "response of all")
    });
}

#[test]
fn responses_that_arrive_byte_by_byte_are_parsed() {
    experiment(|| {
        let distance = Duration::from_micros(100);
        let server = Server::start(Behaviour::Bytewise(CHUNKED_RESPONSE, distance));
        let outcome = Setup::new(server.url()).connections(20).run(100.0, Duration::from_secs(1));
        let total = &outcome.total;
        assert_eq!(total.errors, Errors::default());
        let response_bytes = CHUNKED_RESPONSE.len() as u64;
        // Responses in flight may have been received in part.
        let least_bytes = total.completed * response_bytes;
        let most_bytes = (total.completed + outcome.in_flight) * response_bytes;
        assert!(
            (least_bytes..=most_bytes).contains(&total.read_bytes),
            "{} bytes, {}",
            total.read_bytes,
            text(&outcome)
        );
        let least_ns = (response_bytes - 1) * distance.as_nanos() as u64;
        let min_ns = outcome.service().min_ns();
        assert!(total.completed == 0 || min_ns >= least_ns - least_ns / 100, "{min_ns}");
        ensure!(total.completed >= 80, "{}", text(&outcome));
        Ok(())
    });
}

#[test]
fn each_pipelined_request_has_a_response() {
    experiment(|| {
        let server = Server::start(Behaviour::After(Duration::from_millis(1)));
        let outcome = Setup::new(server.url())
            .connections(4)
            .pipeline(8)
            .run(2_000.0, Duration::from_secs(1));
        assert_eq!(outcome.total.errors, Errors::default());
        check_counts(&server, &outcome, 4)?;
        ensure!(outcome.total.completed > 1_800, "{}", text(&outcome));
        Ok(())
    });
}

#[test]
fn a_rate_below_the_number_of_threads_is_kept() {
    experiment(|| {
        let server = Server::start(Behaviour::After(Duration::ZERO));
        let outcome =
            Setup::new(server.url()).connections(5).threads(4).run(3.0, Duration::from_secs(1));
        assert_eq!(outcome.total.errors, Errors::default());
        ensure!(outcome.total.completed == 3, "{}", text(&outcome));
        Ok(())
    });
}
