//! Configuration of a workload, and the text forms of its parts. Errors of the parsers are
//! sentences with the bad text and the accepted forms.

use super::key::{self, KeyBytes};
use super::value::ValueBytes;
use crate::config::StatusSet;
use kvant_base::{Error, named_enum};
use std::fmt;

const KEYS_MAX: u64 = key::INDEX_MAX + 1;
const RANGE_RECORDS_MAX: u64 = 1_000_000_000;
const WEIGHT_MAX: u32 = 1_000_000;

/// A workload; [`WorkloadConfig::problems`] checks it.
#[derive(Clone, Debug, PartialEq)]
pub struct WorkloadConfig {
    /// Kinds of requests and their weights.
    pub mix: Mix,
    /// A fill stores the keys `0..key_count`.
    pub key_count: u64,
    /// Which of them the next request has.
    pub key_dist: KeyDist,
    /// Length of keys.
    pub key_bytes: KeyBytes,
    /// Length of the values of `put` requests.
    pub value_bytes: ValueBytes,
    /// Seconds after which the values of `put` requests expire; `None`: never.
    pub ttl_s: Option<u64>,
    /// Share of `get` and `delete` requests whose key is one of `0..key_count`, from 0 to 1; the
    /// others have keys that are never stored and sort between stored ones.
    pub hit_ratio: f64,
    /// Limit of a range request, in records.
    pub range_records: u64,
    /// Seed of everything random except the bytes of keys.
    pub seed: u64,
}

impl WorkloadConfig {
    /// A workload with a million keys of 12 bytes, uniform, values of 12 bytes, hits only, and
    /// ranges of 100 records.
    pub fn new(mix: Mix) -> WorkloadConfig {
        WorkloadConfig {
            mix,
            key_count: 1_000_000,
            key_dist: KeyDist::Uniform,
            key_bytes: KeyBytes::default(),
            value_bytes: ValueBytes::default(),
            ttl_s: None,
            hit_ratio: 1.0,
            range_records: 100,
            seed: 1,
        }
    }

    /// Every problem of this workload, a sentence each.
    pub fn problems(&self) -> Vec<String> {
        let mut problems = self.mix.problems();
        if !(1..=KEYS_MAX).contains(&self.key_count) {
            problems.push(format!("{} keys are not within 1 and {KEYS_MAX}", self.key_count));
        }
        if !(0.0..=1.0).contains(&self.hit_ratio) {
            problems.push(format!("a hit ratio of {} is not within 0 and 1", self.hit_ratio));
        }
        if !(1..=RANGE_RECORDS_MAX).contains(&self.range_records) {
            problems.push(format!(
                "a range of {} records is not within 1 and {RANGE_RECORDS_MAX}",
                self.range_records
            ));
        }
        problems.extend(self.key_bytes.problems());
        problems.extend(self.value_bytes.problems());
        problems
    }

    /// Statuses over 399 that are no failures: `404` if requests have keys that do not exist, or
    /// delete keys.
    pub fn expected_statuses(&self) -> StatusSet {
        let has_misses = self.hit_ratio < 1.0 && self.mix.has(Kind::Get);
        StatusSet::new((has_misses || self.mix.has(Kind::Delete)).then_some(404))
    }
}

/// Refuses a configuration with problems.
pub(super) fn check(problems: Vec<String>) -> kvant_base::Result<()> {
    if problems.is_empty() {
        return Ok(());
    }
    Err(Error::invalid(problems.join("; ")))
}

named_enum! {
    /// A kind of request. The name is also that of its histograms.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum Kind {
        /// Stores a value.
        Put = "put",
        /// Reads a value.
        Get = "get",
        /// Removes a key.
        Delete = "delete",
        /// Reads records in the order of their keys.
        Range = "range",
        /// Reads the server's status.
        Status = "status",
    }
}

impl Kind {
    pub(super) fn index(self) -> usize {
        self as usize
    }

    pub(super) fn method(self) -> &'static str {
        match self {
            Kind::Put => "PUT",
            Kind::Delete => "DELETE",
            Kind::Get | Kind::Range | Kind::Status => "GET",
        }
    }

    /// Parses a name.
    pub fn parse(text: &str) -> Result<Kind, String> {
        Kind::from_name(text).ok_or_else(|| {
            format!("`{text}` is no kind of request: write put, get, delete, range or status")
        })
    }
}

/// Kinds of requests and their weights: with `get=90,put=10` nine of ten requests are `get`, in
/// random order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mix(Vec<(Kind, u32)>);

impl Default for Mix {
    fn default() -> Mix {
        Mix(vec![(Kind::Get, 90), (Kind::Put, 10)])
    }
}

impl Mix {
    /// Requests of one kind.
    pub fn only(kind: Kind) -> Mix {
        Mix(vec![(kind, 1)])
    }

    /// The requests of a workload: the name of a kind, or `mixed` with a mix.
    pub fn of_workload(workload: &str, mix: Option<Mix>) -> Result<Mix, String> {
        if workload == "mixed" {
            return Ok(mix.unwrap_or_default());
        }
        let kind = Kind::parse(workload).map_err(|_| {
            format!("`{workload}` is no workload: write put, get, delete, range, status or mixed")
        })?;
        match mix {
            Some(Mix(parts)) => {
                let mix = list(&parts);
                Err(format!("the mix `{mix}` is for the workload mixed, not for {workload}"))
            }
            None => Ok(Mix::only(kind)),
        }
    }

    /// Parses `KIND=WEIGHT,...`.
    pub fn parse(text: &str) -> Result<Mix, String> {
        let mut parts = Vec::new();
        for part in text.split(',') {
            let (kind, weight) = part
                .split_once('=')
                .ok_or_else(|| format!("`{part}` is not KIND=WEIGHT, such as get=90,put=10"))?;
            let kind = Kind::parse(kind.trim())?;
            let weight = weight.trim();
            let plain = !weight.is_empty() && weight.bytes().all(|b| b.is_ascii_digit());
            let weight = plain.then(|| weight.parse().ok()).flatten().ok_or_else(|| {
                format!("`{weight}` is no weight: write a whole number, such as get=90")
            })?;
            parts.push((kind, weight));
        }
        Ok(Mix(parts))
    }

    pub(super) fn parts(&self) -> &[(Kind, u32)] {
        &self.0
    }

    /// Whether there are requests of `kind`.
    pub fn has(&self, kind: Kind) -> bool {
        self.0.iter().any(|(known, weight)| *known == kind && *weight > 0)
    }

    fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        for kind in Kind::ALL {
            if self.0.iter().filter(|(known, _)| *known == kind).count() > 1 {
                problems.push(format!("the mix names {} more than once", kind.name()));
            }
        }
        for (kind, weight) in self.0.iter().filter(|(_, weight)| *weight > WEIGHT_MAX) {
            problems.push(format!("the weight {weight} of {} exceeds {WEIGHT_MAX}", kind.name()));
        }
        if self.0.iter().all(|(_, weight)| *weight == 0) {
            problems.push("the mix has no kind with a weight above 0".into());
        }
        problems
    }
}

impl fmt::Display for Mix {
    /// `get=90,put=10`, or the name of the only kind.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0[..] {
            [(only, _)] => f.write_str(only.name()),
            _ => f.write_str(&list(&self.0)),
        }
    }
}

fn list(parts: &[(Kind, u32)]) -> String {
    let part = |(kind, weight): &(Kind, u32)| format!("{}={weight}", kind.name());
    parts.iter().map(part).collect::<Vec<String>>().join(",")
}

named_enum! {
    /// Which key the next request has.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum KeyDist {
        /// All in order, repeatedly: thread `t` of `T` takes `t`, `t + T`, ...
        Sequential = "sequential",
        /// Each with the same probability.
        Uniform = "uniform",
        /// The key of rank `k` with a probability proportional to `k` to the power of -0.99. A
        /// permutation spreads the ranks, so that hot keys are not neighbours.
        Zipfian = "zipfian",
    }
}

impl KeyDist {
    /// Parses `sequential`, `uniform` or `zipfian`.
    pub fn parse(text: &str) -> Result<KeyDist, String> {
        KeyDist::from_name(text).ok_or_else(|| {
            format!("`{text}` is no distribution: write sequential, uniform or zipfian")
        })
    }
}

#[cfg(test)]
mod tests;
