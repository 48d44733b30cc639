use super::*;
use crate::record::WatchSample;
use kvant_load::Outcome;
use kvant_load::find_max::{Judgement, Point, Purpose};
use kvant_load::record::Interval;
use kvant_load::verdict;

const S: u64 = 1_000_000_000;

/// A phase at a constant rate with this lateness of all of its requests.
fn phase(lag_ns: u64) -> Measured {
    let mut total = Interval { planned: 100, sent: 100, completed: 100, ..Interval::default() };
    total.send_lag.record_many_ns(lag_ns, 100);
    let mut outcome = Outcome { total, measured_ns: S, ..Outcome::default() };
    outcome.phase.rate = Rate::Constant(100.0);
    Measured { verdict: verdict::judge(&outcome), outcome }
}

/// Samples of two CPUs over two seconds.
fn watch(others_ns: u64, stolen_ns: u64) -> Watch {
    let sample = |at_ns, others_ns, stolen_ns| WatchSample {
        at_ns,
        server_cpu_ns: Some(at_ns / 2),
        generator_cpu_ns: at_ns / 4,
        all_cpu_ns: Some(at_ns / 2 + at_ns / 4 + others_ns),
        stolen_ns: Some(stolen_ns),
        pressure_ns: Some(at_ns / 2),
        ..WatchSample::default()
    };
    Watch { samples: vec![sample(0, 0, 0), sample(2 * S, others_ns, stolen_ns)] }
}

fn judged(
    phases: &[Measured],
    watch: &Watch,
    change: impl Fn(&mut Evidence<'_>),
) -> AttemptVerdict {
    let mut evidence = Evidence {
        phases,
        found: None,
        pause: None,
        watch,
        cpu_count: 2,
        is_machine_judged: false,
        subject_end: None,
        is_stopped: false,
    };
    change(&mut evidence);
    verdict(&evidence)
}

#[test]
fn a_calm_attempt_counts() {
    assert_eq!(judged(&[phase(1_000)], &watch(S / 10, 0), |_| {}), AttemptVerdict::Valid);
}

#[test]
fn taken_time_and_pauses_disturb() {
    let disturbed = |verdict: AttemptVerdict| match verdict {
        AttemptVerdict::Disturbed(why) => why,
        other => panic!("{other:?}"),
    };
    let others = disturbed(judged(&[phase(1_000)], &watch(S, 0), |_| {}));
    assert_eq!(others, "other processes took 25 % of the CPU time");
    let stolen = disturbed(judged(&[phase(1_000)], &watch(0, S / 5), |_| {}));
    assert_eq!(stolen, "the hypervisor took 5 % of the CPU time");
    let pause = |evidence: &mut Evidence<'_>| evidence.pause = Some("the generator stood still");
    assert_eq!(
        disturbed(judged(&[phase(1_000)], &watch(0, 0), pause)),
        "the generator stood still"
    );
    let late = disturbed(judged(&[phase(300_000_000)], &watch(0, 0), |_| {}));
    assert!(late.starts_with("the generator was late by "), "{late}");
}

#[test]
fn the_samples_do_not_judge_again_what_the_load_has_judged() {
    let is_judged = |evidence: &mut Evidence<'_>| evidence.is_machine_judged = true;
    assert_eq!(judged(&[phase(1_000)], &watch(S, S), is_judged), AttemptVerdict::Valid);
}

#[test]
fn a_dead_subject_and_silence_fail() {
    let dies = |evidence: &mut Evidence<'_>| {
        evidence.subject_end = Some("was killed by signal 9".to_owned());
        evidence.is_stopped = true;
    };
    let failed = judged(&[phase(1_000)], &watch(0, 0), dies);
    assert_eq!(failed, AttemptVerdict::Failed("the subject was killed by signal 9".to_owned()));
    let silent = Measured { outcome: Outcome::default(), ..phase(0) };
    let failed = judged(&[silent], &watch(0, 0), |_| {});
    assert!(matches!(failed, AttemptVerdict::Failed(_)), "{failed:?}");
}

#[test]
fn an_attempt_that_was_ended_early_does_not_count() {
    let mut cut = phase(1_000);
    cut.outcome.is_cut_short = true;
    let verdict = judged(&[cut], &watch(0, 0), |evidence| evidence.is_stopped = true);
    assert_eq!(verdict, AttemptVerdict::CutShort("the run was ended".to_owned()));
}

fn point(rate: f64, holds: bool, disturbance: Option<&str>) -> Point {
    let reasons = if holds { Vec::new() } else { vec!["p99 is 9ms".to_owned()] };
    Point {
        purpose: Purpose::Step,
        rate,
        achieved: rate,
        p50_ns: 0,
        p99_ns: 0,
        p999_ns: 0,
        max_ns: 0,
        send_lag_p99_ns: 0,
        judgement: Judgement { reasons, is_close: false },
        generator: None,
        disturbance: disturbance.map(str::to_owned),
    }
}

#[test]
fn a_search_is_disturbed_if_the_step_that_ended_it_is() {
    let found = |points: Vec<Point>| FindMax {
        saturation_rate: 200.0,
        rate: Some(100.0),
        is_confirmed: true,
        limit: None,
        points,
        at_80: None,
        is_cut_short: false,
    };
    let judged = |points: Vec<Point>| {
        let found = found(points);
        let watch = watch(0, 0);
        let mut evidence = Evidence {
            phases: &[],
            found: Some(&found),
            pause: None,
            watch: &watch,
            cpu_count: 2,
            is_machine_judged: true,
            subject_end: None,
            is_stopped: false,
        };
        evidence.is_machine_judged = true;
        verdict(&evidence)
    };
    let held = || point(100.0, true, Some("stolen"));
    assert_eq!(judged(vec![held(), point(103.0, false, None)]), AttemptVerdict::Valid);
    // The same rate failed again on a calm machine.
    let again = vec![held(), point(103.0, false, Some("stolen")), point(103.0, false, None)];
    assert_eq!(judged(again), AttemptVerdict::Valid);
    let disturbed = vec![held(), point(103.0, false, Some("stolen")), point(120.0, false, None)];
    assert_eq!(judged(disturbed), AttemptVerdict::Disturbed("stolen".to_owned()));
}
