//! The result of a run as JSON. `docs/load-result.schema.json` describes every field.
//!
//! Invariants:
//! 1. A file has all that another program needs to merge or compare runs: histograms are complete,
//!    in the text format of the HdrHistogram libraries.
//! 2. Units stand last in names: `_ns` nanoseconds, `_ms` milliseconds, `_per_s` a second,
//!    `_bytes`.
//! 3. Within a version fields are added, but never renamed or redefined. Readers ignore unknown
//!    fields and refuse a later version.
#![expect(missing_docs, reason = "docs/load-result.schema.json describes the fields")]

#[cfg(test)]
mod tests;

use crate::assertion::Checked;
use crate::config::LoadConfig;
use crate::find_max::{FindMax, Limit, Point};
use crate::histogram::Histogram;
use crate::outcome::Outcome;
use crate::verdict::Verdict;
use kvant_base::{Error, ErrorKind, Result, duration};
use kvant_env::host;
use serde::{Deserialize, Serialize};
use std::path::Path;

const FORMAT: &str = "kvant-load-result";
const VERSION: u32 = 1;

/// A run: its configuration and the results of its phases.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ResultFile {
    pub format: String,
    pub version: u32,
    pub program_version: String,
    pub command: Vec<String>,
    pub host: HostFacts,
    pub config: ConfigFacts,
    pub phases: Vec<PhaseResult>,
    pub find_max: Option<FindMaxFacts>,
    pub assertions: Vec<AssertionFacts>,
}

/// The generator's machine. What the system does not report is absent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HostFacts {
    pub name: Option<String>,
    pub kernel: Option<String>,
    pub cpu_model: Option<String>,
    pub cpu_count: usize,
    pub memory_bytes: Option<u64>,
}

/// The configuration of all phases.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ConfigFacts {
    pub urls: Vec<String>,
    pub requests: String,
    pub thread_count: usize,
    pub connection_count: usize,
    pub timeout_ns: u64,
    pub arrival: String,
    pub seed: u64,
    pub ok_statuses: Vec<u16>,
    pub batch_latency: bool,
    pub wrk2_exact: bool,
    pub spin_ns: u64,
}

/// An outcome, with sums over all kinds of requests for readers that cannot add histograms.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PhaseResult {
    pub label: String,
    #[serde(flatten)]
    pub outcome: Outcome,
    pub rate_achieved_per_s: f64,
    pub response: Histogram,
    pub response_with_unanswered: Histogram,
    pub service: Histogram,
    pub verdict: Option<Verdict>,
}

/// The result of a search for the highest rate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FindMaxFacts {
    pub goals: Vec<String>,
    pub rate_max_per_s: Option<f64>,
    pub is_confirmed: bool,
    pub saturation_per_s: f64,
    pub limit: String,
    pub reasons: Vec<String>,
    pub points: Vec<PointFacts>,
}

/// The judgement of a phase of a search.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PointFacts {
    pub purpose: String,
    pub rate_per_s: f64,
    pub achieved_per_s: f64,
    pub is_met: bool,
    pub reasons: Vec<String>,
    pub generator: Option<String>,
    #[serde(default)]
    pub disturbance: Option<String>,
}

/// The result of an assertion on a phase.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AssertionFacts {
    #[serde(flatten)]
    pub checked: Checked,
    pub phase: usize,
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
    /// `Invalid`: another format, truncated, or a malformed histogram. `Unsupported`: a later
    /// version.
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

impl ConfigFacts {
    /// The facts of `config`; `requests` names what makes the requests: `GET`, `script put.lua`,
    /// `workload get --keys 1M`.
    pub fn of(config: &LoadConfig, requests: &str) -> ConfigFacts {
        ConfigFacts {
            urls: config.targets.iter().map(|target| target.url.clone()).collect(),
            requests: requests.to_owned(),
            thread_count: config.thread_count,
            connection_count: config.connection_count,
            timeout_ns: duration::ns(config.timeout),
            arrival: config.arrival.name().to_owned(),
            seed: config.seed,
            ok_statuses: config.ok_statuses.as_slice().to_vec(),
            batch_latency: config.batch_latency,
            wrk2_exact: config.wrk2_exact,
            spin_ns: duration::ns(config.spin),
        }
    }
}

impl PhaseResult {
    /// `label` is the purpose of the phase in a search (`saturate`, `confirm`), else empty.
    pub fn of(outcome: &Outcome, label: &str, verdict: Option<&Verdict>) -> PhaseResult {
        PhaseResult {
            label: label.to_owned(),
            rate_achieved_per_s: outcome.rate_achieved(),
            response: outcome.response(),
            response_with_unanswered: outcome.response_with_unanswered(),
            service: outcome.service(),
            outcome: outcome.clone(),
            verdict: verdict.cloned(),
        }
    }
}

impl FindMaxFacts {
    /// The facts of `found`; `goals` are the objectives as given.
    pub fn of(found: &FindMax, goals: &[String]) -> FindMaxFacts {
        let limit = match &found.limit {
            None => "none",
            Some(Limit { generator: None, .. }) => "server",
            Some(Limit { generator: Some(_), .. }) => "generator",
        };
        let failed = found.limit.iter();
        let reasons = failed.flat_map(|limit| limit.generator.iter().chain(&limit.reasons));
        let point = |point: &Point| PointFacts {
            purpose: point.purpose.name().to_owned(),
            rate_per_s: point.rate,
            achieved_per_s: point.achieved,
            is_met: point.judgement.holds(),
            reasons: point.judgement.reasons.clone(),
            generator: point.generator.clone(),
            disturbance: point.disturbance.clone(),
        };
        FindMaxFacts {
            goals: goals.to_vec(),
            rate_max_per_s: found.rate,
            is_confirmed: found.is_confirmed,
            saturation_per_s: found.saturation_rate,
            limit: limit.to_owned(),
            reasons: reasons.cloned().collect(),
            points: found.points.iter().map(point).collect(),
        }
    }
}
