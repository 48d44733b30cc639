//! The result of a phase of load.

use crate::config::Phase;
use crate::histogram::Histogram;
use crate::machine::MachineUse;
use crate::record::Interval;
use serde::{Deserialize, Serialize};

/// The measured part of one phase, over all threads; written as JSON under these names.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// The phase as configured.
    #[serde(flatten)]
    pub phase: Phase,
    /// Wall time at which the measured time began, in milliseconds since 1970.
    pub start_wall_ms: u64,
    /// The same by the monotonic clock, in nanoseconds; `None` if it never began.
    #[serde(default)]
    pub measure_start_ns: Option<u64>,
    /// Length of the measured time, in nanoseconds: `phase.duration`, or less if the phase was cut
    /// short.
    pub measured_ns: u64,
    /// The sum of all records, with a named one for each kind of requests.
    #[serde(flatten)]
    pub total: Interval,
    /// By second, without histograms.
    pub seconds: Vec<Second>,
    /// Planned requests that were unsent at the end.
    pub backlog: u64,
    /// Requests that were sent and unanswered at the end.
    pub in_flight: u64,
    /// Ages, from the planned time, of the backlog and of the requests in flight at the end: lower
    /// bounds of their response times.
    pub unanswered: Histogram,
    /// By thread.
    pub threads: Vec<ThreadOutcome>,
    /// CPU use of this machine; `None` if it was not sampled or the system does not report it.
    #[serde(default)]
    pub machine: Option<MachineUse>,
    /// Whether a signal or a script ended the phase before its time.
    pub is_cut_short: bool,
}

/// One second of a phase; written as JSON under these names.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Second {
    /// Begin, in nanoseconds since the measured time began.
    pub start_ns: u64,
    /// End, in nanoseconds since the measured time began.
    pub end_ns: u64,
    /// Requests whose planned time lies in it.
    pub planned: u64,
    /// Requests completed in it.
    pub completed: u64,
    /// Requests, planned at any time, that were due and unsent at its end.
    pub backlog: u64,
    /// Failures of all kinds in it.
    pub errors: u64,
    /// Percentiles of the response time of the requests completed in it, in nanoseconds.
    pub p50_ns: u64,
    /// See `p50_ns`.
    pub p99_ns: u64,
    /// See `p50_ns`.
    pub max_ns: u64,
    /// See [`Outcome::machine`].
    #[serde(default)]
    pub machine: Option<MachineUse>,
}

/// The result of one thread; written as JSON in this order.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ThreadOutcome {
    /// Requests completed.
    pub completed: u64,
    /// CPU time, in nanoseconds.
    pub cpu_ns: u64,
    /// Responses a second, in samples of `sample_ns`: wrk's `Req/Sec`.
    #[serde(rename = "rates_per_s")]
    pub rates: Vec<f64>,
    /// Length of a sample, in nanoseconds.
    pub sample_ns: u64,
    /// With `wrk2_exact`: the mean latency during calibration, in nanoseconds; `None` if there was
    /// no calibration.
    pub calibration_mean_ns: Option<f64>,
}

impl Outcome {
    /// Response time of all kinds of requests.
    pub fn response(&self) -> Histogram {
        self.total.response()
    }

    /// Service time of all kinds of requests.
    pub fn service(&self) -> Histogram {
        self.total.service()
    }

    /// Response times, including the lower bounds of unanswered requests.
    pub fn response_with_unanswered(&self) -> Histogram {
        let mut all = self.response();
        all.add(&self.unanswered);
        all
    }

    /// Responses that are no errors.
    pub fn good_count(&self) -> u64 {
        self.total.completed.saturating_sub(self.total.errors.status)
    }

    /// Goodput: responses a second that are no errors.
    pub fn rate_good(&self) -> f64 {
        match self.total.completed {
            0 => 0.0,
            completed => self.rate_achieved() * self.good_count() as f64 / completed as f64,
        }
    }

    /// Responses a second.
    pub fn rate_achieved(&self) -> f64 {
        if self.measured_ns == 0 {
            return 0.0;
        }
        self.total.completed as f64 * 1e9 / self.measured_ns as f64
    }
}
