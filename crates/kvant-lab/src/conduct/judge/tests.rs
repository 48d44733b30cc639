use super::*;
use crate::record::WatchSample;
use kvant_load::OpNames;
use kvant_load::find_max::Judgement;
use kvant_load::machine::MachineUse;
use kvant_load::outcome::Second;
use kvant_load::record::Interval;

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
    Watch {
        samples: vec![sample(0, 0, 0), sample(2 * S, others_ns, stolen_ns)],
        ..Watch::default()
    }
}

fn judged<'a>(
    phases: &'a [Measured],
    watch: &'a Watch,
    change: impl FnOnce(&mut Evidence<'a>),
) -> AttemptVerdict {
    let mut evidence = Evidence {
        phases,
        found: None,
        beside: None,
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
    let others = judged(&[phase(1_000)], &watch(S, 0), |_| {});
    assert_eq!(others, disturbed("other processes took 25 % of the CPU time"));
    let stolen = judged(&[phase(1_000)], &watch(0, S / 5), |_| {});
    assert_eq!(stolen, disturbed("the hypervisor took 5 % of the CPU time"));
    let pause = |evidence: &mut Evidence<'_>| evidence.pause = Some("the generator stood still");
    let paused = judged(&[phase(1_000)], &watch(0, 0), pause);
    assert_eq!(paused, disturbed("the generator stood still"));
    let late = judged(&[phase(300_000_000)], &watch(0, 0), |_| {});
    assert!(matches!(&late, AttemptVerdict::Disturbed(why) if why.contains("late by")), "{late:?}");
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
fn an_attempt_with_errors_only_fails() {
    let with_errors = |errors: u64| {
        let mut measured = phase(1_000);
        measured.outcome.total.errors.status = errors;
        let op = measured.outcome.total.op_mut(OpNames::default().intern("get"));
        op.statuses = vec![(200, 100 - errors), (503, errors)];
        measured
    };
    let failed = judged(&[with_errors(100)], &watch(0, 0), |_| {});
    let why = "all 100 responses are errors, most with status 503";
    assert_eq!(failed, AttemptVerdict::Failed(why.to_owned()));
    assert_eq!(judged(&[with_errors(99)], &watch(0, 0), |_| {}), AttemptVerdict::Valid);
    // Beyond the limit.
    let phases = [with_errors(0), with_errors(100)];
    assert_eq!(judged(&phases, &watch(0, 0), |_| {}), AttemptVerdict::Valid);
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

/// A search with a calm closed loop.
fn search(points: Vec<Point>, at_80: Option<Outcome>) -> AttemptVerdict {
    let saturation = Point { purpose: Purpose::Saturation, ..point(0.0, true, None) };
    let found = FindMax {
        saturation_rate: 200.0,
        rate: Some(100.0),
        is_confirmed: true,
        limit: None,
        points: [vec![saturation], points].concat(),
        at_80,
        is_cut_short: false,
    };
    judged(&[], &watch(0, 0), |evidence| {
        evidence.found = Some(&found);
        evidence.is_machine_judged = true;
    })
}

fn disturbed(why: &str) -> AttemptVerdict {
    AttemptVerdict::Disturbed(why.to_owned())
}

#[test]
fn a_search_is_disturbed_if_the_step_that_ended_it_is() {
    let held = || point(100.0, true, Some("stolen"));
    assert_eq!(search(vec![held(), point(103.0, false, None)], None), AttemptVerdict::Valid);
    // The same rate failed again on a calm machine.
    let again = vec![held(), point(103.0, false, Some("stolen")), point(103.0, false, None)];
    assert_eq!(search(again, None), AttemptVerdict::Valid);
    let ended = vec![held(), point(103.0, false, Some("stolen")), point(120.0, false, None)];
    assert_eq!(search(ended, None), disturbed("stolen"));
}

#[test]
fn a_search_is_disturbed_if_its_last_closed_loop_is() {
    let closed = |what| Point { purpose: Purpose::Saturation, ..point(0.0, true, what) };
    assert_eq!(search(vec![closed(Some("stolen"))], None), disturbed("stolen"));
    assert_eq!(search(vec![closed(Some("stolen")), closed(None)], None), AttemptVerdict::Valid);
}

#[test]
fn a_search_is_disturbed_if_its_hold_at_80_percent_is() {
    let calm = phase(1_000).outcome;
    assert_eq!(search(Vec::new(), Some(calm.clone())), AttemptVerdict::Valid);
    let stolen = with_seconds(&[0.0, 0.2]);
    let in_words =
        "at 80 %, in 1 of 2 seconds; in the worst the hypervisor took 20 % of the CPU time";
    assert_eq!(search(Vec::new(), Some(stolen)), disturbed(in_words));
    let late = search(Vec::new(), Some(phase(300_000_000).outcome));
    assert!(matches!(&late, AttemptVerdict::Disturbed(why) if why.contains("late by")), "{late:?}");
}

/// A phase with a part of each second stolen.
fn with_seconds(stolen_parts: &[f64]) -> Outcome {
    let machine =
        |stolen_part| MachineUse { time_ns: S, cpu_count: 2, stolen_part, ..MachineUse::default() };
    let mean = stolen_parts.iter().sum::<f64>() / stolen_parts.len() as f64;
    let second = |part: &f64| Second { machine: Some(machine(*part)), ..Second::default() };
    Outcome {
        machine: Some(machine(mean.min(0.01))),
        seconds: stolen_parts.iter().map(second).collect(),
        ..phase(1_000).outcome
    }
}

#[test]
fn one_disturbed_second_disturbs_an_attempt() {
    let judged_with = |parts: &[f64]| {
        let outcome = with_seconds(parts);
        let measured = Measured { verdict: verdict::judge(&outcome), outcome };
        judged(&[measured], &watch(0, 0), |evidence| evidence.is_machine_judged = true)
    };
    assert_eq!(judged_with(&[0.01; 30]), AttemptVerdict::Valid, "as of a virtual machine");
    let mut parts = [0.01; 30];
    parts[7] = 0.06;
    let judged = judged_with(&parts);
    assert!(
        matches!(&judged, AttemptVerdict::Disturbed(why) if why.contains("1 of 30")),
        "{judged:?}"
    );
    // In a long phase it is a small part of what any percentile up to 99 is made of.
    let long = |disturbed: usize| {
        let mut parts = [0.01; 300];
        parts[..disturbed].fill(0.06);
        judged_with(&parts)
    };
    assert_eq!(long(3), AttemptVerdict::Valid);
    assert!(matches!(long(4), AttemptVerdict::Disturbed(_)));
}

#[test]
fn one_disturbed_second_of_the_samples_disturbs_what_nothing_else_judges() {
    let sample = |n: u64, stolen_ns| WatchSample {
        at_ns: n * S / 10,
        all_cpu_ns: Some(0),
        stolen_ns: Some(stolen_ns),
        ..WatchSample::default()
    };
    let samples = |stolen_ns: u64| Watch {
        samples: (0..=100).map(|n| sample(n, if n < 55 { 0 } else { stolen_ns })).collect(),
        ..Watch::default()
    };
    let judged_with = |stolen_ns| judged(&[phase(1_000)], &samples(stolen_ns), |_| {});
    assert_eq!(judged_with(S / 20), AttemptVerdict::Valid);
    let in_words = "in a second, the hypervisor took 10 % of the CPU time";
    assert_eq!(judged_with(S / 5), disturbed(in_words));
}

#[test]
fn the_load_beside_is_judged_too() {
    let judged = |beside: Measured| {
        judged(&[phase(1_000)], &watch(0, 0), |evidence| evidence.beside = Some(&beside))
    };
    assert_eq!(judged(phase(1_000)), AttemptVerdict::Valid);
    let silent = judged(Measured { outcome: Outcome::default(), ..phase(0) });
    assert!(matches!(&silent, AttemptVerdict::Failed(why) if why.starts_with("the load beside: ")));
    let under_way = Outcome { in_flight: 1, ..Outcome::default() };
    assert_eq!(judged(Measured { outcome: under_way, ..phase(0) }), AttemptVerdict::Valid);
    let late = judged(phase(300_000_000));
    assert!(
        matches!(&late, AttemptVerdict::Disturbed(why)
            if why.starts_with("the load beside: the generator was late by ")),
        "{late:?}"
    );
}

#[test]
fn an_external_generator_does_not_disturb_itself() {
    // It uses a CPU of two, which the account has when it has ended.
    let sample = |n: u64| WatchSample {
        at_ns: n * S / 10,
        generator_cpu_ns: if n == 100 { 10 * S } else { 0 },
        all_cpu_ns: Some(n * S / 10),
        stolen_ns: Some(0),
        pressure_ns: Some(n * S / 20),
        ..WatchSample::default()
    };
    let watch = Watch { samples: (0..=100).map(sample).collect(), ..Watch::default() };
    assert_eq!(judged(&[phase(1_000)], &watch, |_| {}), AttemptVerdict::Valid);
}
