//! What a workload is told, and the text forms of its parts.

use super::key::{self, KeyBytes};
use super::value::{self, ValueBytes};
use crate::config::StatusSet;

/// Most keys that a workload counts.
pub const KEYS_MAX: u64 = key::INDEX_MAX + 1;
/// Most records that a range request may ask for.
pub const RANGE_RECORDS_MAX: u64 = 1_000_000_000;
/// Largest weight of a kind in a mix.
pub const WEIGHT_MAX: u32 = 1_000_000;

/// A workload, already parsed; [`WorkloadConfig::problems`] checks its parts together.
#[derive(Clone, Debug, PartialEq)]
pub struct WorkloadConfig {
    /// Kinds of requests and how often each comes.
    pub mix: Mix,
    /// Keys `0..key_count` exist after a fill.
    pub key_count: u64,
    /// Which of them is asked next.
    pub key_dist: KeyDist,
    /// Length of keys.
    pub key_bytes: KeyBytes,
    /// Length of the values that are put.
    pub value_bytes: ValueBytes,
    /// Share of `get` and `delete` requests whose key is one of `0..key_count`, from 0 to 1; the
    /// others ask for keys that are never stored and that sort between those that are.
    pub hit_ratio: f64,
    /// Records that a range request asks for.
    pub range_records: u64,
    /// Where the requests go.
    pub paths: Paths,
    /// Seed of everything random but the keys themselves.
    pub seed: u64,
}

impl WorkloadConfig {
    /// A workload of `mix` with defaults: a million keys of 12 bytes, uniform, values of 12 bytes,
    /// all hits, ranges of 100.
    pub fn new(mix: Mix) -> WorkloadConfig {
        WorkloadConfig {
            mix,
            key_count: 1_000_000,
            key_dist: KeyDist::Uniform,
            key_bytes: KeyBytes::default(),
            value_bytes: ValueBytes::default(),
            hit_ratio: 1.0,
            range_records: 100,
            paths: Paths::default(),
            seed: 1,
        }
    }

    /// Everything that is wrong with this workload, a sentence each; empty when it can run.
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
        problems.extend(self.paths.problems());
        problems
    }

    /// Statuses over 399 that are no failure of this workload: `404` where keys are asked for that
    /// do not exist, or where deletes are among the requests.
    pub fn expected_statuses(&self) -> StatusSet {
        let misses =
            self.hit_ratio < 1.0 && (self.mix.has(Kind::Get) || self.mix.has(Kind::Delete));
        StatusSet::new((misses || self.mix.has(Kind::Delete)).then_some(404))
    }
}

/// A kind of request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Stores a value.
    Put,
    /// Reads a value.
    Get,
    /// Removes a key.
    Delete,
    /// Reads records in order of their keys.
    Range,
    /// Asks whether the server is alive.
    Status,
}

impl Kind {
    /// All kinds, in the order of [`Kind::index`].
    pub const ALL: [Kind; 5] = [Kind::Put, Kind::Get, Kind::Delete, Kind::Range, Kind::Status];

    /// Its place in tables by kind.
    pub(super) fn index(self) -> usize {
        self as usize
    }

    /// As it is written, which is also its name in histograms.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Put => "put",
            Kind::Get => "get",
            Kind::Delete => "delete",
            Kind::Range => "range",
            Kind::Status => "status",
        }
    }

    /// The HTTP method.
    pub(super) fn method(self) -> &'static str {
        match self {
            Kind::Put => "PUT",
            Kind::Delete => "DELETE",
            Kind::Get | Kind::Range | Kind::Status => "GET",
        }
    }

    /// Parses a name.
    ///
    /// # Errors
    /// A sentence naming the text and what is known.
    pub fn parse(text: &str) -> Result<Kind, String> {
        let known = Kind::ALL.into_iter().find(|kind| kind.name() == text);
        known.ok_or_else(|| {
            format!("`{text}` is no kind of request: write put, get, delete, range or status")
        })
    }
}

/// Kinds of requests and their weights: of `get=90,put=10` nine of ten requests are `get`, in
/// random order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mix(Vec<(Kind, u32)>);

impl Mix {
    /// Requests of one kind.
    pub fn only(kind: Kind) -> Mix {
        Mix(vec![(kind, 1)])
    }

    /// What `--workload WORKLOAD [--mix MIX]` means: one kind, or `mixed` with a mix, which is
    /// `get=90,put=10` unless given.
    ///
    /// # Errors
    /// A sentence about what cannot be read, or about a mix for a workload of one kind.
    pub fn from_flags(workload: &str, mix: Option<&str>) -> Result<Mix, String> {
        if workload == "mixed" {
            return Mix::parse(mix.unwrap_or("get=90,put=10"));
        }
        let kind = Kind::parse(workload).map_err(|_| {
            format!("`{workload}` is no workload: write put, get, delete, range, status or mixed")
        })?;
        match mix {
            Some(mix) => {
                Err(format!("the mix `{mix}` is for the workload mixed, not for {workload}"))
            }
            None => Ok(Mix::only(kind)),
        }
    }

    /// Parses `KIND=WEIGHT,...`.
    ///
    /// # Errors
    /// A sentence naming the part that cannot be read.
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

    /// Kinds and weights, as written.
    pub fn parts(&self) -> &[(Kind, u32)] {
        &self.0
    }

    /// Whether requests of `kind` come at all.
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

/// Which key is asked next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyDist {
    /// All in order, and then again: thread `t` of `T` takes `t`, `t + T`, ...
    Sequential,
    /// Each with the same probability.
    Uniform,
    /// Few of them most of the time: the key of rank `k` with a probability in proportion to `k` to
    /// the power of -0.99. Ranks are spread over the keys, so that neighbours are not hot together.
    Zipfian,
}

impl KeyDist {
    /// Parses `sequential`, `uniform` or `zipfian`.
    ///
    /// # Errors
    /// A sentence naming the text and what is known.
    pub fn parse(text: &str) -> Result<KeyDist, String> {
        match text {
            "sequential" => Ok(KeyDist::Sequential),
            "uniform" => Ok(KeyDist::Uniform),
            "zipfian" => Ok(KeyDist::Zipfian),
            _ => Err(format!("`{text}` is no distribution: write sequential, uniform or zipfian")),
        }
    }
}

/// Paths with queries, which are appended to the path of the target's URL. `{key}` stands for the
/// key, `{limit}` for the number of records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Paths {
    /// Of one value: put, get, delete.
    pub entity: String,
    /// Of a range of records.
    pub range: String,
    /// Of the status.
    pub status: String,
}

impl Default for Paths {
    fn default() -> Paths {
        Paths {
            entity: "/v0/entity?id={key}".into(),
            range: "/v0/entities?start={key}&limit={limit}".into(),
            status: "/v0/status".into(),
        }
    }
}

impl Paths {
    fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        for path in [&self.entity, &self.range, &self.status] {
            if !path.starts_with('/') {
                problems.push(format!("the path `{path}` does not begin with a slash"));
            }
            if path.bytes().any(|b| b <= b' ' || b >= 0x7f) {
                problems.push(format!(
                    "the path `{}` has bytes that need percent-encoding",
                    path.escape_debug()
                ));
            }
        }
        for path in [&self.entity, &self.range] {
            if path.matches("{key}").count() != 1 {
                problems.push(format!("the path `{path}` does not have {{key}} exactly once"));
            }
        }
        problems
    }
}

/// Parses `N` or `A..B` (both ends included), where each number may have a unit of sizes.
pub(super) fn parse_lengths(text: &str) -> Result<(u64, u64), String> {
    let one = |text: &str| kvant_base::size::parse(text);
    match text.split_once("..") {
        Some((min, max)) => Ok((one(min)?, one(max)?)),
        None => one(text).map(|length| (length, length)),
    }
}

/// The problems of lengths `min..=max` of `what`, which must lie within the bounds.
pub(super) fn length_problems(
    what: &str,
    min: u64,
    max: u64,
    least: u64,
    most: u64,
) -> Vec<String> {
    let mut problems = Vec::new();
    if min > max {
        problems.push(format!("{what} of {min} to {max} bytes: the first exceeds the second"));
    }
    if min.min(max) < least || max.max(min) > most {
        problems.push(format!("{what} of {min} to {max} bytes are not within {least} and {most}"));
    }
    problems
}

/// The longest value.
pub use value::BYTES_MAX as VALUE_BYTES_MAX;

#[cfg(test)]
mod tests;
