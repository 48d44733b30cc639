//! One attempt over time: latency by interval, rate, backlog, the kernel's account, the subject's
//! statistics and its events.

use super::directory::{Directory, Measurement};
use super::hlog;
use super::responses::begin_ns;
use crate::model::{Lane, LatencyColumn, Series, Text, TimeLine};
use crate::record::{Attempt, Case, EventFacts, StatsSample, WatchSample};
use kvant_base::Result;
use kvant_load::Histogram;
use kvant_load::report::json::PhaseResult;
use std::path::Path;

/// Rows of a factor of ten of latency.
const ROWS_PER_DECADE: f64 = 10.0;
/// Share of the CPU time of a sample that the hypervisor or other processes may take before it
/// shows in a lane.
const TAKEN_PART_MIN: f64 = 0.02;

/// The time line of an attempt. `log` is its interval log.
///
/// # Errors
/// As [`hlog::each_response`].
pub(super) fn time_line(
    case: &Case,
    measurement: &Measurement,
    log: &Path,
    events: &[EventFacts],
    has_recording: bool,
) -> Result<TimeLine> {
    let attempt = &measurement.attempt;
    let mut columns = columns(log)?;
    add_seconds(&mut columns, attempt, &measurement.load.phases);
    let rows_ns = rows(&columns);
    let columns: Vec<LatencyColumn> = columns
        .into_iter()
        .map(|one| LatencyColumn { counts: one.counts(&rows_ns), ..one.column })
        .collect();
    let length_ns = columns.last().map_or(0, |column| column.end_ns);
    let span = Span { start_ns: attempt.measure_start_ns, length_ns };
    let mut series = of_watch(&span, &measurement.watch.samples);
    series.extend(of_stats(&span, &measurement.stats));
    let mut lanes = of_events(&span, events);
    lanes.extend(of_machine(&span, &measurement.watch.samples));
    Ok(TimeLine {
        case: case.id,
        attempt: attempt.number,
        start_ns: attempt.measure_start_ns,
        length_ns,
        rows_ns,
        columns,
        series,
        lanes,
        recording: has_recording
            .then(|| format!("{}/profile.kprof", Directory::dir_of(attempt.number))),
    })
}

/// The time of a time line on the monotonic clock.
struct Span {
    start_ns: u64,
    length_ns: u64,
}

impl Span {
    /// Since the begin; `None` outside.
    fn since(&self, at_ns: u64) -> Option<u64> {
        at_ns.checked_sub(self.start_ns).filter(|since| *since <= self.length_ns)
    }

    /// The part of an interval that lies within; `None` if it is empty.
    fn clip(&self, from_ns: u64, to_ns: u64) -> Option<(u64, u64)> {
        let from = from_ns.max(self.start_ns) - self.start_ns;
        let to = to_ns.min(self.start_ns + self.length_ns).checked_sub(self.start_ns)?;
        (from <= to).then_some((from, to))
    }
}

/// A column with its distinct values and their counts. A histogram takes some hundred kilobytes.
struct Column {
    column: LatencyColumn,
    values: Vec<(u64, u64)>,
}

impl Column {
    fn of(start_ns: u64, end_ns: u64, histogram: &Histogram) -> Column {
        let recorded = histogram.as_hdr().iter_recorded();
        Column {
            column: LatencyColumn {
                start_ns,
                end_ns,
                completed: histogram.count(),
                p50_ns: histogram.percentile_ns(50.0),
                p99_ns: histogram.percentile_ns(99.0),
                max_ns: histogram.max_ns(),
                ..LatencyColumn::default()
            },
            values: recorded
                .map(|bucket| (bucket.value_iterated_to(), bucket.count_since_last_iteration()))
                .collect(),
        }
    }

    /// Values in each row; a bucket belongs to the row of its highest value.
    fn counts(&self, rows_ns: &[u64]) -> Vec<(u32, u64)> {
        let mut counts: Vec<(u32, u64)> = Vec::new();
        for &(value, count) in &self.values {
            let row = rows_ns.partition_point(|bound| *bound <= value).saturating_sub(1);
            let row = u32::try_from(row.min(rows_ns.len().saturating_sub(2))).unwrap_or(u32::MAX);
            match counts.last_mut() {
                Some((last, sum)) if *last == row => *sum += count,
                _ => counts.push((row, count)),
            }
        }
        counts
    }
}

/// Columns in order of time. The log has the lines of an interval one after the other.
fn columns(log: &Path) -> Result<Vec<Column>> {
    let mut columns = Vec::new();
    let mut current: Option<(u64, u64, Histogram)> = None;
    hlog::each_response(log, &mut |line| match &mut current {
        Some((start_ns, _, histogram)) if *start_ns == line.start_ns => {
            histogram.add(&line.histogram);
        }
        _ => {
            let next = (line.start_ns, line.end_ns(), line.histogram.clone());
            columns.extend(current.replace(next).map(|(from, to, all)| Column::of(from, to, &all)));
        }
    })?;
    columns.extend(current.map(|(from, to, all)| Column::of(from, to, &all)));
    Ok(columns)
}

/// Spreads what the generator counts by second over the columns.
fn add_seconds(columns: &mut [Column], attempt: &Attempt, phases: &[PhaseResult]) {
    for phase in phases {
        let begin_ns = begin_ns(attempt, phase).saturating_sub(attempt.measure_start_ns);
        let mut backlog = 0.0;
        for second in &phase.outcome.seconds {
            let (from_ns, to_ns) = (begin_ns + second.start_ns, begin_ns + second.end_ns);
            let length_ns = (to_ns - from_ns).max(1) as f64;
            // A column is within the second that has its middle: the log has whole milliseconds.
            let middle = |one: &Column| one.column.start_ns.midpoint(one.column.end_ns);
            let first = columns.partition_point(|one| middle(one) < from_ns);
            let end = columns.partition_point(|one| middle(one) < to_ns);
            let within = columns.get_mut(first..end).unwrap_or_default();
            let sum_ns: u64 =
                within.iter().map(|one| one.column.end_ns - one.column.start_ns).sum();
            for Column { column, .. } in within {
                let part = (column.end_ns - column.start_ns) as f64 / sum_ns.max(1) as f64;
                column.planned = second.planned as f64 * part;
                column.errors = second.errors as f64 * part;
                let past = column.end_ns.saturating_sub(from_ns) as f64 / length_ns;
                column.backlog = backlog + (second.backlog as f64 - backlog) * past.min(1.0);
            }
            backlog = second.backlog as f64;
        }
    }
}

/// Bounds of rows, each a tenth of a decade, from the least to the greatest value.
fn rows(columns: &[Column]) -> Vec<u64> {
    let values = || columns.iter().flat_map(|one| &one.values).map(|(value, _)| *value);
    let Some((least, greatest)) = values().min().zip(values().max()) else {
        return Vec::new();
    };
    let index = |ns: u64| (ns.max(1) as f64).log10() * ROWS_PER_DECADE;
    let (first, last) = (index(least).floor() as i32, index(greatest).floor() as i32 + 1);
    (first..=last).map(|row| 10f64.powf(f64::from(row) / ROWS_PER_DECADE).round() as u64).collect()
}

/// Lines from the kernel's account: rates between neighbouring samples, and levels.
fn of_watch(span: &Span, samples: &[WatchSample]) -> Vec<Series> {
    let rate = |name: &str, en: &str, ru: &str, unit: &str, scale: f64, counter: Counter| {
        let points = samples.windows(2).filter_map(|pair| {
            let grown = counter(&pair[1])?.saturating_sub(counter(&pair[0])?) as f64;
            let time_ns = pair[1].at_ns.saturating_sub(pair[0].at_ns).max(1) as f64;
            Some((span.since(pair[1].at_ns)?, grown * scale / time_ns))
        });
        series(name, en, ru, unit, points.collect())
    };
    let level = samples
        .iter()
        .filter_map(|sample| Some((span.since(sample.at_ns)?, sample.server_rss_bytes? as f64)));
    [
        rate("server_cpu", "CPU of the subject", "CPU сервера", "part", 1.0, |s| {
            s.server_cpu_ns
        }),
        rate(
            "generator_cpu",
            "CPU of the generator",
            "CPU генератора",
            "part",
            1.0,
            |s| Some(s.generator_cpu_ns),
        ),
        series("memory", "Resident memory", "Резидентная память", "bytes", level.collect()),
        rate("disk_written", "Disk, written", "Диск, запись", "bytes/s", 1e9, |s| {
            s.server_written_bytes
        }),
        rate("disk_read", "Disk, read", "Диск, чтение", "bytes/s", 1e9, |s| {
            s.server_read_bytes
        }),
        rate("switches", "Context switches", "Переключения", "/s", 1e9, super::account::switches),
    ]
    .into_iter()
    .filter(|series| !series.points.is_empty())
    .collect()
}

type Counter = fn(&WatchSample) -> Option<u64>;

/// The shape of the LSM tree of a Kvant.
fn of_stats(span: &Span, stats: &[StatsSample]) -> Vec<Series> {
    let line = |name: &str, en: &str, ru: &str, unit: &str, pointer: &str| {
        let points = stats.iter().filter_map(|sample| {
            Some((span.since(sample.at_ns)?, sample.stats.pointer(pointer)?.as_f64()?))
        });
        series(name, en, ru, unit, points.collect())
    };
    let engine = [
        line(
            "memtable_bytes",
            "Active memtable",
            "Активная memtable",
            "bytes",
            "/engine/memtables/active_bytes",
        ),
        line(
            "sealed_memtables",
            "Sealed memtables",
            "Закрытые memtable",
            "",
            "/engine/memtables/sealed_count",
        ),
        line(
            "l0_tables",
            "Tables of level 0",
            "Таблицы уровня 0",
            "",
            "/engine/levels/0/table_count",
        ),
        line(
            "debt_bytes",
            "Compaction debt",
            "Долг компактизации",
            "bytes",
            "/engine/compactions/debt_bytes",
        ),
        line(
            "live_bytes",
            "Live bytes of tables",
            "Живые данные таблиц",
            "bytes",
            "/engine/space/live_bytes",
        ),
        line("cache_bytes", "Block cache", "Кэш блоков", "bytes", "/engine/block_cache/used_bytes"),
    ];
    engine.into_iter().filter(|series| !series.points.is_empty()).collect()
}

fn series(name: &str, en: &str, ru: &str, unit: &str, points: Vec<(u64, f64)>) -> Series {
    Series {
        name: name.to_owned(),
        title: Text { en: en.to_owned(), ru: ru.to_owned() },
        unit: unit.to_owned(),
        points,
    }
}

/// A lane for each kind of event, in the order of their first.
fn of_events(span: &Span, events: &[EventFacts]) -> Vec<Lane> {
    let mut lanes: Vec<Lane> = Vec::new();
    for event in events {
        let end_ns = event.end_ns.unwrap_or(span.start_ns + span.length_ns);
        let Some((from, to)) = span.clip(event.start_ns, end_ns) else {
            continue;
        };
        let words: Vec<String> =
            event.fields.iter().map(|(name, value)| format!("{name} {value}")).collect();
        add_span(&mut lanes, &event.kind, (from, to, words.join(", ")));
    }
    lanes
}

/// Time that the hypervisor and other processes took.
fn of_machine(span: &Span, samples: &[WatchSample]) -> Vec<Lane> {
    let mut lanes = Vec::new();
    for pair in samples.windows(2) {
        let Some((from, to)) = span.clip(pair[0].at_ns, pair[1].at_ns) else {
            continue;
        };
        let grown =
            |counter: Counter| Some(counter(&pair[1])?.saturating_sub(counter(&pair[0])?) as f64);
        let time_ns = pair[1].at_ns.saturating_sub(pair[0].at_ns).max(1) as f64;
        let server = grown(|s| s.server_cpu_ns).unwrap_or(0.0);
        let others = grown(WatchSample::tasks_cpu_ns)
            .zip(grown(|s| Some(s.generator_cpu_ns)))
            .map(|(all, generator)| (all - generator - server).max(0.0));
        for (name, taken) in [("stolen", grown(|s| s.stolen_ns)), ("others", others)] {
            let part = taken.unwrap_or(0.0) / time_ns;
            if part > TAKEN_PART_MIN {
                let words = format!("{:.0} % of a CPU", part * 100.0);
                add_span(&mut lanes, name, (from, to, words));
            }
        }
    }
    lanes
}

fn add_span(lanes: &mut Vec<Lane>, name: &str, span: (u64, u64, String)) {
    match lanes.iter_mut().find(|lane| lane.name == name) {
        Some(lane) => lane.spans.push(span),
        None => lanes.push(Lane { name: name.to_owned(), spans: vec![span] }),
    }
}
