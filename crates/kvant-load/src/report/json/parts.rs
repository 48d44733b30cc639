//! Rates, latencies and kinds of requests as JSON.

use crate::config::Rate;
use crate::histogram::Histogram;
use crate::record::OpRecord;
use crate::report::encoded;
use kvant_base::{Error, Result};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;

/// A rate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RateFacts {
    /// `closed`, `constant` or `ramp`.
    pub kind: String,
    /// Planned requests per second at the begin; 0 in a closed loop.
    pub from_per_s: f64,
    /// Planned requests per second at the end; differs from the begin in a ramp only.
    pub to_per_s: f64,
}

/// A histogram and its usual statistics. Percentiles are the highest value of a bucket, the maximum
/// is the lowest.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// The number of values; if 0, all statistics are 0.
    pub count: u64,
    /// The smallest, in nanoseconds.
    pub min_ns: u64,
    /// The mean, in nanoseconds.
    pub mean_ns: u64,
    /// The standard deviation, in nanoseconds.
    pub stdev_ns: u64,
    /// The 50th percentile, in nanoseconds.
    pub p50_ns: u64,
    /// The 75th percentile, in nanoseconds.
    pub p75_ns: u64,
    /// The 90th percentile, in nanoseconds.
    pub p90_ns: u64,
    /// The 99th percentile, in nanoseconds.
    pub p99_ns: u64,
    /// The 99.9th percentile, in nanoseconds.
    pub p99_9_ns: u64,
    /// The 99.99th percentile, in nanoseconds.
    pub p99_99_ns: u64,
    /// The largest, in nanoseconds.
    pub max_ns: u64,
    /// All values, in nanoseconds: HdrHistogram V2, deflated, base64.
    pub histogram: String,
}

/// One kind of requests.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OpResult {
    /// Its name.
    pub name: String,
    /// Responses by status.
    pub statuses: BTreeMap<u16, u64>,
    /// Response time, from the plan.
    pub response: Latency,
    /// Service time, from the write.
    pub service: Latency,
}

impl Latency {
    /// The statistics and values of `histogram`.
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

    /// Decodes the histogram.
    ///
    /// # Errors
    /// `Invalid`: the text is no histogram.
    pub fn decode(&self) -> Result<Histogram> {
        encoded::decode(&self.histogram)
    }
}

impl OpResult {
    pub(super) fn of(name: String, record: &OpRecord) -> OpResult {
        OpResult {
            name,
            statuses: record.statuses.iter().copied().collect(),
            response: Latency::of(&record.response),
            service: Latency::of(&record.service),
        }
    }

    pub(super) fn record(&self) -> Result<OpRecord> {
        Ok(OpRecord {
            response: self.response.decode()?,
            service: self.service.decode()?,
            statuses: self.statuses.iter().map(|(&status, &count)| (status, count)).collect(),
        })
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

/// `duration` in nanoseconds, at most `u64::MAX` (584 years).
pub(super) fn duration_ns(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// `number`, or 0 if it is infinite or not a number, which JSON cannot express.
pub(super) fn finite(number: f64) -> f64 {
    if number.is_finite() { number } else { 0.0 }
}
