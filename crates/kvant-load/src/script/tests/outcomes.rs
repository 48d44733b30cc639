//! The arguments of `done`.

use super::{load, load_with, options};
use crate::config::{Phase, Rate};
use crate::op::OpNames;
use crate::outcome::{Outcome, ThreadOutcome};
use crate::record::Interval;
use std::time::Duration;

/// An outcome with these response times in nanoseconds.
pub(super) fn outcome(latencies_ns: &[u64]) -> Outcome {
    let mut total = Interval::default();
    let ops = OpNames::default();
    let record = total.op_mut(ops.intern("GET /"));
    for &ns in latencies_ns {
        record.response.record_ns(ns);
    }
    total.completed = latencies_ns.len() as u64;
    total.read_bytes = 123_456;
    total.errors.timeout = 3;
    total.errors.status = 2;
    total.name_ops(ops.all());
    Outcome {
        phase: Phase {
            rate: Rate::Constant(100.0),
            warmup: Duration::ZERO,
            duration: Duration::from_secs(2),
            request_count_max: None,
        },
        start_wall_ms: 0,
        measure_start_ns: None,
        measured_ns: 2_000_000_500,
        total,
        seconds: Vec::new(),
        backlog: 0,
        in_flight: 0,
        unanswered: crate::Histogram::new(),
        machine: None,
        threads: vec![
            ThreadOutcome { rates: vec![10.9, 30.0], ..ThreadOutcome::default() },
            ThreadOutcome { rates: vec![20.0, 20.0], ..ThreadOutcome::default() },
        ],
        is_cut_short: false,
    }
}

/// Runs `body` as `done` after a run with these latencies.
fn done(body: &str, latencies_ns: &[u64]) {
    let script = load(&format!("function done(summary, latency, requests)\n{body}\nend"));
    assert!(script.main.defines("done").unwrap());
    script.done(&outcome(latencies_ns)).expect("done succeeds");
}

#[test]
fn the_summary_has_counts_in_the_units_of_wrk() {
    done(
        "assert(summary.duration == 2000000 and summary.requests == 3 and summary.bytes == 123456)
         local e = summary.errors
         assert(e.connect == 0 and e.read == 0 and e.write == 0 and e.status == 2 and e.timeout == 3)",
        &[1_000_000, 2_000_000, 3_000_000],
    );
}

#[test]
fn latency_is_in_microseconds() {
    let latencies: Vec<u64> = (1..=1_000).map(|ms| ms * 1_000_000).collect();
    done(
        "local function near(a, b) assert(math.abs(a - b) <= b / 500, a .. ' is not about ' .. b) end
         near(latency.min, 1000) near(latency.max, 1000000) near(latency.mean, 500500) near(latency.stdev, 288675)
         near(latency:percentile(50), 500000) near(latency:percentile(99.9), 999000) near(latency:percentile(100), 1000000)
         assert(latency.absent == nil)
         print(string.format('%d %.2f', latency.max, latency:percentile(90.0)))",
        &latencies,
    );
}

#[test]
fn single_latencies_are_read_as_in_wrk2_and_as_in_wrk() {
    done(
        "assert(#latency == 4)
         local function near(a, b) assert(math.abs(a - b) <= b / 500, tostring(a) .. ' is not about ' .. b) end
         near(latency[1], 1000) near(latency[2], 1000) near(latency[3], 1000) near(latency[4], 7000)
         assert(latency[5] == nil and latency[0] == nil)
         local value, count = latency(1)
         near(value, 1000) assert(count == 3)
         value, count = latency(2)
         near(value, 7000) assert(count == 1)
         value, count = latency(3)
         assert(value == 0 and count == 0)
         local total = 0
         for i = 1, #latency do local _, count = latency(i) total = total + count end
         assert(total == summary.requests)",
        &[1_000_000, 1_000_000, 1_000_000, 7_000_000],
    );
}

#[test]
fn requests_are_the_rates_of_threads() {
    done(
        "assert(requests.min == 10 and requests.max == 30 and requests.mean == 20)
         assert(math.abs(requests.stdev - math.sqrt(200 / 3)) < 1e-9)
         assert(#requests == 4 and requests[1] == 10 and requests[2] == 20 and requests[4] == 30)
         assert(requests:percentile(50) == 20 and requests:percentile(100) == 30 and requests:percentile(0) == 10)
         local value, count = requests(2)
         assert(value == 20 and count == 2)",
        &[1_000],
    );
}

#[test]
fn an_empty_run_has_zeros() {
    done(
        "assert(#latency == 0 and latency.min == 0 and latency.max == 0 and latency:percentile(99) == 0)
         assert(latency[1] == nil and latency.mean == 0)",
        &[],
    );
}

#[test]
fn done_fails_with_its_line() {
    let script = load("function done(summary)\n\n summary.absent.x = 1 end");
    let error = script.done(&outcome(&[])).expect_err("fails");
    assert_eq!(
        error.message(),
        "done() failed: test.lua:3: attempt to index field 'absent' (a nil value)"
    );
}

#[test]
fn done_is_optional() {
    let script = load_with("", &options(1)).expect("starts");
    assert!(!script.main.defines("done").unwrap());
    script.done(&outcome(&[])).expect("nothing to do");
}
