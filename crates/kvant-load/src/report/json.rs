//! The result of a run as JSON. `docs/load-result.schema.json` describes every field.
//!
//! Invariants:
//! 1. A file has all that another program needs to merge or compare runs: histograms are complete,
//!    in the text format of the HdrHistogram libraries. [`PhaseResult::outcome`] reads them back.
//! 2. Units stand last in names: `_ns` nanoseconds, `_ms` milliseconds, `_per_s` a second,
//!    `_bytes`.
//! 3. Within a version fields are added, but never renamed or redefined. Readers ignore unknown
//!    fields and refuse a later version.

mod parts;
mod phase;
#[cfg(test)]
mod tests;

pub use parts::{Latency, OpResult, RateFacts};
pub use phase::PhaseResult;

use crate::assertion::Checked;
use crate::config::LoadConfig;
use crate::find_max::{FindMax, Limit, Point};
use kvant_base::{Error, ErrorKind, Result};
use kvant_env::host;
use parts::{duration_ns, finite};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// The value of `format` in every file.
const FORMAT: &str = "kvant-load-result";
/// The version of the fields.
const VERSION: u32 = 1;

/// A run: its configuration and the results of its phases.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ResultFile {
    /// Always `kvant-load-result`.
    pub format: String,
    /// Version of the fields.
    pub version: u32,
    /// Version of the program that wrote the file.
    pub program_version: String,
    /// The command line, without secret values.
    pub command: Vec<String>,
    /// The machine of the generator.
    pub host: HostFacts,
    /// Configuration of all phases.
    pub config: ConfigFacts,
    /// One for each rate or repeat, in order; at least one.
    pub phases: Vec<PhaseResult>,
    /// The result of a search for the highest rate; its steps are the phases.
    pub find_max: Option<FindMaxFacts>,
    /// The assertions and their results.
    pub assertions: Vec<AssertionFacts>,
}

/// A machine. What the system does not report is absent.
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

/// The configuration of a load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ConfigFacts {
    /// The targets.
    pub urls: Vec<String>,
    /// What makes the requests: `GET`, `script put.lua`, `workload get --keys 1M`.
    pub requests: String,
    /// Event loops.
    pub thread_count: usize,
    /// Connections over all threads.
    pub connection_count: usize,
    /// Deadline of a request, in nanoseconds.
    pub timeout_ns: u64,
    /// `uniform`, `poisson` or `wrk2`.
    pub arrival: String,
    /// Seed of arrivals.
    pub seed: u64,
    /// Statuses over 399 that count as success.
    pub ok_statuses: Vec<u16>,
    /// Whether only the last response of a pipelined batch is recorded.
    pub batch_latency: bool,
    /// Whether schedule and measurement are wrk2's.
    pub wrk2_exact: bool,
    /// How long before a planned time a worker polls instead of sleeping, in nanoseconds.
    pub spin_ns: u64,
}

/// The result of a search for the highest rate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FindMaxFacts {
    /// The objectives, as given.
    pub goals: Vec<String>,
    /// The highest rate that met them, in requests per second; `None` if none did.
    pub rate_max_per_s: Option<f64>,
    /// Whether it held in the longer runs too.
    pub is_confirmed: bool,
    /// Responses per second of the closed loop at the start.
    pub saturation_per_s: f64,
    /// What ended the search upwards: `server`, `generator`, or `none` if no rate failed.
    pub limit: String,
    /// Why the next rate failed, in sentences.
    pub reasons: Vec<String>,
    /// The judgement of each phase, in the order of the phases.
    pub points: Vec<PointFacts>,
}

/// The judgement of a phase of a search.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PointFacts {
    /// Its purpose.
    pub purpose: String,
    /// Planned requests per second; 0 for the closed loop.
    pub rate_per_s: f64,
    /// Responses per second.
    pub achieved_per_s: f64,
    /// Whether the rate held.
    pub is_met: bool,
    /// Why not, in sentences.
    pub reasons: Vec<String>,
    /// How the generator limited it, if it did.
    pub generator: Option<String>,
    /// What disturbed the machine for at least a second, if anything did.
    #[serde(default)]
    pub disturbance: Option<String>,
}

/// The result of an assertion.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AssertionFacts {
    /// The assertion as given.
    pub text: String,
    /// The phase that it was checked on, from 0.
    pub phase: usize,
    /// The measured value with its unit; empty if undecided.
    pub value: String,
    /// Whether it holds; false if undecided.
    pub is_met: bool,
    /// Why it is undecided, if it is.
    pub undecided: Option<String>,
}

impl ResultFile {
    /// A result without phases.
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

    /// The text of the file.
    pub fn to_json(&self) -> String {
        let mut text =
            serde_json::to_string_pretty(self).expect("all keys are strings, all numbers finite");
        text.push('\n');
        text
    }

    /// Parses the text of a file; errors name `file`.
    ///
    /// # Errors
    /// `Invalid`: another format, or truncated. `Unsupported`: a later version.
    pub fn parse(text: &str, file: &Path) -> Result<ResultFile> {
        /// The fields that are read first.
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
    /// `Io`; as [`ResultFile::parse`].
    pub fn read(file: &Path) -> Result<ResultFile> {
        let text = host::read_text(file).map_err(|error| Error::io("read", file, error))?;
        ResultFile::parse(&text, file)
    }
}

impl HostFacts {
    /// The machine of this process.
    pub fn of_this_machine() -> HostFacts {
        let line = |path: &str, start: &str| {
            let text = host::read_text(Path::new(path)).ok()?;
            text.lines().find(|line| line.starts_with(start)).map(|line| line.trim().to_owned())
        };
        let cpu_model = || {
            let line = line("/proc/cpuinfo", "model name")?;
            Some(line.split_once(':')?.1.trim().to_owned())
        };
        HostFacts {
            name: line("/proc/sys/kernel/hostname", ""),
            kernel: line("/proc/sys/kernel/osrelease", "").map(|text| format!("Linux {text}")),
            cpu_model: cpu_model(),
            cpu_count: host::cpu_count(),
            memory_bytes: host::memory_bytes(),
        }
    }
}

impl FindMaxFacts {
    /// The facts of `found`; `goals` are the objectives as given.
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
            rate_per_s: finite(point.rate),
            achieved_per_s: finite(point.achieved),
            is_met: point.judgement.holds(),
            reasons: point.judgement.reasons.clone(),
            generator: point.generator.clone(),
            disturbance: point.disturbance.clone(),
        };
        FindMaxFacts {
            goals: goals.to_vec(),
            rate_max_per_s: found.rate,
            is_confirmed: found.is_confirmed,
            saturation_per_s: finite(found.saturation_rate),
            limit: limit.to_owned(),
            reasons,
            points: found.points.iter().map(point).collect(),
        }
    }
}

impl AssertionFacts {
    /// The result on the phase with that number, from 0.
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
    /// The facts of `config`; `requests` names what makes the requests.
    pub fn of(config: &LoadConfig, requests: &str) -> ConfigFacts {
        ConfigFacts {
            urls: config.targets.iter().map(|target| target.url.clone()).collect(),
            requests: requests.to_owned(),
            thread_count: config.thread_count,
            connection_count: config.connection_count,
            timeout_ns: duration_ns(config.timeout),
            arrival: config.arrival.name().to_owned(),
            seed: config.seed,
            ok_statuses: config.ok_statuses.as_slice().to_vec(),
            batch_latency: config.batch_latency,
            wrk2_exact: config.wrk2_exact,
            spin_ns: duration_ns(config.spin),
        }
    }
}
