use super::*;
use crate::config::{LoadConfig, Phase};
use crate::op::OpNames;
use crate::record::Interval;
use crate::report::json::{ConfigFacts, HostFacts};
use crate::verdict::{Bound, Verdict};

const MS: u64 = 1_000_000;

fn config() -> ConfigFacts {
    let config = LoadConfig { thread_count: 2, connection_count: 64, ..LoadConfig::default() };
    ConfigFacts::of(&config, "workload mixed")
}

/// Ten seconds at `rate`: nine GETs of `get_ms` for each PUT of `put_ms`.
fn outcome(rate: Rate, get_ms: u64, put_ms: u64) -> Outcome {
    let names = OpNames::default();
    let mut total = Interval {
        end_ns: 10_000 * MS,
        planned: 1_000,
        sent: 1_000,
        completed: 1_000,
        cpu_ns: 5 * MS,
        ..Interval::default()
    };
    for (name, ms, count) in [("get", get_ms, 900), ("put", put_ms, 100)] {
        let op = total.op_mut(names.intern(name));
        op.response.record_many_ns(ms * MS, count);
        op.service.record_many_ns(ms * MS / 2, count);
        op.statuses = vec![(200, count)];
    }
    total.send_lag.record_many_ns(20_000, 1_000);
    total.name_ops(names.all());
    Outcome {
        phase: Phase { rate, ..Phase::default() },
        measured_ns: 10_000 * MS,
        total,
        ..Outcome::default()
    }
}

fn file(outcomes: &[Outcome]) -> ResultFile {
    let host = HostFacts { name: Some("box".to_owned()), cpu_count: 2, ..HostFacts::default() };
    let mut file = ResultFile::new(Vec::new(), host, config());
    let verdict = Verdict {
        bound: Bound::Neither,
        is_valid: true,
        late_percents: Vec::new(),
        shares: Vec::new(),
        disturbance: None,
        headline: "the plan was kept".to_owned(),
        sentences: Vec::new(),
    };
    file.phases =
        outcomes.iter().map(|outcome| PhaseResult::of(outcome, "", Some(&verdict))).collect();
    file
}

fn compared(a: &ResultFile, b: &ResultFile) -> Comparison {
    compare(a, b, ["a.json", "b.json"])
}

fn row<'a>(comparison: &'a Comparison, kind: &str, what: &str) -> &'a Row {
    let mut rows = comparison.rates[0].rows.iter();
    rows.find(|row| row.kind == kind && row.what == what)
        .unwrap_or_else(|| panic!("no {kind} {what}"))
}

#[test]
fn rows_have_both_figures_and_their_ratio() {
    let rate = Rate::Constant(100.0);
    let comparison = compared(&file(&[outcome(rate, 1, 10)]), &file(&[outcome(rate, 2, 5)]));
    assert!((row(&comparison, "", "response p50").ratio().unwrap() - 2.0).abs() < 0.01);
    assert!((row(&comparison, "", "response p99").ratio().unwrap() - 0.5).abs() < 0.01);
    assert!((row(&comparison, "get", "response p99").ratio().unwrap() - 2.0).abs() < 0.01);
    assert!((row(&comparison, "put", "service max").ratio().unwrap() - 0.5).abs() < 0.01);
    assert_eq!(row(&comparison, "", "answers").ratio(), Some(1.0));
    assert_eq!(comparison.warnings, Vec::<String>::new());
    let text = comparison.to_string();
    let line = text.lines().find(|line| line.contains("response p50")).unwrap();
    assert_eq!(line, "  response p50             1.00ms       2.00ms    2.000");
    assert!(text.starts_with("A: a.json\nB: b.json\n\n100/s: A 1 run, B 1 run\n"), "{text}");
}

#[test]
fn a_difference_of_single_runs_may_be_chance() {
    let rate = Rate::Constant(100.0);
    let comparison = compared(&file(&[outcome(rate, 1, 1)]), &file(&[outcome(rate, 9, 9)]));
    assert!(comparison.notes[0].contains("may be chance"), "{:?}", comparison.notes);
    assert!(!comparison.to_string().contains("apart\n"));
}

#[test]
fn repeats_are_observations_and_apart_if_their_ranges_are() {
    let rate = Rate::Constant(100.0);
    let runs = |get_ms: [u64; 3]| file(&get_ms.map(|get_ms| outcome(rate, get_ms, 50)));
    let comparison = compared(&runs([10, 14, 11]), &runs([22, 20, 15]));
    assert_eq!(comparison.rates[0].run_counts, [3, 3]);
    let median = row(&comparison, "", "response p50");
    let [a, b] = median.sides.map(Option::unwrap);
    assert!((a.median / 11e6 - 1.0).abs() < 0.001 && (b.median / 20e6 - 1.0).abs() < 0.001);
    assert!((a.max / 14e6 - 1.0).abs() < 0.001 && (b.min / 15e6 - 1.0).abs() < 0.001);
    assert!(median.is_apart());
    assert!(!row(&comparison, "put", "response p50").is_apart());
    let overlapping = compared(&runs([10, 14, 11]), &runs([12, 20, 15]));
    assert!(!row(&overlapping, "", "response p50").is_apart());
    let text = comparison.to_string();
    assert!(text.contains("11.00ms (10.00ms..14.00ms)") && text.contains(" apart\n"), "{text}");
    assert!(comparison.notes.iter().all(|note| !note.contains("chance")));
}

#[test]
fn rates_are_compared_with_the_same_rates() {
    let steps = |rates: &[f64], ms: u64| {
        let outcomes: Vec<Outcome> =
            rates.iter().map(|rate| outcome(Rate::Constant(*rate), ms, ms)).collect();
        file(&outcomes)
    };
    let comparison = compared(&steps(&[100.0, 200.0], 1), &steps(&[400.0, 200.05, 100.0], 2));
    let rates: Vec<Rate> = comparison.rates.iter().map(|rate| rate.rate).collect();
    assert_eq!(rates, [Rate::Constant(100.0), Rate::Constant(200.0)]);
    assert_eq!(comparison.warnings, ["Only b.json has 400/s."]);
    let nothing = compared(&steps(&[100.0], 1), &file(&[outcome(Rate::Closed, 1, 1)]));
    assert!(nothing.rates.is_empty());
    assert!(nothing.to_string().contains("no rate in common"));
}

#[test]
fn a_queue_for_connections_is_a_warning_although_the_plan_was_kept() {
    let mut queued = outcome(Rate::Constant(100.0), 1, 1);
    queued.total.ops[0].response.record_many_ns(300 * MS, 150);
    let comparison = compared(&file(&[outcome(Rate::Constant(100.0), 1, 1)]), &file(&[queued]));
    assert_eq!(comparison.warnings.len(), 1, "{:?}", comparison.warnings);
    let expected = "b.json, run 1 (100/s): one request of ten waited until a connection was free";
    assert!(comparison.warnings[0].starts_with(expected), "{:?}", comparison.warnings);
}

#[test]
fn reasons_to_doubt_are_warnings() {
    let rate = Rate::Constant(100.0);
    let a = file(&[outcome(rate, 1, 1)]);
    let mut saturated = outcome(rate, 500, 500);
    saturated.total.completed = 640;
    saturated.backlog = 360;
    saturated.unanswered.record_many_ns(3_000 * MS, 360);
    saturated.is_cut_short = true;
    saturated.measured_ns /= 2;
    let mut b = file(&[saturated]);
    b.config.connection_count = 1;
    b.config.requests = "script put.lua".to_owned();
    b.host.name = Some("other".to_owned());
    b.phases[0].verdict = Some(Verdict {
        bound: Bound::Generator,
        is_valid: false,
        late_percents: Vec::new(),
        disturbance: None,
        shares: Vec::new(),
        headline: "send lag was 40 % of latency".to_owned(),
        sentences: Vec::new(),
    });
    let comparison = compared(&a, &b);
    let text = comparison.to_string();
    for expected in [
        "Different connections: A 64, B 1.",
        "Different requests: A workload mixed, B script put.lua.",
        "Different machines: A box",
        "b.json, run 1 (100/s): it is not valid: send lag was 40 % of latency.",
        "b.json, run 1 (100/s): 64.0 % of the plan was answered",
        "b.json, run 1 (100/s): it was ended before its time.",
        "Different lengths at 100/s: A 10.0 s, B 5.0 s",
        "count what was not answered",
    ] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
    // Unanswered requests are included: 360 of 1,360 waited for three seconds.
    assert!(row(&comparison, "", "response p90").ratio().unwrap() > 2_900.0);
}

#[test]
fn a_percentile_of_few_values_is_marked() {
    let rate = Rate::Constant(100.0);
    let comparison = compared(&file(&[outcome(rate, 1, 1)]), &file(&[outcome(rate, 1, 1)]));
    assert!(!row(&comparison, "", "response p99").is_thin);
    assert!(row(&comparison, "", "response p99.9").is_thin);
    assert!(row(&comparison, "put", "response p99").is_thin);
    assert!(!row(&comparison, "", "response max").is_thin);
    assert!(comparison.to_string().contains("~ rests on fewer than 10 values"));
}

#[test]
fn a_baseline_is_all_phases_of_the_rate_together() {
    let rate = Rate::Constant(100.0);
    let file =
        file(&[outcome(rate, 1, 1), outcome(Rate::Constant(300.0), 7, 7), outcome(rate, 3, 3)]);
    let base = baseline(&file, rate).unwrap();
    assert_eq!(base.response().count(), 2_000);
    assert_eq!(base.rate_achieved(), 100.0);
    assert!((base.response().percentile_ns(99.0) as f64 / 3e6 - 1.0).abs() < 0.001);
    assert!(baseline(&file, Rate::Constant(250.0)).is_none());
    assert!(baseline(&file, Rate::Closed).is_none());
}

#[test]
fn a_kind_of_one_side_has_no_ratio() {
    let rate = Rate::Constant(100.0);
    let mut renamed = outcome(rate, 1, 1);
    renamed.total.ops[1].name = "post".to_owned();
    let comparison = compared(&file(&[outcome(rate, 1, 1)]), &file(&[renamed]));
    assert_eq!(row(&comparison, "put", "response p50").ratio(), None);
    assert_eq!(row(&comparison, "post", "response p50").ratio(), None);
    assert!(
        comparison
            .to_string()
            .lines()
            .any(|line| line.contains("response p50") && line.ends_with(" -"))
    );
}
