//! What a phase is made of as JSON: rates, latencies, kinds, threads, a verdict. Seconds and counts
//! of failures are written as they are.

use super::phase::finite;
use crate::config::Rate;
use crate::histogram::Histogram;
use crate::outcome::ThreadOutcome;
use crate::report::encoded;
use crate::verdict::{Share, Verdict};
use kvant_base::{Error, Result};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A rate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RateFacts {
    /// `closed`, `constant` or `ramp`.
    pub kind: String,
    /// Planned requests a second at the begin; 0 in a closed loop.
    pub from_per_s: f64,
    /// Planned requests a second at the end; the same as at the begin unless it is a ramp.
    pub to_per_s: f64,
}

/// A histogram and what people look at first. Percentiles are the end of a unit of resolution, the
/// maximum its begin.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// How many values there are; with none, all that follows is 0.
    pub count: u64,
    /// The smallest, in nanoseconds.
    pub min_ns: u64,
    /// The mean, in nanoseconds.
    pub mean_ns: u64,
    /// The standard deviation, in nanoseconds.
    pub stdev_ns: u64,
    /// What half of all values do not exceed, in nanoseconds.
    pub p50_ns: u64,
    /// As `p50_ns`, for 75 %.
    pub p75_ns: u64,
    /// As `p50_ns`, for 90 %.
    pub p90_ns: u64,
    /// As `p50_ns`, for 99 %.
    pub p99_ns: u64,
    /// As `p50_ns`, for 99.9 %.
    pub p99_9_ns: u64,
    /// As `p50_ns`, for 99.99 %.
    pub p99_99_ns: u64,
    /// The largest, in nanoseconds.
    pub max_ns: u64,
    /// All values: HdrHistogram V2, deflated, base64; in nanoseconds.
    pub histogram: String,
}

/// One kind of requests.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OpResult {
    /// Its name.
    pub name: String,
    /// Answers by status.
    pub statuses: BTreeMap<u16, u64>,
    /// From the plan to the answer.
    pub response: Latency,
    /// From the write to the answer.
    pub service: Latency,
}

/// One thread.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ThreadResult {
    /// Requests answered.
    pub completed: u64,
    /// CPU time, in nanoseconds.
    pub cpu_ns: u64,
    /// Answers a second, in samples of `sample_ns`.
    pub rates_per_s: Vec<f64>,
    /// Length of a sample in nanoseconds.
    pub sample_ns: u64,
    /// With wrk2's literal measurement: the mean latency of its calibration, in nanoseconds.
    pub calibration_mean_ns: Option<f64>,
}

/// Who was the limit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct VerdictFacts {
    /// `generator`, `server` or `neither`.
    pub bound: String,
    /// Whether the figures are the server's: not when the generator was late by more than a tenth
    /// of what it measured, or the machine was disturbed.
    pub is_valid: bool,
    /// What disturbed the machine, if that was too much.
    #[serde(default)]
    pub disturbance: Option<String>,
    /// How much of the response time is the generator's, at p50, p90, p99 and p99.9.
    #[serde(default)]
    pub shares: Vec<Share>,
    /// The most important reason.
    pub headline: String,
    /// Everything else worth saying, and what to do.
    pub sentences: Vec<String>,
}

impl Latency {
    /// What `histogram` holds.
    pub fn of(histogram: &Histogram) -> Latency {
        Latency {
            count: histogram.count(),
            min_ns: histogram.min_ns(),
            mean_ns: histogram.mean_ns().round() as u64,
            stdev_ns: histogram.stdev_ns().round() as u64,
            p50_ns: histogram.percentile_ns(50.0),
            p75_ns: histogram.percentile_ns(75.0),
            p90_ns: histogram.percentile_ns(90.0),
            p99_ns: histogram.percentile_ns(99.0),
            p99_9_ns: histogram.percentile_ns(99.9),
            p99_99_ns: histogram.percentile_ns(99.99),
            max_ns: histogram.max_ns(),
            histogram: encoded::encode(histogram),
        }
    }

    /// The histogram itself.
    ///
    /// # Errors
    /// `Invalid`: the text is no histogram.
    pub fn decode(&self) -> Result<Histogram> {
        encoded::decode(&self.histogram)
    }
}

impl VerdictFacts {
    pub(super) fn of(verdict: &Verdict) -> VerdictFacts {
        VerdictFacts {
            bound: verdict.bound.name().to_owned(),
            is_valid: verdict.is_valid,
            disturbance: verdict.disturbance.clone(),
            shares: verdict.shares.clone(),
            headline: verdict.headline.clone(),
            sentences: verdict.sentences.clone(),
        }
    }
}

impl RateFacts {
    pub(super) fn of(rate: Rate) -> RateFacts {
        let (kind, from, to) = match rate {
            Rate::Closed => ("closed", 0.0, 0.0),
            Rate::Constant(rate) => ("constant", rate, rate),
            Rate::Ramp { from, to } => ("ramp", from, to),
        };
        RateFacts { kind: kind.to_owned(), from_per_s: finite(from), to_per_s: finite(to) }
    }

    pub(super) fn rate(&self) -> Result<Rate> {
        match self.kind.as_str() {
            "closed" => Ok(Rate::Closed),
            "constant" => Ok(Rate::Constant(self.from_per_s)),
            "ramp" => Ok(Rate::Ramp { from: self.from_per_s, to: self.to_per_s }),
            other => Err(Error::invalid(format!("{other:?} is no kind of rate"))),
        }
    }
}

impl ThreadResult {
    pub(super) fn of(thread: &ThreadOutcome) -> ThreadResult {
        ThreadResult {
            completed: thread.completed,
            cpu_ns: thread.cpu_ns,
            rates_per_s: thread.rates.iter().map(|&rate| finite(rate)).collect(),
            sample_ns: thread.sample_ns,
            calibration_mean_ns: thread.calibration_mean_ns.filter(|mean| mean.is_finite()),
        }
    }

    pub(super) fn thread(&self) -> ThreadOutcome {
        ThreadOutcome {
            rates: self.rates_per_s.clone(),
            sample_ns: self.sample_ns,
            calibration_mean_ns: self.calibration_mean_ns,
            cpu_ns: self.cpu_ns,
            completed: self.completed,
        }
    }
}
