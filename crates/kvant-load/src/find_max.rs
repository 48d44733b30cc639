//! Searches for the highest rate that is sustained.
//!
//! 1. Saturation: a closed loop gives the rate `X0`, about the most that the server does at all.
//! 2. Steps at 20 to 100 % of it, until one fails.
//! 3. Bisection between the best rate that held and the least that failed, until they are 3 % apart.
//! 4. Confirmation: the rate that was found has to hold twice for longer. Where it does not, the search goes on below it,
//!    with runs of that length: a store that pays its debts later looks good for ten seconds at any rate.
//! 5. A run at 80 % of it, which is where latencies are worth comparing.
//!
//! A rate holds when its plan is kept (see [`judge`]) and the caller's objective is met. A phase that failed by little is
//! run again before it counts: one hiccup of a shared machine must not end the search at a fifth of the truth.
//!
//! The generator's own lateness is no criterion: response times count from the plan, so that lateness can make a good
//! rate look bad but never a bad one good. But it decides whom a failure is blamed on ([`Limit`]).
//!
//! Nothing here sends requests: phases are run by a closure. Threads: the caller's.

use crate::config::{Phase, Rate};
use crate::outcome::Outcome;
use kvant_base::Result;
use std::time::Duration;

pub mod judge;

pub use judge::Judgement;

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
    /// Stop when the rate that held and the one that failed are this close, as a part of the latter.
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
        for (what, time) in [
            ("saturation", self.saturate),
            ("step", self.measure),
            ("confirmation", self.confirm),
        ] {
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
            problems.push(format!(
                "a precision of {} is not within 0.001 and 0.5",
                self.precision
            ));
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
    pub run: &'a mut dyn FnMut(&Phase) -> Result<Outcome>,
    /// Which objectives a phase broke, a sentence each: assertions such as `p99<5ms`.
    pub slo: &'a dyn Fn(&Outcome) -> Vec<String>,
    /// Whether the generator limited a phase, and how: see [`generator_limit`].
    pub generator: &'a dyn Fn(&Outcome) -> Option<String>,
    /// Sees each phase when it has been judged.
    pub each_point: &'a mut dyn FnMut(&Point),
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
    /// Once more, because it had failed by little.
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
    /// Median response time, in nanoseconds, with unanswered requests at the least that they can be.
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
    let mut search = Search {
        config,
        means,
        points: Vec::new(),
        good: Vec::new(),
        bad: None,
        held_long: Vec::new(),
        is_long: false,
        is_cut_short: false,
    };
    search.run()
}

/// How the generator limited a phase, by its verdict.
pub fn generator_limit(outcome: &Outcome) -> Option<String> {
    judge::generator_limit(outcome)
}

/// Steps above the saturation rate, each higher by a tenth, when that held.
const RAISES_MAX: usize = 8;
/// Halvings below the first step, when that failed.
const HALVINGS_MAX: usize = 6;
/// Longer runs in which a rate has to hold.
const CONFIRMATIONS: usize = 2;
/// Longer runs at all, but for those of a bisection.
const CONFIRMATIONS_MAX: usize = 12;
/// After a rate failed a longer run, the next that is tried is at most this part of it.
const FAR_PART: f64 = 0.92;

struct Search<'a> {
    config: &'a FindMaxConfig,
    means: Means<'a>,
    points: Vec<Point>,
    /// Rates that held, ascending, all below `bad`.
    good: Vec<f64>,
    /// The least rate that failed: its place in `points`.
    bad: Option<usize>,
    /// Rates that held in a longer run, once for each.
    held_long: Vec<f64>,
    /// Whether short runs have proved too short for this server.
    is_long: bool,
    is_cut_short: bool,
}

impl Search<'_> {
    fn run(&mut self) -> Result<FindMax> {
        let saturation_rate = self.saturate()?;
        let mut is_confirmed = false;
        if saturation_rate > 0.0 {
            self.steps(saturation_rate)?;
            self.bisect()?;
            is_confirmed = self.confirm()?;
        }
        let rate = self.good.last().copied();
        let at_80 = match rate {
            Some(rate) if !self.is_cut_short => Some(self.measure(Purpose::At80, round(rate * 0.8))?.1),
            _ => None,
        };
        Ok(FindMax {
            saturation_rate,
            rate,
            is_confirmed,
            limit: self.limit(),
            points: std::mem::take(&mut self.points),
            at_80,
            is_cut_short: self.is_cut_short,
        })
    }

    fn saturate(&mut self) -> Result<f64> {
        let (_, outcome) = self.measure(Purpose::Saturation, 0.0)?;
        Ok(outcome.rate_achieved())
    }

    /// Goes up until a rate fails, and below the first step when that did.
    fn steps(&mut self, saturation_rate: f64) -> Result<()> {
        let raises = (1..=RAISES_MAX).map(|n| 1.0 + n as f64 / 10.0);
        let parts: Vec<f64> = self.config.steps.iter().copied().chain(raises).collect();
        for part in parts {
            self.try_rate(Purpose::Step, round(saturation_rate * part))?;
            if self.bad.is_some() || self.is_cut_short {
                break;
            }
        }
        let mut rate = saturation_rate * self.config.steps[0];
        for _ in 0..HALVINGS_MAX {
            if !self.good.is_empty() || self.is_cut_short {
                break;
            }
            rate /= 2.0;
            self.try_rate(Purpose::Step, round(rate))?;
        }
        Ok(())
    }

    fn bisect(&mut self) -> Result<()> {
        while let (Some(&good), Some(bad)) = (self.good.last(), self.bad_rate()) {
            let middle = round((good + bad) / 2.0);
            let is_done = bad - good <= self.config.precision * bad || middle <= good || middle >= bad;
            if is_done || self.is_cut_short {
                break;
            }
            self.try_rate(Purpose::Bisection, middle)?;
        }
        Ok(())
    }

    /// Whether the best rate holds for longer; searches below it, with longer runs only, when it does not.
    fn confirm(&mut self) -> Result<bool> {
        for _ in 0..CONFIRMATIONS_MAX {
            let Some(&rate) = self.good.last() else { break };
            if self.is_cut_short {
                break;
            }
            if self.held_long.iter().filter(|held| **held == rate).count() >= CONFIRMATIONS {
                return Ok(true);
            }
            let (at, _) = self.measure(Purpose::Confirmation, rate)?;
            if self.is_cut_short {
                break;
            }
            if self.points[at].judgement.holds() {
                self.held_long.push(rate);
            } else {
                self.is_long = true;
                self.failed(at);
                // What is near and held for a short time only would hardly say anything else.
                let held_long = &self.held_long;
                self.good
                    .retain(|good| *good <= rate * FAR_PART || held_long.contains(good));
            }
            if self.held_long.last() == self.good.last() {
                self.bisect()?;
            }
        }
        Ok(false)
    }

    /// Measures a rate, again if it failed by little, and remembers whether it held.
    fn try_rate(&mut self, purpose: Purpose, rate: f64) -> Result<()> {
        let (mut at, _) = self.measure(purpose, rate)?;
        if self.points[at].judgement.is_close() && !self.is_cut_short {
            (at, _) = self.measure(Purpose::Repeat, rate)?;
        }
        if self.is_cut_short {
            return Ok(());
        }
        if self.points[at].judgement.holds() {
            self.good.push(rate);
            self.good.sort_by(f64::total_cmp);
            if self.is_long {
                self.held_long.push(rate);
            }
        } else {
            self.failed(at);
        }
        Ok(())
    }

    /// Remembers that a phase failed: what held at its rate or above was luck.
    fn failed(&mut self, at: usize) {
        let rate = self.points[at].rate;
        self.good.retain(|good| *good < rate);
        if self.bad_rate().is_none_or(|bad| rate <= bad) {
            self.bad = Some(at);
        }
    }

    fn bad_rate(&self) -> Option<f64> {
        self.bad.map(|at| self.points[at].rate)
    }

    /// Runs a phase and judges it; returns its place in `points`.
    fn measure(&mut self, purpose: Purpose, rate: f64) -> Result<(usize, Outcome)> {
        let config = self.config;
        let duration = match purpose {
            Purpose::Saturation => config.saturate,
            Purpose::Confirmation => config.confirm,
            Purpose::Bisection | Purpose::Repeat if self.is_long => config.confirm,
            Purpose::Step | Purpose::Bisection | Purpose::Repeat | Purpose::At80 => config.measure,
        };
        let phase = Phase {
            rate: if rate > 0.0 {
                Rate::Constant(rate)
            } else {
                Rate::Closed
            },
            warmup: config.settle,
            duration,
            request_count_max: None,
        };
        let outcome = (self.means.run)(&phase)?;
        self.is_cut_short |= outcome.is_cut_short;
        let point = self.point(purpose, rate, &outcome);
        (self.means.each_point)(&point);
        self.points.push(point);
        Ok((self.points.len() - 1, outcome))
    }

    fn point(&self, purpose: Purpose, rate: f64, outcome: &Outcome) -> Point {
        let response = outcome.response_with_unanswered();
        let judgement = match purpose {
            Purpose::Saturation => Judgement::default(),
            _ => judge::judge(outcome, self.config, (self.means.slo)(outcome)),
        };
        Point {
            purpose,
            rate,
            achieved: outcome.rate_achieved(),
            p50_ns: response.percentile_ns(50.0),
            p99_ns: response.percentile_ns(99.0),
            p999_ns: response.percentile_ns(99.9),
            max_ns: response.max_ns(),
            service_p99_ns: outcome.service().percentile_ns(99.0),
            send_lag_p99_ns: outcome.total.send_lag.percentile_ns(99.0),
            judgement,
            generator: (self.means.generator)(outcome),
        }
    }

    fn limit(&self) -> Limit {
        let Some(at) = self.bad else { return Limit::None };
        let Point {
            rate,
            judgement,
            generator,
            ..
        } = &self.points[at];
        let (rate, reasons) = (*rate, judgement.reasons.clone());
        match generator.clone() {
            Some(how) => Limit::Generator { rate, how, reasons },
            None => Limit::Server { rate, reasons },
        }
    }
}

/// Rates that people can read: whole numbers, unless they are small.
fn round(rate: f64) -> f64 {
    if rate >= 100.0 { rate.round() } else { rate }
}

#[cfg(test)]
mod tests;
