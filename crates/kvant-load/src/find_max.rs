//! Searches for the highest rate that is sustained.
//!
//! 1. Saturation: a closed loop gives the rate `X0`, about the most that the server does at all.
//! 2. Steps at 20 to 100 % of it, until one fails.
//! 3. Bisection between the best rate that held and the least that failed, until they are 3 %
//!    apart.
//! 4. Confirmation: the rate that was found has to hold twice for longer. Where it does not, the
//!    search goes on below it, with runs of that length: a store that pays its debts later looks
//!    good for ten seconds at any rate.
//! 5. The rate that failed next above is tried once more, if it failed only once: when it holds,
//!    the search goes on above it.
//! 6. A run at 80 % of the result, which is where latencies are worth comparing.
//!
//! Where no rate of these holds, the search goes down to a floor, and names it when that does not
//! hold either.
//!
//! A rate holds when its plan is kept (see [`judge`]) and the caller's objective is met. A phase
//! that failed by little is run again before it counts: one hiccup of a shared machine must not end
//! the search at a fifth of the truth. One that failed while the machine was disturbed
//! ([`disturbance`]) does not count either, up to a number of them: on a machine that is always
//! disturbed the search ends too, with what holds there.
//!
//! The generator's own lateness is no criterion: response times count from the plan, so that
//! lateness can make a good rate look bad but never a bad one good. But it decides whom a failure
//! is blamed on ([`Limit`]).
//!
//! Nothing here sends requests: phases are run by a closure. Threads: the caller's.

use crate::config::Phase;
use crate::disturbance;
use crate::outcome::Outcome;
use kvant_base::Result;
use std::time::Duration;

pub mod judge;
mod search;

pub use judge::Judgement;
use search::Search;

/// How the search is done.
#[derive(Clone, Debug, PartialEq)]
pub struct FindMaxConfig {
    /// How long the closed loop at the start is measured.
    pub saturate: Duration,
    /// Load before each measured time.
    pub settle: Duration,
    /// How long each step is measured.
    pub measure: Duration,
    /// How long each confirmation is measured.
    pub confirm: Duration,
    /// Steps in parts of the saturation rate; ascending.
    pub steps: Vec<f64>,
    /// Stop when the rate that held and the one that failed are this close, as a part of the
    /// latter.
    pub precision: f64,
    /// The part of a plan that must have been sent and answered, or be in flight.
    pub achieved_min: f64,
    /// The part of a plan that may fail.
    pub errors_max: f64,
}

impl Default for FindMaxConfig {
    fn default() -> FindMaxConfig {
        FindMaxConfig {
            saturate: Duration::from_secs(10),
            settle: Duration::from_secs(3),
            measure: Duration::from_secs(10),
            confirm: Duration::from_secs(30),
            steps: vec![0.2, 0.4, 0.6, 0.7, 0.8, 0.9, 1.0],
            precision: 0.03,
            achieved_min: 0.995,
            errors_max: 0.001,
        }
    }
}

impl FindMaxConfig {
    /// Everything that is wrong with these settings, a sentence each; empty when they can be used.
    pub fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        for (what, time) in
            [("saturation", self.saturate), ("step", self.measure), ("confirmation", self.confirm)]
        {
            if time < Duration::from_millis(100) {
                problems.push(format!("a {what} needs at least 100ms"));
            }
        }
        let is_ascending = self.steps.windows(2).all(|pair| pair[0] < pair[1]);
        if self.steps.is_empty()
            || !is_ascending
            || !self.steps.iter().all(|step| *step > 0.0 && *step <= 1.0)
        {
            problems.push("steps must ascend within 0 and 1".into());
        }
        if !(0.001..=0.5).contains(&self.precision) {
            problems.push(format!("a precision of {} is not within 0.001 and 0.5", self.precision));
        }
        for (what, part) in [("achieved", self.achieved_min), ("failed", self.errors_max)] {
            if !(0.0..=1.0).contains(&part) {
                problems.push(format!("a part of {part} {what} is not within 0 and 1"));
            }
        }
        problems
    }
}

/// What the search asks of its caller.
pub struct Means<'a> {
    /// Runs a phase.
    pub run: &'a mut dyn FnMut(&Phase, &Attempt) -> Result<Outcome>,
    /// Which objectives a phase broke, a sentence each: assertions such as `p99<5ms`.
    pub slo: &'a dyn Fn(&Outcome) -> Vec<String>,
    /// Whether the generator limited a phase, and how: see [`generator_limit`].
    pub generator: &'a dyn Fn(&Outcome) -> Option<String>,
    /// Whether something else disturbed the machine during a phase, and what: see [`disturbance`].
    pub disturbance: &'a dyn Fn(&Outcome) -> Option<String>,
    /// Sees each phase when it has been judged.
    pub each_point: &'a mut dyn FnMut(&Point),
}

/// What a phase is run for, for those who wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// Why it is run.
    pub purpose: Purpose,
    /// About how long the search goes on from its begin, if nothing has to be repeated.
    pub time_left: Duration,
}

/// Why a phase was run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// The closed loop.
    Saturation,
    /// A step of the curve.
    Step,
    /// Between a rate that held and one that failed.
    Bisection,
    /// Once more, because it had failed by little, once, or while the machine was disturbed.
    Repeat,
    /// A longer run of the rate that was found.
    Confirmation,
    /// At 80 % of the rate that was found.
    At80,
}

impl Purpose {
    /// As in reports.
    pub fn name(self) -> &'static str {
        match self {
            Purpose::Saturation => "saturation",
            Purpose::Step => "step",
            Purpose::Bisection => "bisection",
            Purpose::Repeat => "repeat",
            Purpose::Confirmation => "confirmation",
            Purpose::At80 => "80 %",
        }
    }
}

/// A phase and how it was judged.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// Why it was run.
    pub purpose: Purpose,
    /// Planned requests a second; 0 for the closed loop.
    pub rate: f64,
    /// Answers a second.
    pub achieved: f64,
    /// Median response time, in nanoseconds, with unanswered requests at the least that they can
    /// be.
    pub p50_ns: u64,
    /// As `p50_ns`.
    pub p99_ns: u64,
    /// As `p50_ns`.
    pub p999_ns: u64,
    /// As `p50_ns`.
    pub max_ns: u64,
    /// Of the service time, in nanoseconds.
    pub service_p99_ns: u64,
    /// Of the send lag, in nanoseconds.
    pub send_lag_p99_ns: u64,
    /// Whether it held, and why not.
    pub judgement: Judgement,
    /// How the generator limited it, if it did.
    pub generator: Option<String>,
    /// What disturbed the machine, if something did.
    pub disturbance: Option<String>,
}

/// What ended the search upwards.
#[derive(Clone, Debug, PartialEq)]
pub enum Limit {
    /// The server did not hold the next rate.
    Server {
        /// That rate.
        rate: f64,
        /// Why it failed, a sentence each.
        reasons: Vec<String>,
    },
    /// The generator did not hold the next rate: the server may do more.
    Generator {
        /// That rate.
        rate: f64,
        /// How it was limited.
        how: String,
        /// Why it failed, a sentence each.
        reasons: Vec<String>,
    },
    /// Nothing failed, up to the highest rate that was tried.
    None,
}

/// What the search found.
#[derive(Clone, Debug)]
pub struct FindMax {
    /// Answers a second of the closed loop.
    pub saturation_rate: f64,
    /// The highest rate that held, in requests a second; `None` when none did.
    pub rate: Option<f64>,
    /// Whether it held in the longer runs too.
    pub is_confirmed: bool,
    /// Why no higher one.
    pub limit: Limit,
    /// All phases in the order in which they were run.
    pub points: Vec<Point>,
    /// The run at 80 % of the rate.
    pub at_80: Option<Outcome>,
    /// Whether a phase was ended before its time, and the search with it.
    pub is_cut_short: bool,
}

impl FindMax {
    /// The throughput-latency curve: the phases with a plan, by rate.
    pub fn curve(&self) -> Vec<&Point> {
        let mut curve: Vec<_> = self.points.iter().filter(|point| point.rate > 0.0).collect();
        curve.sort_by(|a, b| a.rate.total_cmp(&b.rate));
        curve
    }

    /// Phases during which the machine was disturbed.
    pub fn disturbed_count(&self) -> usize {
        let is_disturbed = |point: &&Point| point.disturbance.is_some();
        self.points.iter().filter(is_disturbed).count()
    }
}

/// Searches.
///
/// # Errors
/// What a phase reported; `Invalid` with everything that [`FindMaxConfig::problems`] says.
pub fn find_max<'a>(config: &'a FindMaxConfig, means: Means<'a>) -> Result<FindMax> {
    let problems = config.problems();
    if !problems.is_empty() {
        return Err(kvant_base::Error::invalid(problems.join("; ")));
    }
    Search::new(config, means).run()
}

/// How the generator limited a phase, by its verdict.
pub fn generator_limit(outcome: &Outcome) -> Option<String> {
    judge::generator_limit(outcome)
}

/// What disturbed the machine during a phase, for a second at least.
pub fn disturbance(outcome: &Outcome) -> Option<String> {
    disturbance::disturbance_of_any_second(outcome)
}

#[cfg(test)]
mod tests;
