//! The report of a run as data: every figure and every sentence, before anything is drawn.
//!
//! `analyse` computes it, `report` renders it, `report.json` is it. The page gets the same JSON.
//!
//! Invariants:
//! 1. Every figure comes from valid attempts only, and says from how many.
//! 2. Units stand last in names: `_ns`, `_ms`, `_per_s`, `_bytes`; `_part` is a share of 1.
//! 3. Sentences exist in English and Russian ([`Text`]); names, units and figures do not differ.

mod interventions;
mod sides;
mod text;
mod what_if;

pub use interventions::{Interventions, finding_text};
pub use sides::{Asserted, Compared, FlamePair, Sides};
pub use text::Text;
pub(crate) use what_if::percent;
pub use what_if::{Change, GainFigure, Gains, WhatIf};

use crate::record::{Attempt, Axis, Case, Run};
use serde::{Deserialize, Serialize};

/// The value of [`Report::format`].
pub const FORMAT: &str = "kvant-lab-report";
/// The value of [`Report::version`].
pub const VERSION: u32 = 1;

/// Everything that a report shows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Always [`FORMAT`].
    pub format: String,
    /// Version of the fields.
    pub version: u32,
    /// The run, as in `run.json`.
    pub run: Run,
    /// All attempts, with those that do not count.
    pub attempts: Vec<Attempt>,
    /// The result in three sentences.
    pub verdict: Vec<Text>,
    /// What limits the trust in the result: cut short, shortened, disturbed, generator-bound.
    pub warnings: Vec<Text>,
    /// Machine, placement, subjects and data: name and value.
    pub environment: Vec<(Text, String)>,
    /// Breaking points: one for each case that searches, and for each case of factors.
    pub maxima: Vec<Maximum>,
    /// Throughput-latency curves, one for each subject, cell and workload that has points.
    pub curves: Vec<Curve>,
    /// Figures of each case that has valid attempts.
    pub figures: Vec<Figures>,
    /// Ratios between subjects, of pairs of repeats; none in a comparison of two sides.
    pub comparisons: Vec<Comparison>,
    /// What a comparison of two sides shows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sides: Option<Sides>,
    /// What making suspects happen changed, if the run did that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interventions: Option<Interventions>,
    /// What faster stages would bring, if the run asked. It has no figures of cases then: those of
    /// a server that is slowed down are not its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub what_if: Option<WhatIf>,
    /// Tables of sweeps.
    pub sweeps: Vec<Sweep>,
    /// Percentile spectra: merged valid attempts of each case that holds a rate.
    pub spectra: Vec<Spectrum>,
    /// Cost by activity and stage of each case with a recording.
    pub layers: Vec<Layers>,
    /// Time lines: the median valid attempt of each case, the most interesting first.
    pub time_lines: Vec<TimeLine>,
    /// Figures of others beside ours.
    pub known: Vec<KnownRow>,
    /// Findings by rule.
    pub observations: Vec<Observation>,
    /// wrk2's text of each case: what `kvant load -L` would have printed.
    pub wrk2: Vec<Block>,
    /// Raw files, relative to the run directory.
    pub files: Vec<String>,
}

/// A value from several attempts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// Median of the repeats.
    pub median: f64,
    /// Least of the repeats.
    pub min: f64,
    /// Greatest of the repeats.
    pub max: f64,
    /// Repeats.
    pub count: usize,
}

/// The highest rate that held.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Maximum {
    /// [`Case::id`].
    pub case: usize,
    /// Searches that count. They are more than those of `rate_per_s` if no rate held in some.
    #[serde(default)]
    pub search_count: usize,
    /// Requests per second over the repeats; `None` if no rate held.
    pub rate_per_s: Option<Measured>,
    /// 95 % interval of the median of repeats, if there are enough of them; else the range between
    /// the highest rate that held and the lowest that failed.
    pub interval_per_s: Option<(f64, f64)>,
    /// Which of both the interval is.
    #[serde(default)]
    pub is_interval_of_median: bool,
    /// Responses per second of the closed loop.
    pub saturation_per_s: Option<Measured>,
    /// Whether longer runs confirmed it in all repeats.
    pub is_confirmed: bool,
    /// `server`, `generator` or `none`, of the repeat with the median rate.
    pub limit: String,
    /// Why the next rate failed.
    pub reasons: Vec<String>,
}

/// Offered rate against latency.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Curve {
    /// Name of the subject.
    pub subject: String,
    /// Value of each axis.
    pub cell: Vec<String>,
    /// Name of the workload.
    pub workload: String,
    /// By offered rate.
    pub points: Vec<CurvePoint>,
    /// The universal scalability law, if the points are over connections and it fits.
    pub usl: Option<Usl>,
    /// Why there is no law, or how well it fits.
    pub usl_text: Text,
}

/// A measured rate.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CurvePoint {
    /// Planned requests per second; 0 for a closed loop.
    pub offered_per_s: f64,
    /// Successful responses per second.
    pub achieved_per_s: f64,
    /// Response time.
    pub p50_ns: u64,
    /// Response time.
    pub p99_ns: u64,
    /// Response time.
    pub p999_ns: u64,
    /// Response time.
    pub max_ns: u64,
    /// Whether the rate held; `None` if it was not judged.
    pub holds: Option<bool>,
    /// [`Attempt::number`].
    pub attempt: u32,
}

/// `X(N) = lambda N / (1 + sigma (N - 1) + kappa N (N - 1))` (Gunther, 1993).
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Usl {
    /// Responses per second at a concurrency of 1.
    pub lambda: f64,
    /// Contention.
    pub sigma: f64,
    /// Coherency.
    pub kappa: f64,
    /// Coefficient of determination.
    pub r2: f64,
    /// Concurrency with the highest throughput, if there is one.
    pub peak: Option<f64>,
}

/// The figures of a case.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    /// [`Case::id`].
    pub case: usize,
    /// Which of several rates of the case: `80 %` of a search, or the planned rate of a step;
    /// empty if there is one.
    pub step: String,
    /// Valid attempts.
    pub attempts: Vec<u32>,
    /// Attempts that do not count because others disturbed them.
    pub disturbed: usize,
    /// Attempts that failed.
    #[serde(default)]
    pub failed: usize,
    /// Planned requests per second: the median of the repeats.
    pub planned_per_s: Option<f64>,
    /// Responses per second.
    pub achieved_per_s: Measured,
    /// Failures of all kinds as a part of the planned requests.
    pub errors_part: Measured,
    /// Response times, in nanoseconds, unanswered requests included: mean, p50, p75, p90, p99,
    /// p99.9, p99.99, max.
    pub response_ns: Vec<(String, Measured)>,
    /// Service time p99, in nanoseconds.
    pub service_p99_ns: Measured,
    /// The same of the responses without an error status.
    #[serde(default)]
    pub service_succeeded_p99_ns: Measured,
    /// The same of those with one, such as refusals; `None` without any.
    #[serde(default)]
    pub service_failed_p99_ns: Option<Measured>,
    /// The generator's lateness p99, in nanoseconds.
    pub send_lag_p99_ns: Measured,
    /// CPU time of the subject per successful response, in nanoseconds.
    pub cpu_per_request_ns: Option<Measured>,
    /// The same with its work after the load; `None` if it was not watched longer than the load.
    pub cpu_with_later_work_ns: Option<Measured>,
    /// CPU time of the generator per response: of its threads, or of an external program from its
    /// start to its end.
    #[serde(default)]
    pub generator_cpu_per_request_ns: Option<Measured>,
    /// Greatest resident memory of the subject.
    pub rss_max_bytes: Option<Measured>,
    /// Bytes that the subject wrote to the disk per successful response.
    pub disk_written_per_request_bytes: Option<Measured>,
    /// Bytes written by log, flushes and compactions by bytes of keys and values put, of a Kvant:
    /// from the begin of the measured time until it was watched no longer. What it defers beyond
    /// that is in no figure.
    pub write_amplification: Option<Measured>,
    /// Context switches of the subject per successful response, of both kinds.
    pub switches_per_request: Option<Measured>,
    /// Responses per second that are no errors.
    pub goodput_per_s: Measured,
    /// The other operations of the same run, if the workload mixes them: name and p99 in
    /// nanoseconds.
    pub ops: Vec<OpFigures>,
}

/// The figures of one kind of requests within a case.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct OpFigures {
    /// Such as `get`.
    pub name: String,
    /// Requests per second.
    pub achieved_per_s: Measured,
    /// Response time.
    pub p50_ns: Measured,
    /// Response time.
    pub p99_ns: Measured,
    /// Response time.
    pub p999_ns: Measured,
    /// Responses by status over all valid attempts.
    pub statuses: Vec<(u16, u64)>,
}

/// The ratio of a figure of two subjects in the same cell, workload and phase.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// The first subject of the plan.
    pub base: String,
    /// Another one.
    pub other: String,
    /// Value of each axis.
    pub cell: Vec<String>,
    /// Workload.
    pub workload: String,
    /// Phase.
    pub phase: String,
    /// As in [`Sweep::figure`].
    pub figure: String,
    /// Other by base: median, least and greatest of the ratios of neighbouring repeats.
    pub ratio: Measured,
    /// 95 % interval of the median ratio, by order statistics; `None` for fewer than six repeats.
    #[serde(default)]
    pub interval: Option<(f64, f64)>,
}

impl Comparison {
    /// Whether the other subject has more, if the repeats show a difference: the interval, or the
    /// ratio of every one of at least two repeats, is on one side of 1.
    pub fn difference(&self) -> Option<bool> {
        let (low, high) = self.interval.unwrap_or((self.ratio.min, self.ratio.max));
        match self.ratio.count {
            0 | 1 => None,
            _ if low > 1.0 => Some(true),
            _ => (high < 1.0).then_some(false),
        }
    }
}

/// A table over the axes of a sweep.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Sweep {
    /// Subject.
    pub subject: String,
    /// Workload.
    pub workload: String,
    /// Phase.
    pub phase: String,
    /// `rate_max`, `goodput`, `p99`, `p99.9` or `cpu_per_request`.
    pub figure: String,
    /// Unit: `/s` or `ns`.
    pub unit: String,
    /// Whether more is better.
    pub more_is_better: bool,
    /// The axes.
    pub axes: Vec<Axis>,
    /// Value of each axis, and the figure.
    pub cells: Vec<(Vec<String>, Option<Measured>)>,
    /// The best cell.
    pub best: Option<Vec<String>>,
}

/// Percentiles of the response time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Spectrum {
    /// [`Case::id`].
    pub case: usize,
    /// As in [`Figures`].
    pub step: String,
    /// What is on it: `response`, `service`, or an operation.
    pub what: String,
    /// `1 / (1 - percentile)` and the value in nanoseconds, ascending.
    pub points: Vec<(f64, u64)>,
    /// Values in the histogram.
    pub count: u64,
}

/// CPU time, allocation and waits per successful response, by activity and stage.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Layers {
    /// [`Case::id`].
    pub case: usize,
    /// As in [`Figures`].
    #[serde(default)]
    pub step: String,
    /// [`Attempt::number`] of the recording.
    pub attempt: u32,
    /// By activity and stage.
    pub rows: Vec<LayerRow>,
}

/// See [`Layers`]; all values per successful response.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LayerRow {
    /// Such as `put`.
    pub activity: String,
    /// Such as `wal`.
    pub stage: String,
    /// CPU time.
    pub cpu_ns: f64,
    /// Bytes allocated.
    pub allocated_bytes: f64,
    /// Time waited by kind, without idle.
    pub waits_ns: Vec<(String, f64)>,
}

/// One attempt over time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TimeLine {
    /// [`Case::id`].
    pub case: usize,
    /// [`Attempt::number`].
    pub attempt: u32,
    /// Monotonic time of 0, in nanoseconds: the begin of the measured time.
    pub start_ns: u64,
    /// Length, in nanoseconds.
    pub length_ns: u64,
    /// Lower bounds of the rows of the heat map, in nanoseconds, on a logarithmic scale, and the
    /// upper bound of the last row.
    pub rows_ns: Vec<u64>,
    /// Columns in order of time.
    pub columns: Vec<LatencyColumn>,
    /// Lines over time.
    pub series: Vec<Series>,
    /// Events of the subject.
    pub lanes: Vec<Lane>,
    /// File of the recording, relative to the run directory, if there is one. The page embeds it.
    pub recording: Option<String>,
}

/// An interval of the load.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LatencyColumn {
    /// Since the start of the time line, in nanoseconds.
    pub start_ns: u64,
    /// Likewise.
    pub end_ns: u64,
    /// Requests completed.
    pub completed: u64,
    /// Requests planned: the generator counts them, and failures, by second, which are spread
    /// evenly over its columns.
    pub planned: f64,
    /// Requests due and unsent at the end, on straight lines between the ends of seconds.
    pub backlog: f64,
    /// Failures.
    pub errors: f64,
    /// Response time, in nanoseconds.
    pub p50_ns: u64,
    /// Response time.
    pub p99_ns: u64,
    /// Response time.
    pub max_ns: u64,
    /// Index of a row and requests in it; rows without requests are left out.
    pub counts: Vec<(u32, u64)>,
}

/// A quantity over time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// Such as `server_cpu`, `memory`, `disk_written`, `l0_tables`, `memtable_bytes`, `debt_bytes`.
    pub name: String,
    /// In words.
    pub title: Text,
    /// `part`, `bytes`, `bytes/s`, `/s`, or empty for a number.
    pub unit: String,
    /// Time since the start of the time line in nanoseconds, and value.
    pub points: Vec<(u64, f64)>,
}

/// Events of one kind.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Lane {
    /// Such as `flush`, `compaction`, `stall`, `fsync`; `stolen`, `others` for the machine.
    pub name: String,
    /// Start and end since the start of the time line in nanoseconds, and words.
    pub spans: Vec<(u64, u64, String)>,
}

/// A figure of another report beside ours.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct KnownRow {
    /// What it is.
    pub what: String,
    /// Such as `p99`.
    pub figure: String,
    /// `/s` or `ms`.
    pub unit: String,
    /// Theirs.
    pub theirs: f64,
    /// Where it comes from.
    pub source: String,
    /// Ours: subject and value. Empty if nothing was measured.
    pub ours: Vec<(String, f64)>,
}

/// A finding.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Observation {
    /// Name of the rule.
    pub rule: String,
    /// The finding.
    pub text: Text,
    /// Cases that it is about.
    pub cases: Vec<usize>,
}

/// Text of fixed width.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Block {
    /// [`Case::id`].
    pub case: usize,
    /// [`Attempt::number`].
    pub attempt: u32,
    /// The text.
    pub text: String,
}

impl Report {
    /// The case with that number.
    pub fn case(&self, id: usize) -> &Case {
        &self.run.cases[id]
    }
}
