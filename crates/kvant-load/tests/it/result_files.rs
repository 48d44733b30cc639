//! The interval log and the JSON of real runs contain the printed figures.

use crate::harness::{Setup, check_sums, ensure, experiment, text};
use crate::server::{Behaviour, Server};
use kvant_load::assertion::Assertion;
use kvant_load::histogram::encoded;
use kvant_load::report::hlog::HlogWriter;
use kvant_load::report::json::PhaseResult;
use kvant_load::{Histogram, Outcome, Phase, Rate, compare};
use std::time::Duration;

const PERCENTILES: [f64; 7] = [50.0, 75.0, 90.0, 99.0, 99.9, 99.99, 100.0];

/// Runs two phases with warm-up on several threads. Returns their outcomes and log.
fn run(server: &Server, rates: [Rate; 2]) -> (Vec<Outcome>, Vec<u8>) {
    let setup =
        Setup::new(server.url()).connections(8).threads(2).timeout(Duration::from_millis(400));
    let mut load = setup.start().unwrap();
    let mut log = Vec::new();
    let mut writer = HlogWriter::new(&mut log);
    let mut wall_ms = 1_700_000_000_000;
    let mut outcomes = Vec::new();
    for rate in rates {
        let phase = Phase {
            rate,
            warmup: Duration::from_millis(300),
            duration: Duration::from_millis(2_300),
            request_count_max: None,
        };
        let mut each_second = |interval: &kvant_load::Interval| {
            wall_ms += 1_000;
            writer.write(interval, &["GET".to_owned()], wall_ms).unwrap();
            true
        };
        outcomes.push(load.run(&phase, &mut each_second).unwrap());
    }
    load.stop();
    (outcomes, log)
}

fn assert_same(what: &str, found: &Histogram, wanted: &Histogram) {
    assert_eq!(found.count(), wanted.count(), "{what}");
    for percent in PERCENTILES {
        assert_eq!(
            found.percentile_ns(percent),
            wanted.percentile_ns(percent),
            "{what} p{percent}"
        );
    }
    assert_eq!(found.as_hdr(), wanted.as_hdr(), "{what}");
}

fn sum<'a>(outcomes: &'a [Outcome], of: impl Fn(&'a Outcome) -> Histogram) -> Histogram {
    outcomes.iter().fold(Histogram::new(), |mut sum, outcome| {
        sum.add(&of(outcome));
        sum
    })
}

/// The sum of the lines of a log with this tag.
fn merged(log: &str, tag: &str) -> Histogram {
    let start = format!("Tag={tag},");
    let lines = log.lines().filter(|line| line.starts_with(&start));
    lines.fold(Histogram::new(), |mut sum, line| {
        sum.add(&encoded::decode(line.rsplit(',').next().unwrap()).unwrap());
        sum
    })
}

#[test]
fn a_log_merges_to_the_printed_percentiles() {
    experiment(|| {
        // The server stalls for half of each second, so that requests miss their deadlines: the
        // log has those too.
        let behaviour = Behaviour::Stall {
            period: Duration::from_secs(1),
            from: Duration::from_millis(200),
            to: Duration::from_millis(700),
        };
        let server = Server::start(behaviour);
        let (outcomes, log) = run(&server, [Rate::Constant(500.0), Rate::Closed]);
        outcomes.iter().take(1).for_each(check_sums);
        let log = String::from_utf8(log).unwrap();
        let merged = |tag| merged(&log, tag);
        let count = merged("GET/response").count();
        let texts: Vec<String> = outcomes.iter().map(text).collect();
        ensure!(count > 500, "{count} in the log, {texts:?}");
        assert_same("response", &merged("GET/response"), &sum(&outcomes, Outcome::response));
        assert_same("service", &merged("GET/service"), &sum(&outcomes, Outcome::service));
        assert_same(
            "send lag",
            &merged("send-lag"),
            &sum(&outcomes, |outcome| outcome.total.send_lag.clone()),
        );
        assert_same(
            "connect",
            &merged("connect"),
            &sum(&outcomes, |outcome| outcome.total.connect.clone()),
        );
        Ok(())
    });
}

#[test]
fn a_result_file_restores_the_printed_percentiles() {
    let server = Server::start(Behaviour::After(Duration::from_millis(1)));
    let (outcomes, _) = run(&server, [Rate::Constant(400.0), Rate::Ramp { from: 0.0, to: 800.0 }]);
    for outcome in &outcomes {
        let text = serde_json::to_string(&PhaseResult::of(outcome, "", None)).unwrap();
        let result: PhaseResult = serde_json::from_str(&text).unwrap();
        let back = &result.outcome;
        assert_same("response", &back.response(), &outcome.response());
        assert_same("service", &back.service(), &outcome.service());
        assert_eq!(result.response.percentile_ns(99.0), outcome.response().percentile_ns(99.0));
        assert_eq!(back.seconds, outcome.seconds);
        assert_eq!(back.total.errors, outcome.total.errors);
        assert!(compare::is_same(back.phase.rate, outcome.phase.rate));
    }
}

#[test]
fn a_hanging_server_passes_no_assertion() {
    let server = Server::start(Behaviour::Silent);
    // The deadline is after the end, so that requests do not fail but wait.
    let outcome = Setup::new(server.url()).connections(2).run(100.0, Duration::from_millis(500));
    assert_eq!(outcome.total.completed, 0);
    for text in [
        "p99<1h",
        "max<1h",
        "service.p99<1h",
        "errors==0",
        "timeouts<1%",
        "rate>=1",
        "completed>=1%",
    ] {
        let checked = Assertion::parse(text).unwrap().check(&outcome, None);
        assert!(!checked.is_met, "{checked}");
    }
}
