//! A made-up report: two servers, a sweep of four by four, a search and a held rate for each of two
//! workloads. Determined by a seed.

mod interventions;
mod known;
mod times;
mod what_if;

use kvant_env::rng::Rng;
use kvant_lab::model::*;
use kvant_lab::record::*;
use kvant_load::report::json::HostFacts;
use kvant_profiler::recording::Recording;
use std::collections::BTreeMap;

const SECOND_NS: u64 = 1_000_000_000;
const SECONDS: u64 = 60;
const COLUMNS_PER_SECOND: u64 = 10;
const START_NS: u64 = 7_200 * SECOND_NS;
/// The recording begins before the measured time.
pub(crate) const RECORDING_LEAD_NS: u64 = SECOND_NS / 2;
const WORKERS: [&str; 4] = ["1", "2", "4", "8"];
const QUEUES: [&str; 4] = ["16", "64", "256", "1024"];
const SUBJECTS: [&str; 2] = ["pool", "selectors"];
const WORKLOADS: [&str; 2] = ["put-random", "get-existing"];
/// The cell that the time lines are of.
const CELL: usize = 2 * 4 + 2;
const TIME_LINE_COUNT: usize = 12;
pub(crate) const RECORDING_COUNT: usize = 4;

fn text(en: &str, ru: &str) -> Text {
    Text { en: en.to_owned(), ru: ru.to_owned() }
}

/// A median with a spread of `part`.
fn about(median: f64, part: f64) -> Measured {
    Measured { median, min: median * (1.0 - part), max: median * (1.0 + part), count: 3 }
}

fn strings(all: &[&str]) -> Vec<String> {
    all.iter().map(|one| (*one).to_owned()).collect()
}

struct Maker {
    rng: Rng,
}

impl Maker {
    /// Uniform in -1..1.
    fn noise(&mut self) -> f64 {
        (self.rng.next_u64() >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    }
}

/// The highest rate of a case.
fn rate_max(case: &Case) -> f64 {
    let index = |values: &[&str; 4], at: usize| {
        values.iter().position(|value| *value == case.cell[at]).expect("a value of the axis")
    };
    let workers = [0.52, 0.83, 1.0, 0.91][index(&WORKERS, 0)];
    let queue = [0.78, 0.93, 1.0, 0.97][index(&QUEUES, 1)];
    let subject = if case.subject == "pool" { 31_700.0 } else { 36_400.0 };
    let workload = if case.workload == "put-random" { 1.0 } else { 1.42 };
    subject * workers * queue * workload
}

/// Response times at a part of the highest rate: of half of all, of 99 %, of 99.9 %, in
/// milliseconds.
fn latency(part: f64, factor: f64) -> [f64; 3] {
    let queue = 1.0 / (1.0 - part.min(0.985));
    let collapse = if part > 1.0 { 1.0 + 90.0 * (part - 1.0) } else { 1.0 };
    [0.21, 0.74, 2.1].map(|base| factor * collapse * base * (0.8 + 0.2 * queue))
}

/// The time line's recording; its spans are events of all time lines.
pub(crate) fn report(spans_of: &Recording) -> Report {
    let mut maker = Maker { rng: Rng::new(3) };
    let run = run();
    let attempts = attempts(&run);
    let maxima = run.cases.iter().filter(|case| case.kind == PhaseKind::FindMax).map(maximum);
    let maxima = maxima.collect();
    let holds: Vec<&Case> = run.cases.iter().filter(|case| case.kind == PhaseKind::Hold).collect();
    let shown: Vec<&Case> = holds.iter().copied().filter(|case| is_shown(case)).collect();
    // The cells of the time lines first, then others.
    let mut in_order = shown.clone();
    in_order.extend(holds.iter().copied().filter(|case| !is_shown(case)));
    let time_lines: Vec<TimeLine> = in_order[..TIME_LINE_COUNT]
        .iter()
        .enumerate()
        .map(|(index, case)| maker.time_line(case, index, spans_of))
        .collect();
    Report {
        format: kvant_lab::model::FORMAT.to_owned(),
        version: kvant_lab::model::VERSION,
        verdict: vec![
            text(
                "`selectors` holds 36,400 PUT/s with p99 under 5 ms, 15 % more than `pool` (31,700).",
                "`selectors` держит 36 400 PUT/с при p99 меньше 5 мс: на 15 % больше, чем `pool` (31 700).",
            ),
            text(
                "At 80 % of its maximum the p99 is 1.3 ms and the p99.9 is 3.7 ms; 61 % of the time above 5 ms falls into write stalls.",
                "На 80 % максимума p99 равен 1,3 мс, p99.9 равен 3,7 мс; 61 % времени выше 5 мс приходится на остановки записи.",
            ),
            text(
                "The server's CPU is the limit: the generator used 41 % of its own, and nothing disturbed the counted runs.",
                "Предел задаёт процессор сервера: генератор занял 41 % своего, засчитанные прогоны ничто не нарушало.",
            ),
        ],
        warnings: vec![
            text(
                "3 of 387 attempts were disturbed by other processes and repeated.",
                "3 попытки из 387 нарушены другими процессами и повторены.",
            ),
            text(
                "`--quick`: measured times were shortened from 60 s to 20 s in searches.",
                "`--quick`: измерения в поиске сокращены с 60 с до 20 с.",
            ),
        ],
        environment: environment(),
        maxima,
        curves: curves(&run),
        figures: run.cases.iter().map(figures).collect(),
        comparisons: comparisons(&run),
        sides: None,
        interventions: Some(interventions::interventions()),
        what_if: Some(what_if::what_if()),
        sweeps: sweeps(&run),
        spectra: shown.iter().flat_map(|case| spectra(case)).collect(),
        layers: shown.iter().map(|case| layers(case)).collect(),
        time_lines,
        known: known::known(),
        observations: observations(&run),
        wrk2: shown.iter().map(|case| wrk2(case)).collect(),
        files: strings(&[
            "plan.toml",
            "run.json",
            "journal.jsonl",
            "report.json",
            "report.md",
            "attempts/0042/load.hlog",
            "attempts/0042/load.json",
            "attempts/0042/profile.kprof",
        ]),
        run,
        attempts,
    }
}

fn is_shown(case: &Case) -> bool {
    case.cell == [WORKERS[CELL / 4], QUEUES[CELL % 4]]
}

fn run() -> Run {
    let mut cases = Vec::new();
    for workers in WORKERS {
        for queue in QUEUES {
            for subject in SUBJECTS {
                for workload in WORKLOADS {
                    for (phase, kind) in
                        [("maximum", PhaseKind::FindMax), ("hold-80", PhaseKind::Hold)]
                    {
                        cases.push(Case {
                            id: cases.len(),
                            subject: subject.to_owned(),
                            cell: strings(&[workers, queue]),
                            workload: workload.to_owned(),
                            phase: phase.to_owned(),
                            kind,
                            rate_per_s: None,
                            duration_ns: SECONDS * SECOND_NS,
                            sped_up: None,
                        });
                    }
                }
            }
        }
    }
    let subject = |name: &str, dispatch: &str| SubjectFacts {
        name: name.to_owned(),
        kind: "kvant".to_owned(),
        command: format!("kvant serve --dispatch {dispatch} --memory 256MiB"),
        version: Some("0.1.0".to_owned()),
        left_out: None,
        killed_count: 0,
    };
    let workload = |name: &str, requests: &str| WorkloadFacts {
        name: name.to_owned(),
        requests: requests.to_owned(),
        connection_count: 64,
        thread_count: 1,
    };
    Run {
        format: kvant_lab::record::FORMAT.to_owned(),
        version: kvant_lab::record::VERSION,
        program_version: "0.1.0".to_owned(),
        plan: "seed-003".to_owned(),
        title: "Workers and queues: where each server breaks, and what it does below".to_owned(),
        plan_checksum: "5b1f07c2".to_owned(),
        started_wall_ms: 1_790_000_000_000 - 3_600_000,
        ended_wall_ms: Some(1_790_000_000_000 + 600_000),
        state: RunState::Complete,
        shortened: Vec::new(),
        seed: 3,
        host: HostFacts {
            name: Some("lab-1".to_owned()),
            kernel: Some("Linux 6.8.0".to_owned()),
            cpu_model: Some("AMD EPYC 7763".to_owned()),
            cpu_count: 4,
            memory_bytes: Some(16 << 30),
        },
        server_cpus: vec![0, 1],
        generator_cpus: vec![2, 3],
        objectives: strings(&["p99<5ms", "errors<0.1%"]),
        repeats: 3,
        subjects: vec![subject("pool", "workers"), subject("selectors", "selectors")],
        data: Some(DataFacts {
            text: "1,000,000 keys of 12 bytes, values of 1 to 1,024 bytes, 10 % deleted".to_owned(),
            key_count: 1_000_000,
            fingerprint: "9c41d2aa".to_owned(),
            fill_s: BTreeMap::from([("pool".to_owned(), 14.2), ("selectors".to_owned(), 13.8)]),
            mismatches: Vec::new(),
        }),
        workloads: vec![
            workload("put-random", "workload put --keys 1M --value-bytes 1..1024"),
            workload("get-existing", "workload get --keys 1M"),
        ],
        sweep: axes(),
        cases,
        known: Vec::new(),
        comparison: None,
        intervention: None,
        what_if: None,
        identity: BTreeMap::new(),
        fsyncs: Vec::new(),
    }
}

fn axes() -> Vec<Axis> {
    vec![
        Axis { name: "workers".to_owned(), values: strings(&WORKERS) },
        Axis { name: "queue-capacity".to_owned(), values: strings(&QUEUES) },
    ]
}

fn attempts(run: &Run) -> Vec<Attempt> {
    let mut attempts = Vec::new();
    for repeat in 1..=3 {
        for case in &run.cases {
            let number = attempts.len() as u32 + 1;
            let verdict = match number {
                17 => AttemptVerdict::Disturbed("other processes used 0.6 CPUs".to_owned()),
                140 => AttemptVerdict::Disturbed("2.1 % of the time was stolen".to_owned()),
                201 => AttemptVerdict::Failed("the server ended with signal 9".to_owned()),
                _ => AttemptVerdict::Valid,
            };
            attempts.push(Attempt {
                seed: u64::from(repeat),
                clock: None,
                notes: Vec::new(),
                number,
                case: case.id,
                repeat,
                try_count: 1,
                start_ns: START_NS - 5 * SECOND_NS,
                end_ns: START_NS + SECONDS * SECOND_NS,
                measure_start_ns: START_NS,
                // The recording starts at the wall time 1,790,000,000 s.
                start_wall_ms: 1_790_000_000_000 + RECORDING_LEAD_NS / 1_000_000 - 5_000,
                rate_per_s: (case.kind == PhaseKind::Hold).then(|| 0.8 * rate_max(case)),
                verdict,
            });
        }
    }
    attempts
}

fn environment() -> Vec<(Text, String)> {
    [
        (text("machine", "машина"), "lab-1: AMD EPYC 7763, 4 CPUs, 16 GiB, Linux 6.8.0"),
        (text("placement", "размещение"), "servers on CPUs 0-1, generator on CPUs 2-3"),
        (text("pool", "pool"), "kvant 0.1.0: kvant serve --dispatch workers --memory 256MiB"),
        (
            text("selectors", "selectors"),
            "kvant 0.1.0: kvant serve --dispatch selectors --memory 256MiB",
        ),
        (
            text("data", "данные"),
            "1,000,000 keys of 12 bytes, values of 1 to 1,024 bytes, 10 % deleted; fingerprint 9c41d2aa",
        ),
        (text("objectives", "цели"), "p99<5ms, errors<0.1%"),
        (text("repeats", "повторы"), "3, interleaved"),
        (text("started", "начало"), "2026-09-21 13:13 UTC, 70 min"),
    ]
    .map(|(name, value)| (name, value.to_owned()))
    .into()
}

fn maximum(case: &Case) -> Maximum {
    let rate = rate_max(case);
    Maximum {
        case: case.id,
        search_count: 3,
        rate_per_s: Some(about(rate, 0.018)),
        interval_per_s: Some((rate * 0.974, rate * 1.021)),
        is_interval_of_median: false,
        saturation_per_s: Some(about(rate * 1.09, 0.01)),
        is_confirmed: true,
        limit: "server".to_owned(),
        reasons: strings(&["p99 was 7.9 ms, not under 5 ms", "the backlog grew by 212 requests/s"]),
    }
}

fn curves(run: &Run) -> Vec<Curve> {
    let searches = run.cases.iter().filter(|case| case.kind == PhaseKind::FindMax);
    let curve = |case: &Case| {
        let rate = rate_max(case);
        let factor = if case.subject == "pool" { 1.25 } else { 1.0 };
        let parts = [0.2, 0.4, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1.0, 1.02, 1.05, 1.1];
        let point = |(index, part): (usize, f64)| {
            let [p50, p99, p999] = latency(part, factor).map(|ms| (ms * 1e6) as u64);
            CurvePoint {
                offered_per_s: part * rate,
                achieved_per_s: if part > 1.0 {
                    rate * (1.0 - 0.4 * (part - 1.0))
                } else {
                    part * rate
                },
                p50_ns: p50,
                p99_ns: p99,
                p999_ns: p999,
                max_ns: p999 * 3,
                holds: Some(part <= 1.0),
                attempt: case.id as u32 * 20 + index as u32,
            }
        };
        Curve {
            subject: case.subject.clone(),
            cell: case.cell.clone(),
            workload: case.workload.clone(),
            points: parts.into_iter().enumerate().map(point).collect(),
            usl: (case.workload == "get-existing").then_some(Usl {
                lambda: 9_400.0 / factor,
                sigma: 0.09,
                kappa: 0.0011,
                r2: 0.991,
                peak: Some(28.8),
            }),
            usl_text: text(
                "the law fits (R2 0.991): 9 % of the work is serial, the peak is at 29 connections",
                "закон подходит (R2 0,991): 9 % работы последовательны, пик при 29 соединениях",
            ),
        }
    };
    searches.map(curve).collect()
}

fn figures(case: &Case) -> Figures {
    let rate = rate_max(case) * if case.kind == PhaseKind::Hold { 0.8 } else { 1.0 };
    let part = rate / rate_max(case);
    let factor = if case.subject == "pool" { 1.25 } else { 1.0 };
    let [p50, p99, p999] = latency(part.min(0.97), factor).map(|ms| ms * 1e6);
    let names = ["mean", "p50", "p75", "p90", "p99", "p99.9", "p99.99", "max"];
    let values = [p50 * 1.2, p50, p50 * 1.35, p50 * 1.9, p99, p999, p999 * 2.4, p999 * 4.1];
    let is_put = case.workload == "put-random";
    Figures {
        case: case.id,
        step: String::new(),
        attempts: [1, 2, 3].map(|repeat| case.id as u32 * 3 + repeat).to_vec(),
        disturbed: usize::from(case.id % 31 == 7),
        failed: usize::from(case.id % 43 == 5),
        planned_per_s: Some(rate),
        achieved_per_s: about(rate * 0.9991, 0.002),
        errors_part: about(if case.id % 17 == 3 { 0.000_12 } else { 0.0 }, 0.3),
        response_ns: names
            .into_iter()
            .zip(values)
            .map(|(name, value)| (name.to_owned(), about(value, 0.06)))
            .collect(),
        service_p99_ns: about(p99 * 0.9, 0.05),
        service_succeeded_p99_ns: about(p99 * 0.9, 0.05),
        service_failed_p99_ns: None,
        send_lag_p99_ns: about(21_000.0, 0.2),
        cpu_per_request_ns: Some(about(if is_put { 41_000.0 } else { 27_000.0 } * factor, 0.02)),
        cpu_with_later_work_ns: is_put.then(|| about(49_500.0 * factor, 0.03)),
        generator_cpu_per_request_ns: Some(about(4_800.0, 0.03)),
        rss_max_bytes: Some(about(f64::from(312 << 20), 0.04)),
        disk_written_per_request_bytes: is_put.then(|| about(2_940.0, 0.08)),
        write_amplification: is_put.then(|| about(5.6, 0.05)),
        switches_per_request: Some(about(if case.subject == "pool" { 1.9 } else { 0.34 }, 0.04)),
        goodput_per_s: about(rate * 0.999, 0.002),
        ops: Vec::new(),
    }
}

fn comparisons(run: &Run) -> Vec<Comparison> {
    let of_pool = run.cases.iter().filter(|case| case.subject == "pool" && is_shown(case));
    let ratios = |case: &Case| {
        let figures: &[(&str, f64)] = match case.kind {
            PhaseKind::FindMax => &[("rate_max", 1.148)],
            _ => &[("cpu_per_request", 0.80), ("p99", 0.81), ("p99.9", 0.97)],
        };
        let comparison = |&(figure, ratio): &(&str, f64)| Comparison {
            base: "pool".to_owned(),
            other: "selectors".to_owned(),
            cell: case.cell.clone(),
            workload: case.workload.clone(),
            phase: case.phase.clone(),
            figure: figure.to_owned(),
            ratio: about(ratio, 0.035),
            interval: None,
        };
        figures.iter().map(comparison).collect::<Vec<_>>()
    };
    of_pool.flat_map(ratios).collect()
}

fn sweeps(run: &Run) -> Vec<Sweep> {
    let mut sweeps = Vec::new();
    for subject in SUBJECTS {
        for workload in WORKLOADS {
            for (phase, figure, unit, more) in
                [("maximum", "rate_max", "/s", true), ("hold-80", "p99", "ns", false)]
            {
                let of_sweep = |case: &&Case| {
                    case.subject == subject && case.workload == workload && case.phase == phase
                };
                let cells: Vec<(Vec<String>, Option<Measured>)> = run
                    .cases
                    .iter()
                    .filter(of_sweep)
                    .map(|case| {
                        let value = if more {
                            rate_max(case)
                        } else {
                            22e9 / rate_max(case) + case.id as f64 * 900.0
                        };
                        let is_absent = case.cell == ["1", "16"] && subject == "pool";
                        (case.cell.clone(), (!is_absent).then(|| about(value, 0.02)))
                    })
                    .collect();
                let by_value =
                    |a: &&(Vec<String>, Option<Measured>), b: &&(Vec<String>, Option<Measured>)| {
                        let value = |cell: &(Vec<String>, Option<Measured>)| {
                            let value =
                                cell.1.map_or(f64::NEG_INFINITY, |measured| measured.median);
                            if more || !value.is_finite() { value } else { -value }
                        };
                        value(a).total_cmp(&value(b))
                    };
                let best = cells.iter().max_by(by_value).map(|cell| cell.0.clone());
                sweeps.push(Sweep {
                    subject: subject.to_owned(),
                    workload: workload.to_owned(),
                    phase: phase.to_owned(),
                    figure: figure.to_owned(),
                    unit: unit.to_owned(),
                    more_is_better: more,
                    axes: axes(),
                    cells,
                    best,
                });
            }
        }
    }
    sweeps
}

/// A response and a service spectrum.
fn spectra(case: &Case) -> Vec<Spectrum> {
    let factor = if case.subject == "pool" { 1.25 } else { 1.0 };
    let factor = if case.workload == "put-random" { factor } else { 0.55 * factor };
    let count = (0.8 * rate_max(case)) as u64 * SECONDS;
    let spectrum = |what: &str, scale: f64| {
        let mut points = vec![(1.0, 42_000)];
        let mut x: f64 = 1.25;
        while x < count as f64 {
            let flush = if x > 60.0 { 1.0 + 0.9 * (x / 60.0).ln() } else { 1.0 };
            points.push((x, (scale * factor * 210_000.0 * (1.0 + x.ln() * 0.42) * flush) as u64));
            x *= 1.21;
        }
        Spectrum { case: case.id, step: String::new(), what: what.to_owned(), points, count }
    };
    vec![spectrum("response", 1.0), spectrum("service", 0.82)]
}

/// Activity, stage, CPU time, bytes, waits.
type LayerFigures = (&'static str, &'static str, f64, f64, &'static [(&'static str, f64)]);

fn layers(case: &Case) -> Layers {
    let rows: &[LayerFigures] = &[
        ("put", "parse", 3_100.0, 64.0, &[]),
        ("put", "queue", 900.0, 0.0, &[("backpressure", 18_000.0)]),
        ("put", "memtable", 9_800.0, 1_140.0, &[("contention", 2_300.0)]),
        ("put", "wal", 6_200.0, 210.0, &[("io", 61_000.0), ("contention", 4_100.0)]),
        ("put", "respond", 5_900.0, 96.0, &[("scheduler", 1_200.0)]),
        ("flush", "build", 4_700.0, 830.0, &[("io", 900.0)]),
        ("compaction", "merge", 8_300.0, 2_050.0, &[("io", 2_400.0)]),
        ("profiler", "none", 380.0, 0.0, &[]),
    ];
    let factor = if case.subject == "pool" { 1.25 } else { 1.0 };
    let row = |&(activity, stage, cpu_ns, bytes, waits): &LayerFigures| LayerRow {
        activity: activity.to_owned(),
        stage: stage.to_owned(),
        cpu_ns: cpu_ns * factor,
        allocated_bytes: bytes,
        waits_ns: waits.iter().map(|(kind, ns)| ((*kind).to_owned(), *ns)).collect(),
    };
    Layers {
        case: case.id,
        step: String::new(),
        attempt: case.id as u32 + 1,
        rows: rows.iter().map(row).collect(),
    }
}

fn observations(run: &Run) -> Vec<Observation> {
    let shown: Vec<usize> =
        run.cases.iter().filter(|case| is_shown(case)).map(|case| case.id).collect();
    let observation = |rule: &str, text: Text, cases: &[usize]| Observation {
        rule: rule.to_owned(),
        text,
        cases: cases.to_vec(),
    };
    vec![
        observation(
            "stalls",
            text(
                "Write stalls begin at 92 % of the maximum: 4 stalls of 220 ms each hold 61 % of the time above 5 ms.",
                "Остановки записи начинаются на 92 % максимума: на 4 остановки по 220 мс приходится 61 % времени выше 5 мс.",
            ),
            &shown[1..2],
        ),
        observation(
            "sweep",
            text(
                "4 workers with a queue of 256 are the best of 16 cells; 8 workers lose 9 % on two CPUs.",
                "4 потока с очередью 256 лучше остальных 16 ячеек; 8 потоков теряют 9 % на двух процессорах.",
            ),
            &shown[..1],
        ),
        observation(
            "switches",
            text(
                "`pool` switches contexts 1.9 times a request, `selectors` 0.34 times: 8.2 us of CPU time a request.",
                "`pool` переключает контекст 1,9 раза на запрос, `selectors` 0,34 раза: 8,2 мкс процессорного времени на запрос.",
            ),
            &[shown[1], shown[5]],
        ),
        observation(
            "lock",
            text(
                "No lock is waited for longer than 3 % of the response time.",
                "Ни одной блокировки не ждут дольше 3 % времени ответа.",
            ),
            &[],
        ),
    ]
}

fn wrk2(case: &Case) -> Block {
    let rate = 0.8 * rate_max(case);
    Block {
        case: case.id,
        attempt: case.id as u32 + 1,
        text: format!(
            "Running 1m test @ http://127.0.0.1:8080\n  1 threads and 64 connections\n  Thread calibration: \
             mean lat.: 0.342ms, rate sampling interval: 10ms\n  Thread Stats   Avg      Stdev     Max   +/- \
             Stdev\n    Latency   342.17us  301.20us  15.20ms   92.41%\n    Req/Sec    {:.2}k   411.32    \
             {:.2}k    71.08%\n  Latency Distribution (HdrHistogram - Recorded Latency)\n 50.000%  284.00us\n \
             75.000%  383.00us\n 90.000%  540.00us\n 99.000%    1.31ms\n 99.900%    3.72ms\n 99.990%    \
             8.91ms\n 99.999%   14.05ms\n100.000%   15.21ms\n  {:.0} requests in 1.00m, 121.40MB \
             read\nRequests/sec:  {rate:.2}\nTransfer/sec:      2.02MB\n",
            rate / 1000.0,
            rate / 930.0,
            rate * 60.0
        ),
    }
}
