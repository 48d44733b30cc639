//! Costs of a request: samples, counters and responses are those of one window.

use super::*;
use kvant_base::tag::{Activity, Stage, Tag};
use kvant_load::outcome::Second;
use kvant_profiler::recording::{CpuSampling, Kind, Sample};

/// `count` responses in each of `intervals` of 100 ms, from the begin of a log.
fn tenths(counts: impl IntoIterator<Item = u64>) -> Vec<Interval> {
    let op = OpNames::default().intern("get");
    let interval = |(index, count): (usize, u64)| {
        let start_ns = index as u64 * SECOND / 10;
        let mut interval =
            Interval { start_ns, end_ns: start_ns + SECOND / 10, ..Interval::default() };
        interval.op_mut(op).response.record_many_ns(MS, count);
        interval.completed = count;
        interval
    };
    counts.into_iter().enumerate().map(interval).collect()
}

fn sum(intervals: &[Interval]) -> Interval {
    let mut total = Interval::default();
    intervals.iter().for_each(|interval| total.add(interval));
    total.name_ops(vec!["get".to_owned()]);
    total
}

/// Steps of one second each with 1,000 responses, at 0 and 3 s, and a load beside them that has 100
/// responses in the first step, 3,000 in the second, and many between them.
fn two_steps() -> Files {
    let mut files = files(MS, MS, 300 * MS);
    let mut first = files.load.phases[0].clone();
    first.outcome.measured_ns = SECOND;
    first.outcome.total.completed = 1_000;
    first.outcome.measure_start_ns = Some(START_NS);
    let mut second = first.clone();
    // The wall clock was set back meanwhile.
    second.outcome.start_wall_ms -= 3_600_000;
    second.outcome.measure_start_ns = Some(START_NS + 3 * SECOND);
    (first.label, second.label) = ("low".to_owned(), "high".to_owned());
    files.load.phases = vec![first, second];
    // It begins 500 ms before the first step.
    let counts = [[0; 5].as_slice(), &[10; 10], &[5_000; 20], &[300; 10]].concat();
    let intervals = tenths(counts);
    let outcome = Outcome {
        total: sum(&intervals),
        start_wall_ms: START_WALL_MS,
        measure_start_ns: Some(START_NS - 500 * MS),
        ..Outcome::default()
    };
    let mut beside = files.load.clone();
    beside.phases = vec![PhaseResult::of(&outcome, "", None)];
    files.beside = Some((beside, interval_log(&intervals)));
    let sample = |tenth: u64| WatchSample {
        at_ns: START_NS - SECOND + tenth * SECOND / 10,
        server_cpu_ns: Some(tenth * 30 * MS),
        ..WatchSample::default()
    };
    files.watch.samples = (0..60).map(sample).collect();
    files
}

#[test]
fn a_step_is_divided_by_the_responses_of_both_loads_within_it() {
    let mut fixture = Fixture::new(vec![case(0, "kvant", PhaseKind::Steps)]);
    fixture.attempt(0, 1, AttemptVerdict::Valid, two_steps());
    let report = fixture.report();
    let cost = |step: &str| {
        let figures = report.figures.iter().find(|figures| figures.step == step).unwrap();
        figures.cpu_per_request_ns.unwrap().median
    };
    // 300 ms of CPU time in each.
    assert_close(cost("low"), 300e6 / 1_100.0);
    assert_close(cost("high"), 300e6 / 4_000.0);
}

#[test]
fn errors_of_neither_load_are_in_the_divisor() {
    let mut files = two_steps();
    let second = |errors| Second { end_ns: SECOND, completed: 1_000, errors, ..Second::default() };
    for (phase, errors) in files.load.phases.iter_mut().zip([250, 0]) {
        phase.outcome.total.errors.status = errors;
        phase.outcome.seconds = vec![second(errors)];
    }
    let (beside, _) = files.beside.as_mut().unwrap();
    let total = &mut beside.phases[0].outcome.total;
    total.errors.status = total.completed / 2;
    let mut fixture = Fixture::new(vec![case(0, "kvant", PhaseKind::Steps)]);
    fixture.attempt(0, 1, AttemptVerdict::Valid, files);
    let costs: Vec<f64> = fixture
        .report()
        .figures
        .iter()
        .map(|figures| figures.cpu_per_request_ns.unwrap().median)
        .collect();
    assert_close(costs[0], 300e6 / (750.0 + 50.0));
    assert_close(costs[1], 300e6 / (1_000.0 + 1_500.0));
}

#[test]
fn layers_have_the_window_and_the_divisor_of_the_figures() {
    let mut files = two_steps();
    let tag = Tag { activity: Activity::Get, stage: Stage::Wal };
    let sample = |kind, at_ms: u64, length_ms: u64, weight: u64| Sample {
        kind,
        time_ns: at_ms * MS,
        duration_ns: length_ms * MS,
        tag,
        weight,
        ..Sample::default()
    };
    let wait = kvant_base::wait::WaitKind::Io;
    let mut recording = Recording {
        names: vec![String::new()],
        threads: vec![Default::default()],
        stacks: vec![recording::Stack { parent: 0, frame: 0 }],
        samples: vec![
            sample(Kind::Cpu, 100, 10, 240 * MS),
            sample(Kind::Alloc, 500, 0, 2_200),
            // Half of it is in the first step.
            sample(Kind::Wait(wait), 900, 200, 22 * MS),
            // The warm-up of the second step is in neither.
            sample(Kind::Cpu, 2_000, 10, 999 * MS),
            sample(Kind::Alloc, 2_500, 0, 9_999_999),
            sample(Kind::Cpu, 3_500, 10, 200 * MS),
        ],
        ..Recording::default()
    };
    recording.facts.started_wall_ns = START_WALL_MS * MS;
    recording.facts.duration_ns = 5 * SECOND;
    recording.facts.cpu =
        Some(CpuSampling { engine: "timer".to_owned(), period_ns: MS, has_kernel_frames: true });
    files.recording = Some(recording);
    let mut fixture = Fixture::new(vec![case(0, "kvant", PhaseKind::Steps)]);
    fixture.attempt(0, 1, AttemptVerdict::Valid, files);
    let report = fixture.report();
    let [low, high] = report.layers.as_slice() else { panic!("{:?}", report.layers) };
    assert_eq!((low.step.as_str(), high.step.as_str()), ("low", "high"));
    let of_get = &low.rows[0];
    assert_eq!((of_get.activity.as_str(), of_get.stage.as_str()), ("get", "wal"));
    assert_close(of_get.cpu_ns, 240e6 / 1_100.0);
    assert_close(of_get.allocated_bytes, 2.0);
    assert_close(of_get.waits_ns[0].1, 11e6 / 1_100.0);
    assert_close(high.rows[0].cpu_ns, 200e6 / 4_000.0);
    for (layers, figures) in report.layers.iter().zip(&report.figures) {
        let sum: f64 = layers.rows.iter().map(|row| row.cpu_ns).sum();
        assert_close(sum, figures.cpu_per_request_ns.unwrap().median);
    }
}

#[test]
fn counts_of_a_second_are_spread_over_its_columns() {
    let mut files = files(MS, MS, 1);
    files.hlog = interval_log(&tenths([100; 20]));
    let second = |index: u64, backlog: u64| Second {
        start_ns: index * SECOND,
        end_ns: (index + 1) * SECOND,
        planned: 1_005,
        errors: 4,
        backlog,
        ..Second::default()
    };
    files.load.phases[0].outcome.seconds = vec![second(0, 50), second(1, 0)];
    let mut fixture = Fixture::new(vec![case(0, "kvant", PhaseKind::Hold)]);
    fixture.attempt(0, 1, AttemptVerdict::Valid, files);
    let report = fixture.report();
    let columns = &report.time_lines[0].columns;
    assert_eq!(columns.len(), 20);
    for column in columns {
        assert_close(column.planned, 100.5);
        assert_close(column.errors, 0.4);
    }
    // It grows to 50 within the first second, and is gone at the end of the other.
    assert_close(columns[4].backlog, 25.0);
    assert_close(columns[9].backlog, 50.0);
    assert_close(columns[14].backlog, 25.0);
    assert_eq!(columns[19].backlog, 0.0);
}

#[test]
fn write_amplification_is_that_of_the_measured_time_of_a_step() {
    let mut files = two_steps();
    let stats = |tenth: u64, user: u64, written: u64| StatsSample {
        asked_ns: 0,
        at_ns: START_NS - SECOND + tenth * SECOND / 10,
        stats: json!({"engine": {
            "writes": {"user_bytes": user},
            "wal": {"written_bytes": user},
            "flushes": {"written_bytes": written},
            "compactions": {"written_bytes": 0},
        }}),
    };
    // Before the first step, at its begin, before the second step, at the end, at rest.
    files.stats = vec![
        stats(0, 0, 0),
        stats(9, 1_000, 9_000),
        stats(39, 2_000, 10_000),
        stats(49, 3_000, 10_000),
        stats(59, 3_000, 13_000),
    ];
    let mut fixture = Fixture::new(vec![case(0, "kvant", PhaseKind::Steps)]);
    fixture.attempt(0, 1, AttemptVerdict::Valid, files);
    let report = fixture.report();
    let found: Vec<f64> =
        report.figures.iter().map(|one| one.write_amplification.unwrap().median).collect();
    assert_eq!(found, [2.0, 4.0]);
}
