//! Plans other than a constant rate.

use crate::harness::{self, MS, Setup, check_sums, ensure, experiment, text};
use crate::server::{Behaviour, Server};
use kvant_load::{Arrival, Errors, Outcome, Phase, Rate};
use std::time::{Duration, Instant};

const AT_ONCE: Behaviour = Behaviour::After(Duration::ZERO);

/// Runs one phase of 1 s against a new server.
fn run(behaviour: Behaviour, arrival: Arrival, rate: Rate) -> Outcome {
    let server = Server::start(behaviour);
    let setup = Setup::new(server.url()).connections(4).threads(2).arrival(arrival);
    let mut load = setup.start().unwrap();
    let phase = Phase {
        rate,
        warmup: Duration::from_millis(100),
        duration: Duration::from_secs(1),
        request_count_max: None,
    };
    let outcome = load.run(&phase, &mut |_| true).unwrap();
    load.stop();
    assert_eq!(outcome.total.errors, Errors::default(), "{}", text(&outcome));
    check_sums(&outcome);
    outcome
}

#[test]
fn a_ramp_sends_the_area_under_it() {
    experiment(|| {
        let outcome = run(AT_ONCE, Arrival::Uniform, Rate::Ramp { from: 0.0, to: 600.0 });
        assert_eq!(outcome.total.planned, 300, "{}", text(&outcome));
        ensure!(outcome.total.completed >= 280, "{}", text(&outcome));
        Ok(())
    });
}

#[test]
fn random_arrivals_add_up_to_the_rate() {
    let outcome = run(AT_ONCE, Arrival::Poisson, Rate::Constant(900.0));
    // Six standard deviations of 30; a change of the plan may change the draws of the fixed seed.
    assert!(outcome.total.planned.abs_diff(900) <= 180, "{}", text(&outcome));
}

#[test]
fn batches_across_the_ends_of_the_measured_time_add_up() {
    for arrival in [Arrival::Uniform, Arrival::Wrk2] {
        let server = Server::start(AT_ONCE);
        let setup = Setup::new(server.url()).connections(3).threads(2).pipeline(7).arrival(arrival);
        let mut load = setup.start().unwrap();
        let phase = Phase {
            rate: Rate::Constant(100.0),
            warmup: Duration::from_millis(100),
            duration: Duration::from_millis(530),
            request_count_max: None,
        };
        let outcome = load.run(&phase, &mut |_| true).unwrap();
        load.stop();
        check_sums(&outcome);
        // Up to a batch for each thread or connection at either end.
        assert!(outcome.total.planned.abs_diff(53) <= 42, "{}", text(&outcome));
        let by_second: u64 = outcome.seconds.iter().map(|second| second.planned).sum();
        assert_eq!(by_second, outcome.total.planned, "{}", text(&outcome));
    }
}

#[test]
fn private_plans_keep_the_rate() {
    experiment(|| {
        let outcome = run(AT_ONCE, Arrival::Wrk2, Rate::Constant(400.0));
        assert!(outcome.total.planned.abs_diff(400) <= 4, "{}", text(&outcome));
        ensure!(outcome.total.completed >= 360, "{}", text(&outcome));
        Ok(())
    });
}

#[test]
fn slow_connections_with_private_plans_have_a_backlog() {
    experiment(|| {
        // Each connection completes 20 of its 50 requests a second: 30 are missing after a second,
        // and the last one completed was planned at 40 % of the time, warm-up included.
        let outcome =
            run(Behaviour::After(Duration::from_millis(50)), Arrival::Wrk2, Rate::Constant(200.0));
        assert!(outcome.total.completed <= 84, "{}", text(&outcome));
        ensure!(outcome.total.completed >= 60, "{}", text(&outcome));
        let (response_ns, service_ns) =
            (outcome.response().max_ns(), outcome.service().percentile_ns(50.0));
        ensure!(response_ns > 500 * MS, "response: at most {} us", response_ns / 1_000);
        ensure!(service_ns < 75 * MS, "service: p50 is {} us", service_ns / 1_000);
        Ok(())
    });
}

#[test]
fn a_closed_loop_counts_all_responses_of_the_measured_time() {
    experiment(|| {
        let server = Server::start(Behaviour::After(Duration::from_millis(200)));
        let mut load = Setup::new(server.url()).connections(4).threads(2).start().unwrap();
        // Requests are sent at 0, 200, 400 and 600 ms, and three responses come within the time.
        let phase = Phase {
            rate: Rate::Closed,
            warmup: Duration::from_millis(100),
            duration: Duration::from_millis(600),
            request_count_max: None,
        };
        let outcome = load.run(&phase, &mut |_| true).unwrap();
        load.stop();
        check_sums(&outcome);
        ensure!(outcome.total.completed == 12, "{}", text(&outcome));
        let shortest_ns = outcome.response().min_ns();
        assert!(shortest_ns >= 199 * MS, "{shortest_ns}");
        Ok(())
    });
}

#[test]
fn a_phase_without_a_warmup_does_not_wait_for_old_responses() {
    const SERVICE: Duration = Duration::from_millis(1_000);
    experiment(|| {
        let server = Server::start(Behaviour::After(SERVICE));
        let mut load = Setup::new(server.url()).connections(4).threads(2).start().unwrap();
        let begin = Instant::now();
        let first = harness::run(&mut load, 40.0, Duration::from_millis(300));
        let second = harness::run(&mut load, 40.0, Duration::from_millis(300));
        let took = begin.elapsed();
        load.stop();
        assert_eq!((first.total.planned, second.total.planned), (12, 12), "{}", text(&second));
        ensure!(took < SERVICE, "{took:?}");
        ensure!((first.in_flight, second.total.sent) == (4, 0), "{}", text(&second));
        Ok(())
    });
}
