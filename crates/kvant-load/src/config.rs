//! Configuration of a load. Nothing here parses text.

mod duration_ns;
mod rate;
#[cfg(test)]
mod tests;

pub use rate::Rate;

use crate::target::Target;
use kvant_base::named_enum;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Configuration that holds for all phases of a load.
#[derive(Clone, Debug)]
pub struct LoadConfig {
    /// Never empty in a running load. Connection `i` belongs to `targets[i % targets.len()]`.
    pub targets: Vec<Target>,
    /// Event loops, each on its own thread.
    pub thread_count: usize,
    /// Connections over all threads: thread `t` of `T` has those `i` with `i % T == t`, so that no
    /// connection is lost to a division.
    pub connection_count: usize,
    /// Deadline of a request, from its write to the last byte of its response. On expiry it counts
    /// as a timeout and its connection is closed and reopened.
    pub timeout: Duration,
    /// Distribution of the planned times.
    pub arrival: Arrival,
    /// Seed of arrivals; scripts and workloads have their own.
    pub seed: u64,
    /// Statuses over 399 that count as success.
    pub ok_statuses: StatusSet,
    /// Record only the last response of a pipelined batch (`-B`).
    pub batch_latency: bool,
    /// wrk2's literal schedule and measurement: connections that start 5 ms apart, each with its
    /// own plan, catch up at twice the rate; waits are rounded up to milliseconds; histograms start
    /// anew after 10 s of calibration within the duration.
    pub wrk2_exact: bool,
    /// How long before a planned time a worker polls instead of sleeping, so that a late wake-up
    /// does not delay the request. Limited to [`SPIN_SHARE_MAX`] of the interval between the
    /// worker's requests: slow plans are met precisely, and fast ones, which hardly sleep, do not
    /// cost a core. With [`SPIN_ALWAYS`] workers never sleep during a phase and take a core each.
    pub spin: Duration,
    /// Length of the intervals that [`crate::Load::run`] passes on; a second is a multiple of it.
    /// [`crate::Outcome::seconds`] are whole seconds in any case.
    pub interval: Duration,
    /// CA certificates (PEM) to check the server's certificate against; `None`: certificates are
    /// not checked, as in wrk and wrk2.
    pub ca_pem: Option<Vec<u8>>,
}

impl Default for LoadConfig {
    /// One thread with one connection and no target yet.
    fn default() -> LoadConfig {
        LoadConfig {
            targets: Vec::new(),
            thread_count: 1,
            connection_count: 1,
            timeout: Duration::from_secs(2),
            arrival: Arrival::Uniform,
            seed: 1,
            ok_statuses: StatusSet::default(),
            batch_latency: false,
            wrk2_exact: false,
            spin: Duration::ZERO,
            interval: Duration::from_secs(1),
            ca_pem: None,
        }
    }
}

/// A part of a load that is measured on its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Phase {
    /// The planned rate.
    pub rate: Rate,
    /// Load before the measured time, not measured, at the rate with which that starts. Without it
    /// a phase does not wait for the responses to requests of the phase before.
    #[serde(rename = "warmup_ns", with = "duration_ns")]
    pub warmup: Duration,
    /// The measured time.
    #[serde(rename = "duration_ns", with = "duration_ns")]
    pub duration: Duration,
    /// Ends the phase once so many requests are sent and settled.
    pub request_count_max: Option<u64>,
}

named_enum! {
    /// Distribution of the planned times.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Arrival {
        /// Equal intervals over all threads together.
        Uniform = "uniform",
        /// Exponentially distributed intervals, as from independent users.
        Poisson = "poisson",
        /// wrk2's: each connection has its own plan and waits for its own responses.
        Wrk2 = "wrk2",
    }
}

/// Polling without sleep.
pub const SPIN_ALWAYS: Duration = Duration::MAX;
/// Largest share of the interval between two planned requests of a thread that it polls.
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
        let interval_s = self.thread_count as f64 / rate_max;
        if interval_s.is_finite() {
            self.spin.min(Duration::from_secs_f64((interval_s * SPIN_SHARE_MAX).min(1.0)))
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

    /// The union of both sets.
    #[must_use]
    pub fn union(&self, other: &StatusSet) -> StatusSet {
        StatusSet::new(self.0.iter().chain(&other.0).copied())
    }

    /// The statuses in ascending order.
    pub fn as_slice(&self) -> &[u16] {
        &self.0
    }

    /// Whether `status` is in the set.
    pub fn contains(&self, status: u16) -> bool {
        self.0.binary_search(&status).is_ok()
    }

    /// Whether a response with `status` is a success: up to 399, or in the set.
    pub fn is_success(&self, status: u16) -> bool {
        status <= 399 || self.contains(status)
    }
}
