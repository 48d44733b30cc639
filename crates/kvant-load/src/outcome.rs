//! What a phase of load came to.

use crate::config::Phase;
use crate::histogram::Histogram;
use crate::machine::MachineUse;
use crate::record::Interval;
use serde::{Deserialize, Serialize};

/// The measured part of one phase, over all threads.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// What was asked.
    pub phase: Phase,
    /// Wall time at which the measured time began, in milliseconds since 1970.
    pub start_wall_ms: u64,
    /// How long was measured, in nanoseconds: `phase.duration`, or less when the run was stopped.
    pub measured_ns: u64,
    /// Names of the kinds of requests, by [`crate::OpId::index`].
    pub op_names: Vec<String>,
    /// Everything that was recorded, added up.
    pub total: Interval,
    /// By second, without histograms.
    pub seconds: Vec<Second>,
    /// Planned requests that were not written when the time was over.
    pub backlog: u64,
    /// Requests that were written and not answered when the time was over.
    pub in_flight: u64,
    /// Ages (from the planned time) that the backlog and what was in flight had reached at the end:
    /// their response times are at least these.
    pub unanswered: Histogram,
    /// Per thread.
    pub threads: Vec<ThreadOutcome>,
    /// Use of the CPUs of this machine; `None` when it was not sampled, or the system does not
    /// tell.
    pub machine: Option<MachineUse>,
    /// Whether a signal or a script ended it before its time.
    pub is_cut_short: bool,
}

/// One second of a phase; written as JSON under these names.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Second {
    /// Begin, in nanoseconds since the measured time began.
    pub start_ns: u64,
    /// End, likewise.
    pub end_ns: u64,
    /// Requests whose planned time lies in it.
    pub planned: u64,
    /// Requests answered in it.
    pub completed: u64,
    /// Requests of whatever time that were due and not written at its end.
    pub backlog: u64,
    /// Failures of all kinds in it.
    pub errors: u64,
    /// Percentiles of the response time of what was answered in it, in nanoseconds.
    pub p50_ns: u64,
    /// As `p50_ns`.
    pub p99_ns: u64,
    /// As `p50_ns`.
    pub max_ns: u64,
    /// As [`Outcome::machine`].
    #[serde(default)]
    pub machine: Option<MachineUse>,
}

/// What one thread did.
#[derive(Clone, Debug, Default)]
pub struct ThreadOutcome {
    /// Answers a second, in samples of `sample_ns`: wrk's `Req/Sec`.
    pub rates: Vec<f64>,
    /// How long a sample is, in nanoseconds.
    pub sample_ns: u64,
    /// With `wrk2_exact`: the mean latency that calibration met, in nanoseconds; `None` when it did
    /// not take place.
    pub calibration_mean_ns: Option<f64>,
    /// CPU time used, in nanoseconds.
    pub cpu_ns: u64,
    /// Requests answered.
    pub completed: u64,
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

    /// Response times with those of unanswered requests at the least that they can be.
    pub fn response_with_unanswered(&self) -> Histogram {
        let mut all = self.response();
        all.add(&self.unanswered);
        all
    }

    /// Answers a second.
    pub fn rate_achieved(&self) -> f64 {
        if self.measured_ns == 0 {
            return 0.0;
        }
        self.total.completed as f64 * 1e9 / self.measured_ns as f64
    }
}
