//! What a run is told: who is loaded, how, and for how long. Nothing here parses text.

use crate::target::Target;
use std::time::Duration;

/// Everything that holds for all phases of a run.
#[derive(Clone, Debug)]
pub struct LoadConfig {
    /// Who is loaded; never empty. Connection `i` belongs to `targets[i % targets.len()]`.
    pub targets: Vec<Target>,
    /// Event loops, each on its own thread.
    pub thread_count: usize,
    /// Connections over all threads: thread `t` of `T` has `i` with `i % T == t`, so that none is
    /// lost to a division.
    pub connection_count: usize,
    /// How long a request may take from its write to the last byte of its answer. Then its
    /// connection is closed and opened anew, and it is counted as a timeout.
    pub timeout: Duration,
    /// How the planned times are spread.
    pub arrival: Arrival,
    /// Seed of arrivals; scripts and workloads get theirs from their own configuration.
    pub seed: u64,
    /// Statuses over 399 that count as success.
    pub ok_statuses: StatusSet,
    /// Record only the last answer of a pipelined batch (`-B`).
    pub batch_latency: bool,
    /// wrk2's literal schedule and measurement: private plans that start 5 ms apart, catching up at
    /// twice the rate, waits rounded up to milliseconds, 10 s of calibration within the duration
    /// after which histograms start anew.
    pub wrk2_exact: bool,
    /// How long before a planned time a worker stops sleeping and polls, so that waking late does
    /// not make it late. No more than [`SPIN_SHARE_MAX`] of the distance between its requests is
    /// polled away, so that slow plans are met precisely and fast ones, which hardly sleep, do not
    /// cost a core. [`SPIN_ALWAYS`]: workers never sleep while a phase runs, not even for answers;
    /// each takes a core of its own.
    pub spin: Duration,
    /// Check the server's certificate against this PEM file. `None`: certificates are not checked,
    /// as in wrk and wrk2.
    pub ca_pem: Option<Vec<u8>>,
}

/// A stretch of load that is measured on its own.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Phase {
    /// How many requests are planned.
    pub rate: Rate,
    /// Load that is not measured, before the measured time, at the rate with which that starts.
    pub warmup: Duration,
    /// The measured time.
    pub duration: Duration,
    /// Stop when this many requests have been sent and answered or lost, whatever is left of
    /// `duration`.
    pub request_count_max: Option<u64>,
}

/// Planned requests a second, over all threads.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Rate {
    /// No plan: each connection sends when its answer is there. Response time is then service time,
    /// and what the server does not answer is not asked (coordinated omission).
    #[default]
    Closed,
    /// The same rate all the time.
    Constant(f64),
    /// A rate that changes evenly from one to the other over the phase.
    Ramp {
        /// Requests a second at the start.
        from: f64,
        /// Requests a second at the end.
        to: f64,
    },
}

/// How planned times are spread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// At even distances, over all threads together.
    Uniform,
    /// At exponentially distributed distances, as independent users arrive.
    Poisson,
    /// As wrk2 does: each connection has its own plan and sends only when its own answer is there.
    Wrk2,
}

/// Polling all the time.
pub const SPIN_ALWAYS: Duration = Duration::MAX;
/// The largest share of the time between two planned requests of a thread that it polls before the
/// second.
pub const SPIN_SHARE_MAX: f64 = 0.1;

impl LoadConfig {
    /// How long workers poll before a planned time in a phase of this rate.
    pub fn spin_in(&self, rate: &Rate) -> Duration {
        if self.spin == SPIN_ALWAYS {
            return SPIN_ALWAYS;
        }
        let rate_max = match *rate {
            Rate::Closed => return Duration::ZERO,
            Rate::Constant(rate) => rate,
            Rate::Ramp { from, to } => from.max(to),
        };
        let distance_s = self.thread_count as f64 / rate_max;
        if distance_s.is_finite() {
            self.spin.min(Duration::from_secs_f64((distance_s * SPIN_SHARE_MAX).min(1.0)))
        } else {
            self.spin
        }
    }
}

/// A set of HTTP statuses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StatusSet(Vec<u16>);

impl StatusSet {
    /// A set of these statuses.
    pub fn new(statuses: impl IntoIterator<Item = u16>) -> StatusSet {
        let mut statuses: Vec<u16> = statuses.into_iter().collect();
        statuses.sort_unstable();
        statuses.dedup();
        StatusSet(statuses)
    }

    /// All statuses of both sets.
    #[must_use]
    pub fn union(&self, other: &StatusSet) -> StatusSet {
        StatusSet::new(self.0.iter().chain(&other.0).copied())
    }

    /// Whether `status` is in the set.
    pub fn contains(&self, status: u16) -> bool {
        self.0.binary_search(&status).is_ok()
    }

    /// Whether an answer with `status` counts as success: up to 399, or in the set.
    pub fn is_success(&self, status: u16) -> bool {
        status <= 399 || self.contains(status)
    }
}

#[cfg(test)]
mod tests;
