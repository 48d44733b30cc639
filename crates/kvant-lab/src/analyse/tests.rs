//! Run directories written by the generator's own writers, with known values, and the figures that
//! they must give.

mod evidence;
mod repeats;
mod sides;
mod windows;

use super::*;
use crate::model::Measured;
use crate::record::{
    Attempt, AttemptVerdict, Axis, EventFacts, FORMAT, Known, RunState, StatsSample, SubjectFacts,
    VERSION, Watch, WatchSample, WorkloadFacts,
};
use kvant_load::report::hlog::HlogWriter;
use kvant_load::report::json::{
    ConfigFacts, FindMaxFacts, HostFacts, PhaseResult, PointFacts, ResultFile,
};
use kvant_load::{Histogram, Interval, LoadConfig, OpNames, Outcome, Phase, Rate};
use kvant_profiler::recording::{self, Recording};
use serde::Serialize;
use serde_json::json;
use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

const MS: u64 = 1_000_000;
const SECOND: u64 = 1_000 * MS;
/// Begin of the measured time on the monotonic clock.
const START_NS: u64 = 50 * SECOND;
const START_WALL_MS: u64 = 1_700_000_000_000;

/// A run directory, removed at the end.
struct Fixture {
    dir: PathBuf,
    run: Run,
    journal: String,
    attempt_count: u32,
}

impl Drop for Fixture {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.dir).unwrap();
    }
}

impl Fixture {
    fn new(cases: Vec<Case>) -> Fixture {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let dir = std::env::temp_dir().join(format!("kvant-lab-{}-{number}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        let mut subjects: Vec<SubjectFacts> = Vec::new();
        for case in &cases {
            if !subjects.iter().any(|subject| subject.name == case.subject) {
                subjects.push(SubjectFacts { name: case.subject.clone(), ..Default::default() });
            }
        }
        let run = Run {
            format: FORMAT.to_owned(),
            version: VERSION,
            program_version: "0".to_owned(),
            plan: "test".to_owned(),
            title: "A test".to_owned(),
            plan_checksum: "00000000".to_owned(),
            started_wall_ms: START_WALL_MS,
            ended_wall_ms: None,
            state: RunState::Complete,
            shortened: Vec::new(),
            seed: 1,
            host: HostFacts::default(),
            server_cpus: vec![0],
            generator_cpus: vec![1],
            objectives: vec!["p99<5ms".to_owned()],
            repeats: 3,
            subjects,
            data: None,
            workloads: vec![WorkloadFacts { name: "get".to_owned(), ..Default::default() }],
            sweep: Vec::new(),
            cases,
            known: Vec::new(),
            comparison: None,
            intervention: None,
            what_if: None,
            identity: Default::default(),
            fsyncs: Vec::new(),
        };
        Fixture { dir, run, journal: String::new(), attempt_count: 0 }
    }

    /// Writes an attempt with its files.
    fn attempt(&mut self, case: usize, repeat: u32, verdict: AttemptVerdict, files: Files) -> u32 {
        self.attempt_count += 1;
        let number = self.attempt_count;
        let attempt = Attempt {
            seed: 1,
            clock: None,
            notes: Vec::new(),
            number,
            case,
            repeat,
            try_count: 1,
            start_ns: START_NS - SECOND,
            end_ns: START_NS + 10 * SECOND,
            measure_start_ns: START_NS,
            start_wall_ms: START_WALL_MS - 1_000,
            rate_per_s: None,
            verdict,
        };
        self.journal += &(serde_json::to_string(&attempt).unwrap() + "\n");
        let dir = self.dir.join(format!("attempts/{number:04}"));
        fs::create_dir_all(&dir).unwrap();
        let write = |name: &str, text: String| fs::write(dir.join(name), text).unwrap();
        write("load.json", files.load.to_json());
        fs::write(dir.join("load.hlog"), files.hlog).unwrap();
        write("watch.json", json(&files.watch));
        write("stats.json", json(&files.stats));
        write("events.json", json(&files.events));
        if let Some((beside, log)) = files.beside {
            write("beside.json", beside.to_json());
            fs::write(dir.join("beside.hlog"), log).unwrap();
        }
        if let Some(recording) = files.recording {
            fs::write(dir.join("profile.kprof"), recording::encode(&recording)).unwrap();
        }
        number
    }

    fn report(&self) -> Report {
        fs::write(self.dir.join("run.json"), json(&self.run)).unwrap();
        fs::write(self.dir.join("journal.jsonl"), &self.journal).unwrap();
        analyse(&self.dir).unwrap()
    }
}

fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap()
}

struct Files {
    load: ResultFile,
    hlog: Vec<u8>,
    watch: Watch,
    stats: Vec<StatsSample>,
    events: Vec<EventFacts>,
    beside: Option<(ResultFile, Vec<u8>)>,
    recording: Option<Recording>,
}

fn case(id: usize, subject: &str, kind: PhaseKind) -> Case {
    Case {
        id,
        subject: subject.to_owned(),
        workload: "get".to_owned(),
        phase: "hold".to_owned(),
        kind,
        duration_ns: 2 * SECOND,
        ..Case::default()
    }
}

/// Two seconds with 1,000 responses each: 990 of `fast_ns`, 10 of `slow_ns` in the second one.
fn two_seconds(fast_ns: u64, slow_ns: u64) -> (Outcome, Vec<Interval>) {
    let op = OpNames::default().intern("get");
    let second = |index: u64, slow: u64| {
        let mut interval = Interval {
            start_ns: index * SECOND,
            end_ns: (index + 1) * SECOND,
            planned: 1_000,
            sent: 1_000,
            completed: 1_000,
            ..Interval::default()
        };
        let record = interval.op_mut(op);
        record.response.record_many_ns(fast_ns, 1_000 - slow);
        record.response.record_many_ns(slow_ns, slow);
        record.service.record_many_ns(fast_ns, 1_000);
        (0..1_000).for_each(|_| record.count_status(200));
        interval
    };
    let intervals = vec![second(0, 0), second(1, 20)];
    let mut total = Interval { end_ns: 2 * SECOND, ..Interval::default() };
    intervals.iter().for_each(|interval| total.add(interval));
    total.name_ops(vec!["get".to_owned()]);
    let outcome = Outcome {
        phase: Phase {
            rate: Rate::Constant(1_000.0),
            duration: Duration::from_secs(2),
            ..Phase::default()
        },
        start_wall_ms: START_WALL_MS,
        measured_ns: 2 * SECOND,
        total,
        ..Outcome::default()
    };
    (outcome, intervals)
}

fn interval_log(intervals: &[Interval]) -> Vec<u8> {
    let mut log = Vec::new();
    let mut hlog = HlogWriter::new(&mut log);
    for interval in intervals {
        let now_ms = START_WALL_MS + interval.end_ns / MS;
        hlog.write(interval, &["get".to_owned()], now_ms).unwrap();
    }
    log
}

fn files(fast_ns: u64, slow_ns: u64, cpu_ns_per_s: u64) -> Files {
    let (outcome, intervals) = two_seconds(fast_ns, slow_ns);
    let config = ConfigFacts::of(&LoadConfig::default(), "workload get");
    let mut load = ResultFile::new(Vec::new(), HostFacts::default(), config);
    load.phases.push(PhaseResult::of(&outcome, "", None));
    let log = interval_log(&intervals);
    let sample = |second: u64| WatchSample {
        at_ns: START_NS - SECOND + second * SECOND,
        server_cpu_ns: Some(second * cpu_ns_per_s),
        server_rss_bytes: Some(1_000 * second),
        server_written_bytes: Some(second * 64_000),
        server_voluntary_switches: Some(second * 500),
        server_involuntary_switches: Some(second * 250),
        all_cpu_ns: Some(second * cpu_ns_per_s),
        stolen_ns: Some(0),
        ..WatchSample::default()
    };
    let stats = |at_ns: u64, user: u64, written: u64| StatsSample {
        asked_ns: at_ns,
        at_ns,
        stats: json!({"engine": {
            "writes": {"user_bytes": user},
            "wal": {"written_bytes": written},
            "flushes": {"written_bytes": written},
            "compactions": {"written_bytes": written, "debt_bytes": 7},
        }}),
    };
    Files {
        load,
        hlog: log,
        watch: Watch { samples: (0..6).map(sample).collect(), ..Watch::default() },
        stats: vec![stats(START_NS, 100, 50), stats(START_NS + SECOND, 1_100, 1_050)],
        events: vec![EventFacts {
            kind: "flush".to_owned(),
            start_ns: START_NS + 1_200 * MS,
            end_ns: Some(START_NS + 1_700 * MS),
            fields: [("level".to_owned(), json!(0))].into(),
        }],
        beside: None,
        recording: None,
    }
}

#[track_caller]
fn assert_close(found: f64, expected: f64) {
    assert!((found - expected).abs() <= expected.abs() * 0.002, "{found} is not {expected}");
}

#[track_caller]
fn percentile(report: &Report, case: usize, name: &str) -> model::Measured {
    let figures = report.figures.iter().find(|figures| figures.case == case).unwrap();
    figures.response_ns.iter().find(|(known, _)| known == name).unwrap().1
}

#[test]
fn figures_are_medians_of_valid_repeats() {
    let mut fixture = Fixture::new(vec![case(0, "kvant", PhaseKind::Hold)]);
    fixture.attempt(0, 1, AttemptVerdict::Valid, files(MS, 8 * MS, 100 * MS));
    let bad = AttemptVerdict::Disturbed("stolen".to_owned());
    fixture.attempt(0, 2, bad, files(500 * MS, 800 * MS, 900 * MS));
    fixture.attempt(0, 2, AttemptVerdict::Valid, files(2 * MS, 9 * MS, 200 * MS));
    fixture.attempt(0, 3, AttemptVerdict::Valid, files(3 * MS, 7 * MS, 400 * MS));
    let report = fixture.report();
    let p50 = percentile(&report, 0, "p50");
    assert_close(p50.median, 2e6);
    assert_close(p50.min, 1e6);
    assert_close(p50.max, 3e6);
    // 20 of 2,000 are slow: the 99th percentile is still fast, the 99.9th is not.
    assert_close(percentile(&report, 0, "p99").median, 2e6);
    assert_close(percentile(&report, 0, "p99.9").median, 8e6);
    let figures = &report.figures[0];
    assert_eq!((figures.attempts.as_slice(), figures.disturbed), (&[1, 3, 4][..], 1));
    assert_close(figures.achieved_per_s.median, 1_000.0);
    assert_close(figures.goodput_per_s.median, 1_000.0);
    // 200 ms a second over two seconds, by 2,000 responses.
    assert_close(figures.cpu_per_request_ns.unwrap().median, 200_000.0);
    // Until the last sample, two seconds after the end of the load.
    assert_close(figures.cpu_with_later_work_ns.unwrap().median, 400_000.0);
    assert_close(figures.disk_written_per_request_bytes.unwrap().median, 64.0);
    assert_close(figures.switches_per_request.unwrap().median, 0.75);
    assert_close(figures.rss_max_bytes.unwrap().median, 3_000.0);
    assert_close(figures.write_amplification.unwrap().median, 3.0);
    assert_eq!(figures.ops[0].statuses, [(200, 6_000)]);
    assert!(report.warnings[0].en.starts_with("1 attempts were disturbed"), "{report:#?}");
}

#[test]
fn spectra_merge_the_repeats() {
    let mut fixture = Fixture::new(vec![case(0, "kvant", PhaseKind::Hold)]);
    fixture.attempt(0, 1, AttemptVerdict::Valid, files(MS, 8 * MS, 1));
    fixture.attempt(0, 2, AttemptVerdict::Valid, files(3 * MS, 8 * MS, 1));
    let report = fixture.report();
    let spectrum = report.spectra.iter().find(|one| one.what == "response").unwrap();
    assert_eq!(spectrum.count, 4_000);
    let at = |inverse: f64| {
        let found = spectrum.points.iter().find(|(of, _)| *of >= inverse).unwrap();
        found.1 as f64
    };
    // 1,980 values of 1 ms, 1,980 of 3 ms, 40 of 8 ms.
    assert_close(at(1.0), 1e6);
    assert_close(at(2.0), 3e6);
    assert_close(at(120.0), 8e6);
    assert_eq!(spectrum.points.last().unwrap().0, 4_000.0);
}

#[test]
fn comparisons_pair_the_same_repeats() {
    let cases = vec![case(0, "kvant", PhaseKind::Hold), case(1, "java", PhaseKind::Hold)];
    let mut fixture = Fixture::new(cases);
    // The machine is slower in the second repeat: the ratio is 3 in both.
    fixture.attempt(0, 1, AttemptVerdict::Valid, files(MS, MS, 10 * MS));
    fixture.attempt(1, 1, AttemptVerdict::Valid, files(MS, MS, 30 * MS));
    fixture.attempt(0, 2, AttemptVerdict::Valid, files(MS, MS, 40 * MS));
    fixture.attempt(1, 2, AttemptVerdict::Valid, files(MS, MS, 120 * MS));
    // Without a partner.
    fixture.attempt(1, 3, AttemptVerdict::Valid, files(MS, MS, MS));
    let report = fixture.report();
    let cpu = report.comparisons.iter().find(|one| one.figure == "cpu_per_request").unwrap();
    assert_eq!((cpu.base.as_str(), cpu.other.as_str(), cpu.ratio.count), ("kvant", "java", 2));
    assert_close(cpu.ratio.median, 3.0);
}

fn search(rate: Option<f64>, failed: f64) -> Files {
    let mut files = files(MS, 2 * MS, 1);
    let mut at_80 = files.load.phases[0].clone();
    at_80.label = "80 %".to_owned();
    at_80.outcome.start_wall_ms += 5_000;
    files.load.phases[0].label = "confirmation".to_owned();
    files.load.phases.push(at_80);
    let point = |rate_per_s: f64, is_met: bool| PointFacts {
        purpose: "step".to_owned(),
        rate_per_s,
        achieved_per_s: rate_per_s,
        is_met,
        reasons: Vec::new(),
        generator: None,
        disturbance: None,
    };
    files.load.find_max = Some(FindMaxFacts {
        goals: vec!["p99<5ms".to_owned()],
        rate_max_per_s: rate,
        is_confirmed: true,
        saturation_per_s: 9_000.0,
        limit: "server".to_owned(),
        reasons: vec!["p99 was 9 ms".to_owned()],
        points: vec![point(rate.unwrap_or(0.0), true), point(failed, false)],
    });
    files
}

#[test]
fn searches_without_a_rate_are_counted() {
    let mut fixture = Fixture::new(vec![case(0, "kvant", PhaseKind::FindMax)]);
    fixture.attempt(0, 1, AttemptVerdict::Valid, search(Some(5_000.0), 5_150.0));
    fixture.attempt(0, 2, AttemptVerdict::Valid, search(None, 50.0));
    fixture.attempt(0, 3, AttemptVerdict::Valid, search(None, 50.0));
    let report = fixture.report();
    let maximum = &report.maxima[0];
    assert_eq!((maximum.search_count, maximum.rate_per_s.unwrap().count), (3, 1));
    let warned =
        |warning: &crate::model::Text| warning.en.contains("no rate holds in 2 of 3 searches");
    assert!(report.warnings.iter().any(warned), "{:?}", report.warnings);
}

#[test]
fn notes_of_attempts_that_count_are_a_warning() {
    let mut fixture = Fixture::new(vec![case(0, "kvant", PhaseKind::Hold)]);
    fixture.attempt(0, 1, AttemptVerdict::Valid, files(MS, MS, 1));
    fixture.attempt(0, 2, AttemptVerdict::Valid, files(MS, MS, 1));
    let warnings = |fixture: &Fixture| fixture.report().warnings;
    let is_noted = |warning: &crate::model::Text| warning.en.contains("have notes in the journal");
    assert!(!warnings(&fixture).iter().any(is_noted));
    let last = fixture.journal.rfind("[]").unwrap();
    fixture.journal.replace_range(last..last + 2, "[\"it did not come to rest\"]");
    let warnings = warnings(&fixture);
    let noted = warnings.iter().find(|warning| is_noted(warning)).unwrap();
    assert!(noted.en.ends_with("first 2: it did not come to rest."), "{}", noted.en);
}

#[test]
fn a_maximum_has_the_interval_of_its_repeats() {
    let mut fixture = Fixture::new(vec![case(0, "kvant", PhaseKind::FindMax)]);
    fixture.attempt(0, 1, AttemptVerdict::Valid, search(Some(5_000.0), 5_150.0));
    fixture.attempt(0, 2, AttemptVerdict::Valid, search(Some(5_100.0), 5_200.0));
    fixture.attempt(0, 3, AttemptVerdict::Valid, search(Some(4_900.0), 5_050.0));
    let report = fixture.report();
    let maximum = &report.maxima[0];
    let found = maximum.rate_per_s.unwrap();
    assert_eq!((found.median, found.min, found.max, found.count), (5_000.0, 4_900.0, 5_100.0, 3));
    // From the least that a search found to the least rate above all of them that failed.
    assert_eq!(maximum.interval_per_s, Some((4_900.0, 5_150.0)));
    assert_eq!(report.figures.len(), 1, "of a search, the run at 80 % is a figure");
    assert_eq!(report.figures[0].step, "80 %");
    let verdict = &report.verdict[0];
    assert_eq!(
        verdict.en,
        "kvant, get, hold holds 5,000/s (4,900/s held, 5,150/s failed) within p99<5ms; the server \
         was the limit."
    );
    assert!(verdict.ru.contains("держит 5,000/s"), "{}", verdict.ru);
}

/// A closed loop is a maximum as well as a search is.
#[test]
fn a_rate_near_that_of_a_closed_loop_is_called_saturated() {
    let cases = vec![case(0, "kvant", PhaseKind::Closed), case(1, "kvant", PhaseKind::Hold)];
    let mut fixture = Fixture::new(cases);
    let mut closed = files(MS, 8 * MS, 1);
    closed.load.phases[0].outcome.phase.rate = Rate::Closed;
    fixture.attempt(0, 1, AttemptVerdict::Valid, closed);
    fixture.attempt(1, 1, AttemptVerdict::Valid, files(MS, 8 * MS, 1));
    let report = fixture.report();
    let mut saturated = report.observations.iter().filter(|one| one.rule == "saturated");
    let sentence = &saturated.next().expect("both have 1,000 responses a second").text.en;
    assert!(sentence.contains("held at 100 % of the maximum"), "{sentence}");
    assert!(saturated.next().is_none(), "the closed loop itself has no planned rate");
}

#[test]
fn a_search_without_a_rate_has_no_maximum() {
    let mut fixture = Fixture::new(vec![case(0, "kvant", PhaseKind::FindMax)]);
    fixture.attempt(0, 1, AttemptVerdict::Valid, search(None, 100.0));
    let report = fixture.report();
    assert_eq!(report.maxima[0].rate_per_s, None);
    assert_eq!(report.maxima[0].interval_per_s, None);
}

#[test]
fn a_sweep_is_a_table_with_its_best_cell() {
    let cells = [("1", "64"), ("1", "256"), ("2", "64"), ("2", "256")];
    let cases = cells.iter().enumerate().map(|(id, (workers, queue))| Case {
        // The last axis is of another part of the plan.
        cell: [*workers, *queue, ""].map(str::to_owned).to_vec(),
        ..case(id, "kvant", PhaseKind::Hold)
    });
    let mut fixture = Fixture::new(cases.collect());
    let axis = |name: &str, values: [&str; 2]| Axis {
        name: name.to_owned(),
        values: values.map(str::to_owned).to_vec(),
    };
    fixture.run.sweep = vec![
        axis("workers", ["1", "2"]),
        axis("queue-capacity", ["64", "256"]),
        axis("overload", ["reject", "adaptive"]),
    ];
    for (id, p99_ms) in [(0, 9), (1, 4), (2, 3), (3, 6)] {
        fixture.attempt(id, 1, AttemptVerdict::Valid, files(p99_ms * MS, 10 * MS, 1));
    }
    let report = fixture.report();
    let sweep = report.sweeps.iter().find(|sweep| sweep.figure == "p99").unwrap();
    assert_eq!(sweep.best, Some(vec!["2".to_owned(), "64".to_owned()]));
    assert_eq!(sweep.axes, fixture.run.sweep[..2]);
    assert_close(sweep.cells[1].1.unwrap().median, 4e6);
    let text = crate::markdown::markdown(&report, Default::default(), None);
    let rows: Vec<&str> = text.lines().filter(|line| line.contains("**")).collect();
    assert!(rows.iter().any(|row| row.starts_with("| 2 | **3.00 ms** | 6.00 ms |")), "{rows:?}");
}

#[test]
fn a_time_line_has_columns_series_and_events() {
    let mut fixture = Fixture::new(vec![case(0, "kvant", PhaseKind::Hold)]);
    fixture.attempt(0, 1, AttemptVerdict::Valid, files(MS, 50 * MS, 250 * MS));
    let report = fixture.report();
    let line = &report.time_lines[0];
    assert_eq!((line.start_ns, line.length_ns), (START_NS, 2 * SECOND));
    assert_eq!(line.columns.len(), 2);
    let counted: u64 = line.columns.iter().flat_map(|one| &one.counts).map(|(_, n)| n).sum();
    assert_eq!(counted, 2_000);
    let slow = &line.columns[1].counts;
    assert_eq!(slow.len(), 2, "{slow:?}");
    let row = line.rows_ns[slow[1].0 as usize]..line.rows_ns[slow[1].0 as usize + 1];
    assert!(row.contains(&(50 * MS)), "{row:?}");
    assert_eq!(slow[1].1, 20);
    let cpu = line.series.iter().find(|series| series.name == "server_cpu").unwrap();
    assert_close(cpu.points[0].1, 0.25);
    let debt = line.series.iter().find(|series| series.name == "debt_bytes").unwrap();
    assert_eq!(debt.points, [(0, 7.0), (SECOND, 7.0)]);
    assert_eq!(line.lanes[0].name, "flush");
    assert_eq!(line.lanes[0].spans[0], (1_200 * MS, 1_700 * MS, "level 0".to_owned()));
}

#[test]
fn figures_of_others_stand_beside_ours() {
    let mut fixture = Fixture::new(vec![case(0, "kvant", PhaseKind::Hold)]);
    fixture.run.known = vec![Known {
        workload: "get".to_owned(),
        what: "GET".to_owned(),
        figure: "p50".to_owned(),
        value: 19.0,
        source: "seed 002".to_owned(),
        ..Known::default()
    }];
    fixture.attempt(0, 1, AttemptVerdict::Valid, files(MS, 2 * MS, 1));
    let report = fixture.report();
    let row = &report.known[0];
    assert_eq!((row.unit.as_str(), row.theirs), ("ms", 19.0));
    assert_eq!(row.ours[0].0, "kvant");
    assert_close(row.ours[0].1, 1.0);
}

#[test]
fn a_partial_run_gives_a_report_that_says_so() {
    let cases = vec![case(0, "kvant", PhaseKind::Hold), case(1, "kvant", PhaseKind::FindMax)];
    let mut fixture = Fixture::new(cases);
    fixture.attempt(0, 1, AttemptVerdict::Valid, files(MS, 2 * MS, 1));
    fixture.run.state = RunState::Interrupted { reason: "SIGINT".to_owned() };
    // The process ended while it wrote the next line.
    fixture.journal += "{\"number\": 2, \"ca";
    let report = fixture.report();
    assert_eq!(report.figures.len(), 1);
    let warnings: Vec<&str> = report.warnings.iter().map(|text| text.en.as_str()).collect();
    assert_eq!(
        warnings,
        ["The run ended early: SIGINT", "1 of 2 cases have no valid attempt: kvant, get, hold.",]
    );
}

#[test]
fn the_authors_notes_survive_a_rebuild() {
    let mut fixture = Fixture::new(vec![case(0, "kvant", PhaseKind::Hold)]);
    fixture.attempt(0, 1, AttemptVerdict::Valid, files(MS, 2 * MS, 1));
    let report = fixture.report();
    let first = crate::markdown::markdown(&report, Default::default(), None);
    let edited = first.replace("<!-- notes -->", "<!-- notes -->\nThe disk was slow.\n");
    let language = crate::report::Language::Russian;
    let second = crate::markdown::markdown(&report, language, Some(&edited));
    assert_eq!(second.matches("The disk was slow.").count(), 1, "{second}");
    assert!(second.contains("## Заметки"), "{second}");
    assert!(second.contains("| случай |") && !second.contains("| case |"), "{second}");
}

#[test]
fn refusals_and_other_responses_have_service_times_of_their_own() {
    let mut fixture = Fixture::new(vec![case(0, "kvant", PhaseKind::Hold)]);
    let mut files = files(MS, 2 * MS, SECOND / 10);
    let phase = &mut files.load.phases[0];
    let op = &mut phase.outcome.total.ops[0];
    // All 2,000 took 1 ms so far; 500 more are refused after 3 ms.
    let mut refused = Histogram::new();
    refused.record_many_ns(3 * MS, 500);
    op.service.add(&refused);
    phase.service = op.service.clone();
    op.service_failed = Some(refused);
    fixture.attempt(0, 1, AttemptVerdict::Valid, files);
    let report = fixture.report();
    let figures = &report.figures[0];
    let is_about = |measured: &Measured, ns: u64| (measured.median - ns as f64).abs() < 1e4;
    assert!(is_about(&figures.service_p99_ns, 3 * MS), "{figures:?}");
    assert!(is_about(&figures.service_succeeded_p99_ns, MS), "{figures:?}");
    assert!(is_about(&figures.service_failed_p99_ns.unwrap(), 3 * MS), "{figures:?}");
    let finding = report.observations.iter().find(|found| found.rule == "refusals").unwrap();
    assert!(finding.text.en.contains("p99 of error statuses is 3.00 ms, of others 1.00 ms"));
}
