//! What a run came to as JSON, whole: `docs/load-result.schema.json` describes every field.
//!
//! Invariants:
//! 1. Nothing is lost that another program needs to merge or compare runs: histograms are in it as
//!    they were recorded, in the text that every HdrHistogram library reads.
//!    [`PhaseResult::outcome`] is the way back.
//! 2. Units stand last in names: `_ns` nanoseconds, `_ms` milliseconds, `_per_s` a second,
//!    `_bytes`.
//! 3. Fields are added, never renamed or given another meaning, within a version. Readers ignore
//!    fields that they do not know, and refuse a later version.

mod parts;
mod phase;
#[cfg(test)]
mod schema;
#[cfg(test)]
mod tests;

pub use parts::{Latency, OpResult, RateFacts, ThreadResult, VerdictFacts};
pub use phase::PhaseResult;

use crate::assertion::Checked;
use crate::config::{Arrival, LoadConfig, StatusSet};
use crate::find_max::{FindMax, Limit, Point};
use kvant_base::{Error, ErrorKind, Result};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// What `format` says in every file.
pub const FORMAT: &str = "kvant-load-result";
/// The version of the fields.
pub const VERSION: u32 = 1;

/// A whole run: what was asked, and what each of its phases came to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ResultFile {
    /// Always [`FORMAT`].
    pub format: String,
    /// Version of the fields: [`VERSION`].
    pub version: u32,
    /// Version of the program that wrote the file.
    pub program_version: String,
    /// The command line, without values that are secrets.
    pub command: Vec<String>,
    /// The machine that the generator ran on.
    pub host: HostFacts,
    /// What holds for all phases.
    pub config: ConfigFacts,
    /// One for each rate or repeat, in order; at least one.
    pub phases: Vec<PhaseResult>,
    /// What a search for the highest rate found; its steps are the phases.
    pub find_max: Option<FindMaxFacts>,
    /// What was asserted, and whether it holds.
    pub assertions: Vec<AssertionFacts>,
}

/// A machine, as far as it tells.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HostFacts {
    /// Its name.
    pub name: Option<String>,
    /// Kernel and its version.
    pub kernel: Option<String>,
    /// Model of the first processor.
    pub cpu_model: Option<String>,
    /// Processors that the generator may use.
    pub cpu_count: usize,
    /// Memory that the generator may use, in bytes.
    pub memory_bytes: Option<u64>,
}

/// [`LoadConfig`] with what makes the requests.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ConfigFacts {
    /// Who was loaded.
    pub urls: Vec<String>,
    /// What made the requests: `GET`, `script put.lua`, `workload get --keys 1M`.
    pub requests: String,
    /// Event loops.
    pub thread_count: usize,
    /// Connections over all threads.
    pub connection_count: usize,
    /// How long a request may take, in nanoseconds.
    pub timeout_ns: u64,
    /// `uniform`, `poisson` or `wrk2`.
    pub arrival: String,
    /// Seed of arrivals.
    pub seed: u64,
    /// Statuses over 399 that count as success.
    pub ok_statuses: Vec<u16>,
    /// Whether only the last answer of a pipelined batch is recorded.
    pub batch_latency: bool,
    /// Whether schedule and measurement are literally those of wrk2.
    pub wrk2_exact: bool,
    /// How long before a planned time a worker polls instead of sleeping, in nanoseconds.
    pub spin_ns: u64,
}

/// What a search for the highest rate found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FindMaxFacts {
    /// What every step had to meet, as it was given.
    pub goals: Vec<String>,
    /// The highest rate that met it, in requests a second; `None` when none did.
    pub rate_max_per_s: Option<f64>,
    /// Whether it held in the longer runs too.
    pub is_confirmed: bool,
    /// Answers a second of the closed loop at the start.
    pub saturation_per_s: f64,
    /// What ended the search upwards: `server`, `generator`, or `none` when nothing failed.
    pub limit: String,
    /// Why the next rate failed, in sentences.
    pub reasons: Vec<String>,
    /// How each phase was judged, in the order of the phases.
    pub points: Vec<PointFacts>,
}

/// How a phase of a search was judged.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PointFacts {
    /// Why it was run.
    pub purpose: String,
    /// Planned requests a second; 0 for the closed loop.
    pub rate_per_s: f64,
    /// Answers a second.
    pub achieved_per_s: f64,
    /// Whether the rate held.
    pub is_met: bool,
    /// Why not, in sentences.
    pub reasons: Vec<String>,
    /// How the generator limited it, if it did.
    pub generator: Option<String>,
    /// What disturbed the machine for a second at least, if something did.
    #[serde(default)]
    pub disturbance: Option<String>,
}

/// One assertion that was checked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AssertionFacts {
    /// As it was given.
    pub text: String,
    /// The phase that it was checked on, counted from 0.
    pub phase: usize,
    /// What was met, with its unit; empty when it could not be decided.
    pub value: String,
    /// Whether it holds. What could not be decided does not.
    pub is_met: bool,
    /// Why it could not be decided, if it could not.
    pub undecided: Option<String>,
}

impl ResultFile {
    /// A run that is to be written: `phases` are added as they end.
    pub fn new(command: Vec<String>, host: HostFacts, config: ConfigFacts) -> ResultFile {
        ResultFile {
            format: FORMAT.to_owned(),
            version: VERSION,
            program_version: env!("CARGO_PKG_VERSION").to_owned(),
            command,
            host,
            config,
            phases: Vec::new(),
            find_max: None,
            assertions: Vec::new(),
        }
    }

    /// The text of the file, with line ends.
    pub fn to_json(&self) -> String {
        let mut text =
            serde_json::to_string_pretty(self).expect("all keys are strings, all numbers finite");
        text.push('\n');
        text
    }

    /// Reads a file's text. `file` is what errors name.
    ///
    /// # Errors
    /// `Invalid`: no such file, or cut off. `Unsupported`: a later version.
    pub fn parse(text: &str, file: &Path) -> Result<ResultFile> {
        /// What is looked at before anything else.
        #[derive(Deserialize)]
        struct Head {
            format: String,
            version: u32,
        }
        let refused = |error: serde_json::Error| {
            Error::invalid(format!("not a result of kvant load: {error}")).with_file(file)
        };
        let head: Head = serde_json::from_str(text).map_err(refused)?;
        if head.format != FORMAT {
            let problem = format!("not a result of kvant load: its format is {:?}", head.format);
            return Err(Error::invalid(problem).with_file(file));
        }
        if head.version > VERSION {
            let problem =
                format!("version {} of the result, and this program knows {VERSION}", head.version);
            return Err(Error::new(ErrorKind::Unsupported, problem).with_file(file));
        }
        serde_json::from_str(text).map_err(refused)
    }

    /// Reads a file.
    ///
    /// # Errors
    /// `Io` when it cannot be read; as [`ResultFile::parse`].
    pub fn read(file: &Path) -> Result<ResultFile> {
        let text =
            kvant_env::host::read_text(file).map_err(|error| Error::io("read", file, error))?;
        ResultFile::parse(&text, file)
    }
}

impl HostFacts {
    /// The machine that this process runs on.
    pub fn of_this_machine() -> HostFacts {
        let line = |path: &str| {
            let text = kvant_env::host::read_text(Path::new(path)).ok()?;
            text.lines().next().map(|line| line.trim().to_owned())
        };
        let cpu_model = || {
            let text = kvant_env::host::read_text(Path::new("/proc/cpuinfo")).ok()?;
            let row = text.lines().find(|row| row.starts_with("model name"))?;
            Some(row.split_once(':')?.1.trim().to_owned())
        };
        HostFacts {
            name: line("/proc/sys/kernel/hostname"),
            kernel: line("/proc/sys/kernel/osrelease").map(|release| format!("Linux {release}")),
            cpu_model: cpu_model(),
            cpu_count: kvant_env::host::cpu_count(),
            memory_bytes: kvant_env::host::memory_bytes(),
        }
    }
}

impl FindMaxFacts {
    /// What `found` says; `goals` are the objectives as they were given.
    pub fn of(found: &FindMax, goals: &[String]) -> FindMaxFacts {
        let (limit, reasons) = match &found.limit {
            Limit::Server { reasons, .. } => ("server", reasons.clone()),
            Limit::Generator { how, reasons, .. } => {
                ("generator", [std::slice::from_ref(how), reasons.as_slice()].concat())
            }
            Limit::None => ("none", Vec::new()),
        };
        let point = |point: &Point| PointFacts {
            purpose: point.purpose.name().to_owned(),
            rate_per_s: phase::finite(point.rate),
            achieved_per_s: phase::finite(point.achieved),
            is_met: point.judgement.holds(),
            reasons: point.judgement.reasons.clone(),
            generator: point.generator.clone(),
            disturbance: point.disturbance.clone(),
        };
        FindMaxFacts {
            goals: goals.to_vec(),
            rate_max_per_s: found.rate,
            is_confirmed: found.is_confirmed,
            saturation_per_s: phase::finite(found.saturation_rate),
            limit: limit.to_owned(),
            reasons,
            points: found.points.iter().map(point).collect(),
        }
    }
}

impl AssertionFacts {
    /// What `checked` says of the phase with that number, counted from 0.
    pub fn of(checked: &Checked, phase: usize) -> AssertionFacts {
        AssertionFacts {
            text: checked.text.clone(),
            phase,
            value: checked.value.clone(),
            is_met: checked.is_met,
            undecided: checked.undecided.clone(),
        }
    }
}

impl ConfigFacts {
    /// What `config` says; `requests` names what makes the requests.
    pub fn of(config: &LoadConfig, requests: &str) -> ConfigFacts {
        ConfigFacts {
            urls: config.targets.iter().map(|target| target.url.clone()).collect(),
            requests: requests.to_owned(),
            thread_count: config.thread_count,
            connection_count: config.connection_count,
            timeout_ns: phase::duration_ns(config.timeout),
            arrival: match config.arrival {
                Arrival::Uniform => "uniform",
                Arrival::Poisson => "poisson",
                Arrival::Wrk2 => "wrk2",
            }
            .to_owned(),
            seed: config.seed,
            ok_statuses: statuses(&config.ok_statuses),
            batch_latency: config.batch_latency,
            wrk2_exact: config.wrk2_exact,
            spin_ns: phase::duration_ns(config.spin),
        }
    }
}

fn statuses(set: &StatusSet) -> Vec<u16> {
    (0..1_000).filter(|&status| set.contains(status)).collect()
}
