//! Searches for the highest sustained rate, as docs/load.md describes: a closed loop, steps, a
//! bisection, longer runs that confirm the result, and a run at 80 % of it.
//!
//! A store that defers its work looks good for ten seconds at any rate: hence the longer runs. A
//! rate holds if its plan is kept (see [`Judgement`]) and the caller's objective is met. A phase
//! that failed narrowly is repeated before it counts: one hiccup of a shared machine must not end
//! the search at a fifth of the truth. A phase that failed while the machine was disturbed does not
//! count either, up to a number of them, so that the search ends on a machine that is always
//! disturbed too. So is the run at 80 % repeated, whether it failed or not.
//!
//! The generator's lateness is no criterion: response times count from the plan, so lateness can
//! make a good rate look bad, but never a bad one good. It decides which side a failure is ascribed
//! to ([`Limit`]).
//!
//! The search sends no requests: the caller runs the phases. Threads: the caller's.

use crate::config::Phase;
use crate::outcome::Outcome;
use kvant_base::Result;
use std::time::Duration;

mod judge;
mod search;

pub use judge::Judgement;
pub use search::find_max;

/// The lengths of the phases of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FindMaxConfig {
    /// Load before each measured time.
    pub settle: Duration,
    /// The measured time of the closed loop and of each step. A confirmation takes three times as
    /// long.
    pub measure: Duration,
}

/// What the search needs from its caller.
pub struct Means<'a> {
    /// Runs a phase.
    pub run: &'a mut dyn FnMut(&Phase, &Attempt) -> Result<Outcome>,
    /// Returns the objectives that a phase missed, such as `p99<5ms`, and what else kept the rate
    /// from being sustained, a sentence each. Called right after the phase.
    pub slo: &'a dyn Fn(&Outcome) -> Vec<String>,
    /// Receives each phase after it was judged.
    pub each_point: &'a mut dyn FnMut(&Point),
}

/// A phase that is about to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// Why it is run.
    pub purpose: Purpose,
    /// Expected duration of the rest of the search, this phase included, without repeats.
    pub time_left: Duration,
}

kvant_base::named_enum! {
    /// Why a phase was run.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Purpose {
        /// The closed loop.
        Saturation = "saturation",
        /// A step of the curve.
        Step = "step",
        /// Between a rate that held and one that failed.
        Bisection = "bisection",
        /// Once more, after a narrow or single failure, or a disturbance.
        Repeat = "repeat",
        /// A longer run of the best rate.
        Confirmation = "confirmation",
        /// At 80 % of the best rate.
        At80 = "80 %",
    }
}

/// A phase and its judgement.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// Why it was run.
    pub purpose: Purpose,
    /// Planned requests a second; 0 for the closed loop.
    pub rate: f64,
    /// Responses a second.
    pub achieved: f64,
    /// Median response time, in nanoseconds. Unanswered requests count with their lower bounds.
    pub p50_ns: u64,
    /// See `p50_ns`.
    pub p99_ns: u64,
    /// See `p50_ns`.
    pub p999_ns: u64,
    /// See `p50_ns`.
    pub max_ns: u64,
    /// 99th percentile of the send lag, in nanoseconds.
    pub send_lag_p99_ns: u64,
    /// Whether it held, and why not.
    pub judgement: Judgement,
    /// How the generator limited it, if it did.
    pub generator: Option<String>,
    /// What disturbed the machine, if anything did.
    pub disturbance: Option<String>,
}

/// What ended the search upwards: the least rate that failed.
#[derive(Clone, Debug, PartialEq)]
pub struct Limit {
    /// In requests a second; 0 if the closed loop had no successful response.
    pub rate: f64,
    /// Why it failed, a sentence each.
    pub reasons: Vec<String>,
    /// How the generator limited it, if it did: the server may reach more.
    pub generator: Option<String>,
}

/// The result of a search.
#[derive(Clone, Debug)]
pub struct FindMax {
    /// Responses a second of the closed loop, without errors.
    pub saturation_rate: f64,
    /// The highest rate that held, in requests a second; `None` if none did.
    pub rate: Option<f64>,
    /// Whether it held in the longer runs too, long enough for a trend of the backlog, and 80 % of
    /// it held.
    pub is_confirmed: bool,
    /// Why no higher rate; `None` if none failed, up to the highest that was tried.
    pub limit: Option<Limit>,
    /// All phases in the order in which they were run.
    pub points: Vec<Point>,
    /// The run at 80 % of the rate: the last, if the machine was disturbed in earlier ones.
    pub at_80: Option<Outcome>,
    /// Whether a phase, and the search with it, was cut short.
    pub is_cut_short: bool,
}

impl FindMax {
    /// The throughput-latency curve: the phases with a plan, by rate.
    pub fn curve(&self) -> Vec<&Point> {
        let mut curve: Vec<_> = self.points.iter().filter(|point| point.rate > 0.0).collect();
        curve.sort_by(|a, b| a.rate.total_cmp(&b.rate));
        curve
    }

    /// The number of phases during which the machine was disturbed.
    pub fn disturbed_count(&self) -> usize {
        self.points.iter().filter(|point| point.disturbance.is_some()).count()
    }
}

#[cfg(test)]
mod tests;
