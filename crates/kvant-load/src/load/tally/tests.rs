use super::Tally;
use crate::config::{Phase, Rate};
use crate::histogram::Histogram;
use crate::op::OpNames;
use crate::outcome::ThreadOutcome;
use crate::record::Interval;
use crate::worker::messages::{ThreadEnd, ThreadInterval};
use std::time::Duration;

const S: u64 = 1_000_000_000;

fn second(number: u64, completed: u64, restarts_histograms: bool) -> ThreadInterval {
    let op = OpNames::default().intern("op");
    let mut interval = Interval {
        start_ns: number * S,
        end_ns: (number + 1) * S,
        completed,
        planned: completed + 1,
        ..Interval::default()
    };
    interval.op_mut(op).response.record_many_ns(S, completed);
    ThreadInterval { interval: Box::new(interval), backlog: 1, restarts_histograms }
}

fn ended(measured_ns: u64, is_source_stopped: bool) -> ThreadEnd {
    ThreadEnd {
        outcome: ThreadOutcome { completed: 1, ..ThreadOutcome::default() },
        planned: 2,
        backlog: 2,
        in_flight: 3,
        unanswered: Histogram::new(),
        measured_ns,
        is_source_stopped,
    }
}

const PHASE: Phase = Phase {
    rate: Rate::Closed,
    warmup: Duration::ZERO,
    duration: Duration::from_secs(2),
    request_count_max: None,
};

#[test]
fn a_second_is_complete_when_all_threads_have_reported_it() {
    let mut tally = Tally::new(2);
    let mut shown = Vec::new();
    let cleared = tally.add(0, second(0, 10, false));
    assert_eq!((cleared.completed, cleared.response().count()), (0, 0));
    tally.add(0, second(1, 20, false));
    let mut show_none = |_: &Interval| panic!("the other thread has not reported");
    assert_eq!(tally.complete_intervals(&mut show_none), (true, 0));
    tally.add(1, second(0, 1, false));
    let mut show = |second: &Interval| {
        shown.push((second.start_ns, second.end_ns, second.completed, second.response().count()));
        true
    };
    assert_eq!(tally.complete_intervals(&mut show), (true, 1));
    tally.end(1, ended(S, false));
    assert_eq!(tally.complete_intervals(&mut show), (true, 1), "the other thread has ended");
    assert!(!tally.has_ended());
    tally.end(0, ended(2 * S, false));
    assert!(tally.has_ended());
    assert_eq!(shown, [(0, S, 11, 11), (S, 2 * S, 20, 20)]);

    let outcome = tally.finish(&PHASE, 5, vec!["op".to_owned()], false);
    assert_eq!(
        (outcome.total.completed, outcome.total.planned, outcome.response().count()),
        (31, 34, 31)
    );
    assert_eq!((outcome.backlog, outcome.in_flight, outcome.measured_ns), (4, 6, 2 * S));
    let seconds: Vec<_> =
        outcome.seconds.iter().map(|second| (second.completed, second.backlog)).collect();
    assert_eq!(seconds, [(11, 2), (20, 1)]);
    assert!(!outcome.is_cut_short);
}

#[test]
fn shorter_intervals_are_passed_on_and_added_to_seconds() {
    let mut tally = Tally::new(1);
    let mut shown = Vec::new();
    let mut show = |interval: &Interval| {
        shown.push((interval.start_ns, interval.end_ns, interval.completed));
        true
    };
    for quarter in 0..6 {
        let mut part = second(0, 10 + quarter, false);
        (part.interval.start_ns, part.interval.end_ns) = (quarter * S / 4, (quarter + 1) * S / 4);
        part.backlog = quarter;
        tally.add(0, part);
        let is_whole_second = quarter == 3;
        assert_eq!(tally.complete_intervals(&mut show), (true, usize::from(is_whole_second)));
    }
    tally.end(0, ended(6 * S / 4, false));
    assert_eq!(tally.complete_intervals(&mut show), (true, 1), "the rest of a second");
    assert_eq!((shown.len(), shown[5]), (6, (5 * S / 4, 6 * S / 4, 15)));
    let outcome = tally.finish(&PHASE, 0, vec!["op".to_owned()], false);
    let seconds: Vec<_> = outcome
        .seconds
        .iter()
        .map(|second| (second.start_ns, second.end_ns, second.completed, second.backlog))
        .collect();
    assert_eq!(seconds, [(0, S, 46, 3), (S, 6 * S / 4, 29, 5)]);
    assert_eq!(outcome.response().count(), 75);
}

#[test]
fn histograms_before_a_calibration_do_not_count() {
    let mut tally = Tally::new(1);
    tally.add(0, second(0, 10, false));
    tally.add(0, second(1, 20, true));
    tally.add(0, second(2, 30, false));
    tally.end(0, ended(3 * S, false));
    let outcome = tally.finish(&PHASE, 0, Vec::new(), false);
    assert_eq!((outcome.total.completed, outcome.response().count()), (60, 50));
}

#[test]
fn a_phase_is_cut_short_when_all_sources_have_stopped() {
    for (stopped, is_cut_short) in [([true, true], true), ([true, false], false)] {
        let mut tally = Tally::new(2);
        for (thread, is_stopped) in stopped.into_iter().enumerate() {
            tally.end(thread, ended(S, is_stopped));
        }
        assert_eq!(tally.finish(&PHASE, 0, Vec::new(), false).is_cut_short, is_cut_short);
    }
}
