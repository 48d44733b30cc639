use super::super::connection::Flight;
use super::{RATE_SAMPLE_NS, Recorder, SampledCall, thread_cpu_ns};
use crate::config::StatusSet;
use crate::op::OpNames;
use crate::record::Interval;
use crate::source::Expected;
use std::sync::mpsc;

const S: u64 = 1_000_000_000;
const MS: u64 = 1_000_000;

fn recorder() -> Recorder {
    Recorder::new(mpsc::channel().1, StatusSet::new([404]))
}

fn expected() -> Expected {
    Expected { op: OpNames::default().intern("op"), is_head: false }
}

fn flight(planned_ns: u64, written_ns: u64) -> Flight {
    Flight { planned_ns, written_ns, ..Flight::default() }
}

/// Whether two values fall into about the same bucket.
fn is_about(value_ns: u64, expected_ns: u64) -> bool {
    value_ns.abs_diff(expected_ns) <= expected_ns / 500 + 256
}

#[test]
fn responses_are_recorded_with_times_and_status() {
    let mut recorder = recorder();
    recorder.begin(10 * S, None);
    for (status, done_ms) in [(200, 30), (404, 30), (500, 40)] {
        recorder.response(
            &flight(10 * S, 10 * S + 10 * MS),
            expected(),
            status,
            10 * S + done_ms * MS,
            true,
        );
    }
    recorder.timeout(&flight(10 * S, 10 * S + 10 * MS), expected(), 10 * S + 500 * MS);
    let second = recorder.end_interval(11 * S, 7, 3);
    let interval = &second.interval;
    assert_eq!(
        (interval.start_ns, interval.end_ns, interval.planned, second.backlog),
        (0, S, 7, 3)
    );
    assert_eq!((interval.completed, interval.errors.status, interval.errors.timeout), (3, 1, 1));
    assert_eq!(interval.ops[0].statuses, [(200, 1), (404, 1), (500, 1)]);
    assert_eq!((interval.response().count(), interval.service().count()), (4, 4));
    assert!(is_about(interval.response().max_ns(), 500 * MS));
    assert!(is_about(interval.service().min_ns(), 20 * MS));
    // A status that is accepted is no failure.
    let failed = interval.service_failed();
    assert_eq!(failed.count(), 1);
    assert!(is_about(failed.max_ns(), 30 * MS));
    let succeeded = interval.service().without(&failed);
    assert_eq!(succeeded.count(), 3);
    assert!(is_about(succeeded.percentile_ns(60.0), 20 * MS));

    let second = recorder.end_interval(11 * S + S / 2, 9, 0);
    let interval = &second.interval;
    assert_eq!((interval.start_ns, interval.end_ns, interval.planned), (S, S * 3 / 2, 2));
    assert_eq!(interval.completed, 0);
    assert_eq!(recorder.finish(12 * S).completed, 3);
}

#[test]
fn the_warm_up_is_discarded_except_for_connections() {
    let mut recorder = recorder();
    recorder.interval.connect.record_ns(5 * MS);
    recorder.interval.errors.connect = 2;
    recorder.interval.errors.read = 1;
    recorder.interval.sent = 3;
    recorder.begin(S, None);
    let interval: Interval = *recorder.end_interval(2 * S, 0, 0).interval;
    assert_eq!((interval.connect.count(), interval.errors.connect), (1, 2));
    assert_eq!((interval.errors.read, interval.sent), (0, 0));
}

#[test]
fn the_response_rate_is_sampled_even_without_responses() {
    let mut recorder = recorder();
    recorder.begin(0, None);
    for at_ms in [10, 20, 130, 450] {
        recorder.response(&flight(0, 0), expected(), 200, at_ms * MS, true);
    }
    let outcome = recorder.finish(S * 7 / 10);
    assert_eq!(outcome.sample_ns, RATE_SAMPLE_NS);
    assert_eq!(outcome.rates, [20.0, 10.0, 0.0, 0.0, 10.0, 0.0, 0.0]);
}

#[test]
fn calibration_is_that_of_wrk2() {
    let mut recorder = recorder();
    recorder.begin(0, Some(10 * S));
    assert_eq!(recorder.calibrates_ns(), Some(10 * S));
    recorder.calibrate(10 * S);
    assert_eq!(
        recorder.calibrates_ns(),
        Some(20 * S),
        "without a response the next attempt is 10 s later"
    );

    recorder.response(&flight(0, 0), expected(), 200, 40 * MS, true);
    recorder.calibrate(20 * S);
    assert_eq!(recorder.calibrates_ns(), None);
    recorder.response(&flight(20 * S, 20 * S), expected(), 200, 20 * S + MS, true);
    let second = recorder.end_interval(21 * S, 2, 0);
    assert!(second.restarts_histograms);
    assert_eq!(second.interval.completed, 2, "counts go on");
    assert_eq!(second.interval.response().count(), 1, "histograms restart");
    assert!(!recorder.end_interval(22 * S, 2, 0).restarts_histograms);
    let outcome = recorder.finish(22 * S);
    assert_eq!(outcome.sample_ns, 80 * MS, "twice the 90th percentile");
    assert!(is_about(outcome.calibration_mean_ns.unwrap() as u64, 40 * MS));
    assert_eq!(outcome.rates.len(), 25, "samples begin after calibration");
}

#[test]
fn source_time_is_cpu_time_and_at_most_the_total() {
    let mut recorder = recorder();
    recorder.begin(10 * S, None);
    // A call that waited a second, such as for a disk, and used almost no CPU.
    let call = SampledCall { cpu_ns: thread_cpu_ns(), start_ns: 0 };
    recorder.end_source_call(call, S);
    let waited = recorder.end_interval(11 * S, 0, 0).interval;
    assert!(waited.source_ns < S && waited.source_ns <= waited.cpu_ns, "{waited:?}");
    // The call that was timed was the slowest one of its sample.
    let call = SampledCall { cpu_ns: thread_cpu_ns(), start_ns: 0 };
    while thread_cpu_ns() - call.cpu_ns < 2 * MS {}
    recorder.end_source_call(call, S);
    let interval = recorder.end_interval(12 * S, 0, 0).interval;
    assert_eq!(interval.source_ns, interval.cpu_ns);
}
