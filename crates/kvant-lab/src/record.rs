//! The run directory: what an experiment leaves on disk.
//!
//! ```text
//! DIR/plan.toml            the plan as given
//! DIR/run.json             Run, replaced atomically whenever it changes
//! DIR/journal.jsonl        one Attempt a line, appended when the attempt has ended and its files
//!                          are synced
//! DIR/cleanup.json         processes and directories of a run in progress, for the case that the
//!                          lab is killed
//! DIR/attempts/0007/
//!   load.json              kvant_load::report::json::ResultFile
//!   load.hlog              interval log, one line an interval, operation and kind of latency
//!   beside.json, .hlog     the same of the load beside it, if the phase has one
//!   watch.json             Watch
//!   stats.json             Vec<StatsSample>, if the subject is a Kvant
//!   events.json            Vec<EventFacts>, likewise
//!   trials.json            Vec<Trial>, if the run makes suspects happen
//!   history.json           /v0/history of a Kvant by its clock, if a rate was held
//!   profile.kprof          recording of the subject, likewise
//! DIR/subjects/NAME.log    outputs of a subject
//! DIR/report.html, report.md, report.json
//! ```
//!
//! Invariants:
//! 1. All times with `_ns` are nanoseconds of the machine's monotonic clock, which generator,
//!    server and events share. A recording has wall time. Times of a subject on another machine
//!    are converted by a [`ClockMatch`]; without one it has no events.
//! 2. Counters in samples are cumulative; readers take differences.
//! 3. Within a version fields are added, never renamed or redefined.

mod intervention;
mod what_if;

pub use intervention::{InterventionFacts, Suspect, Trial};
pub use what_if::{SpedUp, WhatIfFacts};

use kvant_base::tag::Stage;
use kvant_load::report::json::HostFacts;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The value of [`Run::format`].
pub const FORMAT: &str = "kvant-lab-run";
/// The value of [`Run::version`].
pub const VERSION: u32 = 1;

/// An experiment: what is to be run, and how far it is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// Always [`FORMAT`].
    pub format: String,
    /// Version of the fields.
    pub version: u32,
    /// Version of the program that wrote it.
    pub program_version: String,
    /// Name of the plan: its file name without `.toml`.
    pub plan: String,
    /// What the plan says of itself in one line.
    pub title: String,
    /// CRC-32C of `plan.toml`, in hexadecimal. A run is resumed only with an unchanged plan.
    pub plan_checksum: String,
    /// Wall time of the start, in milliseconds since 1970.
    pub started_wall_ms: u64,
    /// Wall time of the end.
    pub ended_wall_ms: Option<u64>,
    /// How far it is.
    pub state: RunState,
    /// What `--quick` shortened, a sentence each; empty without it.
    pub shortened: Vec<String>,
    /// Seed of everything random; that of an attempt is [`Attempt::seed`].
    pub seed: u64,
    /// The machine of the generator.
    pub host: HostFacts,
    /// CPUs of subjects; empty: any.
    pub server_cpus: Vec<u32>,
    /// CPUs of the generator; empty: any.
    pub generator_cpus: Vec<u32>,
    /// Objectives of searches, such as `p99<5ms`.
    pub objectives: Vec<String>,
    /// Repeats of each case.
    pub repeats: u32,
    /// The servers.
    pub subjects: Vec<SubjectFacts>,
    /// What the subjects store; `None` if the plan fills nothing.
    pub data: Option<DataFacts>,
    /// The workloads.
    pub workloads: Vec<WorkloadFacts>,
    /// Axes of the sweep, in the order of the plan.
    pub sweep: Vec<Axis>,
    /// Everything that is run, in the order of the first repeat.
    pub cases: Vec<Case>,
    /// Figures of others to print beside the measured ones.
    pub known: Vec<Known>,
    /// What is compared, if it is a comparison of two sides: the subjects `A` and `B`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comparison: Option<ComparisonFacts>,
    /// What is made to happen, if it is an experiment with suspects: each repeat is a block of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub intervention: Option<InterventionFacts>,
    /// Which stages are sped up, if it asks what that would bring: each repeat is a block of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub what_if: Option<WhatIfFacts>,
    /// What all attempts have in common, by name: programs, scripts and the machine. A run is
    /// resumed only if none of it has changed.
    #[serde(default)]
    pub identity: BTreeMap<String, String>,
    /// The disk's own fsync, once a repeat; empty if no subject syncs each write.
    #[serde(default)]
    pub fsyncs: Vec<FsyncFacts>,
}

/// Two sides that are compared.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ComparisonFacts {
    /// What A is, as on the command line.
    pub a: String,
    /// What B is.
    pub b: String,
    /// Assertions on ratios.
    pub assertions: Vec<String>,
}

/// Names of the subjects of a comparison.
pub const SIDES: [&str; 2] = ["A", "B"];

/// Times of small appends to a file beside the subjects' stores, each synced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FsyncFacts {
    /// From 1 to [`Run::repeats`].
    pub repeat: u32,
    /// Appends.
    pub count: u64,
    /// Median.
    pub p50_ns: u64,
    /// 99th percentile.
    pub p99_ns: u64,
    /// 99.9th percentile.
    pub p999_ns: u64,
    /// The longest.
    pub max_ns: u64,
}

/// How far a run is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "state")]
pub enum RunState {
    /// Being conducted, or its process ended without a word.
    Running,
    /// All cases were run.
    Complete,
    /// Ended early.
    Interrupted {
        /// Why, in a sentence.
        reason: String,
    },
}

/// A server under test.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SubjectFacts {
    /// Its name in the plan.
    pub name: String,
    /// `kvant`, `command` or `url`.
    pub kind: String,
    /// Its command line, or its URL.
    pub command: String,
    /// What it says of its version, if it says it.
    pub version: Option<String>,
    /// Why it was not run, if it was not: its program is missing.
    #[serde(default)]
    pub left_out: Option<String>,
    /// How often it did not end itself after SIGTERM and was killed.
    #[serde(default)]
    pub killed_count: u32,
}

/// The data that a subject is filled with.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DataFacts {
    /// Keys, sizes and the rest in words, such as `1,000,000 keys of 12 bytes, values of 12 bytes`.
    pub text: String,
    /// Keys.
    pub key_count: u64,
    /// CRC-32C over the settings and a sample of records read back, in hexadecimal: equal data have
    /// equal fingerprints.
    pub fingerprint: String,
    /// Seconds that the fill took, by subject.
    pub fill_s: BTreeMap<String, f64>,
    /// Kvants with equal data and different fingerprints, in words.
    #[serde(default)]
    pub mismatches: Vec<String>,
}

/// Requests of one kind or mixture.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WorkloadFacts {
    /// Its name in the plan.
    pub name: String,
    /// What makes the requests, such as `workload get --keys 1M` or `script get.lua`.
    pub requests: String,
    /// Connections of the generator.
    pub connection_count: usize,
    /// Threads of the generator.
    pub thread_count: usize,
}

/// A setting of the subject, or a parameter of the load, that takes several values.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Axis {
    /// Such as `workers`.
    pub name: String,
    /// The values as text, in the order of the plan.
    pub values: Vec<String>,
}

/// A combination of subject, sweep cell, workload and phase.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Case {
    /// Its index in [`Run::cases`].
    pub id: usize,
    /// Name of the subject.
    pub subject: String,
    /// Value of each axis, in the order of [`Run::sweep`]; empty if the axis does not concern this
    /// case, such as an option of Kvant another server.
    pub cell: Vec<String>,
    /// Name of the workload.
    pub workload: String,
    /// Name of the phase in the plan.
    pub phase: String,
    /// What is done.
    pub kind: PhaseKind,
    /// Planned requests per second, if the plan says it; a share of a maximum is resolved later, in
    /// [`Attempt::rate_per_s`].
    pub rate_per_s: Option<f64>,
    /// The measured time of a run, or of a step of a search, in nanoseconds.
    pub duration_ns: u64,
    /// The stage that is sped up; its name stands after that of the phase.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sped_up: Option<Stage>,
}

impl Case {
    /// Whether both do the same with different subjects, or the same one.
    pub fn is_same_but_for_subject(&self, other: &Case) -> bool {
        (&self.cell, &self.workload, &self.phase) == (&other.cell, &other.workload, &other.phase)
    }

    /// What cases that speed up other stages of the same server have in common: subject, workload,
    /// cell and phase.
    pub(crate) fn place(&self) -> (&str, &str, &[String], &str) {
        (&self.subject, &self.workload, &self.cell, self.planned_phase())
    }

    /// The name of its phase in the plan.
    pub fn planned_phase(&self) -> &str {
        let stage = self.sped_up.map_or("", Stage::name);
        self.phase.strip_suffix(stage).map_or(&self.phase, str::trim_end)
    }
}

kvant_base::named_enum! {
    /// What a phase does.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum PhaseKind {
        /// Holds a rate.
        #[default]
        Hold = "hold",
        /// Searches for the highest rate that holds the objectives.
        FindMax = "find-max",
        /// Several rates, one after the other, without a pause: a result with several phases.
        Steps = "steps",
        /// A rate that changes linearly.
        Ramp = "ramp",
        /// Factors of the maximum, beyond it too.
        Factors = "factors",
        /// No plan: each connection sends when it has its response.
        Closed = "closed",
        /// An external program is the generator.
        Command = "command",
    }
}

impl PhaseKind {
    /// Whether shares of a maximum can be of its result.
    pub fn finds_maximum(self) -> bool {
        matches!(self, PhaseKind::FindMax | PhaseKind::Closed)
    }
}

/// One execution of a case.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Attempt {
    /// Number over all attempts, from 1; names the directory.
    pub number: u32,
    /// [`Case::id`].
    pub case: usize,
    /// From 1 to [`Run::repeats`].
    pub repeat: u32,
    /// From 1; above 1 if earlier ones of this case and repeat do not count.
    pub try_count: u32,
    /// Begin, monotonic.
    pub start_ns: u64,
    /// End, monotonic.
    pub end_ns: u64,
    /// Begin of the measured time, monotonic: time 0 of `load.hlog` and `load.json`. Of a search:
    /// of its first phase.
    pub measure_start_ns: u64,
    /// Begin, in milliseconds since 1970.
    pub start_wall_ms: u64,
    /// The planned rate, if there is one.
    pub rate_per_s: Option<f64>,
    /// Seed of its arrivals and requests: another one in each repeat.
    #[serde(default)]
    pub seed: u64,
    /// How the clocks of a subject on another machine relate to those of this one; `None` if it
    /// was on this machine, or did not tell its time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock: Option<ClockMatch>,
    /// What limits the trust in it, a sentence each, even if it counts: errors, a rate that is not
    /// confirmed, a subject that was not at rest before.
    #[serde(default)]
    pub notes: Vec<String>,
    /// Whether it counts.
    pub verdict: AttemptVerdict,
}

impl Attempt {
    /// A wall time of the subject in nanoseconds since 1970, such as the begin of a recording, on
    /// the monotonic clock of this machine; exact to a millisecond. Negative if it is before the
    /// machine's start.
    pub fn monotonic_ns(&self, wall_ns: u64) -> i64 {
        // Our monotonic clock was 0 at this time of the wall clock that `wall_ns` is of.
        let origin_ns = match &self.clock {
            Some(clock) => i128::from(clock.wall_origin_ns) + i128::from(clock.ahead_ns),
            None => i128::from(self.start_wall_ms) * 1_000_000 - i128::from(self.start_ns),
        };
        i64::try_from(i128::from(wall_ns) - origin_ns).unwrap_or(i64::MAX)
    }
}

/// How the clocks of a subject on another machine relate to the monotonic clock of this one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockMatch {
    /// Its monotonic clock less ours.
    pub ahead_ns: i64,
    /// The most by which `ahead_ns` can be wrong.
    pub error_ns: u64,
    /// Its wall time, in nanoseconds since 1970, when its monotonic clock was 0.
    pub wall_origin_ns: i64,
}

impl ClockMatch {
    /// A time of its monotonic clock on ours.
    pub fn ours_ns(&self, its_ns: u64) -> u64 {
        its_ns.saturating_add_signed(self.ahead_ns.saturating_neg())
    }
}

/// Whether an attempt counts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "verdict", content = "why")]
pub enum AttemptVerdict {
    /// It counts.
    Valid,
    /// Others disturbed the machine, or the generator was late. It is in no figure.
    Disturbed(String),
    /// The subject or the load failed. It is in no figure.
    Failed(String),
    /// It was ended early. It is in no figure.
    CutShort(String),
}

/// The kernel's account of the subject and the machine during an attempt.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Watch {
    /// From before the load began until it had ended, in order of time.
    pub samples: Vec<WatchSample>,
    /// When memory in use was slow, because the hypervisor had taken it back.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub slow_memory: Vec<Stretch>,
}

/// A stretch of time, monotonic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stretch {
    /// Begin.
    pub start_ns: u64,
    /// End.
    pub end_ns: u64,
}

/// Cumulative counters at one time, except where noted. What the system does not report is `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WatchSample {
    /// Monotonic.
    pub at_ns: u64,
    /// CPU time of the subject's processes.
    pub server_cpu_ns: Option<u64>,
    /// Resident memory of the subject (a level, not a counter).
    pub server_rss_bytes: Option<u64>,
    /// Bytes that the subject caused to be read from the disk.
    pub server_read_bytes: Option<u64>,
    /// Bytes that the subject caused to be written to the disk.
    pub server_written_bytes: Option<u64>,
    /// Context switches of the subject: it waited.
    pub server_voluntary_switches: Option<u64>,
    /// Context switches of the subject: it was preempted.
    pub server_involuntary_switches: Option<u64>,
    /// CPU time of the generator.
    pub generator_cpu_ns: u64,
    /// CPU time of nodes of the subject's cluster on this machine; `None` if there are none.
    #[serde(default)]
    pub nodes_cpu_ns: Option<u64>,
    /// CPU time of all tasks, on the CPUs of subjects and generator.
    pub all_cpu_ns: Option<u64>,
    /// Time that the hypervisor took from these CPUs while a task was ready to run.
    pub stolen_ns: Option<u64>,
    /// Time in which a task was ready to run and had no CPU.
    pub pressure_ns: Option<u64>,
}

impl WatchSample {
    /// CPU time of all tasks but the nodes of the subject's cluster.
    pub(crate) fn tasks_cpu_ns(&self) -> Option<u64> {
        Some(self.all_cpu_ns?.saturating_sub(self.nodes_cpu_ns.unwrap_or(0)))
    }
}

/// A sample of `/v0/stats` of a Kvant.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StatsSample {
    /// When they were requested, monotonic.
    #[serde(default)]
    pub asked_ns: u64,
    /// When they had come, monotonic.
    pub at_ns: u64,
    /// The response.
    pub stats: serde_json::Value,
}

/// An event of the subject, with its end if it has one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EventFacts {
    /// Such as `flush`: see docs/events.md.
    pub kind: String,
    /// Monotonic.
    pub start_ns: u64,
    /// Monotonic; `None` if it had not ended.
    pub end_ns: Option<u64>,
    /// Everything else that the subject says of it.
    pub fields: BTreeMap<String, serde_json::Value>,
}

/// A figure of somebody else's report, printed beside ours.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Known {
    /// Workload that it compares with.
    pub workload: String,
    /// Phase that it compares with; empty: any.
    pub phase: String,
    /// What it is in words.
    pub what: String,
    /// Name of the figure: `rate_max`, `achieved`, `p50`, `p90`, `p99`, `p99.9`, `max`, `mean`,
    /// `cpu_per_request`.
    pub figure: String,
    /// Requests per second, or milliseconds.
    pub value: f64,
    /// Where it comes from, such as `seed 002, blocking server`.
    pub source: String,
}
