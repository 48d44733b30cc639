//! Selects the next rate to try.
//!
//! Invariants:
//! 1. All rates in `good` are below the least of `bad`.
//! 2. A rate is confirmed if longer runs held, all of them after the last failure, and so did 80 %
//!    of it.
//! 3. The search ends: the numbers of phases, of repeats for a disturbed machine, and of returns to
//!    a rate that failed are limited.

use super::judge::{self, Judgement};
use super::{Attempt, FindMax, FindMaxConfig, Limit, Means, Point, Purpose};
use crate::config::{Phase, Rate};
use crate::disturbance::disturbance_of_any_second;
use crate::outcome::Outcome;
use kvant_base::{Error, Result};
use std::time::Duration;

const MEASURE_MIN: Duration = Duration::from_millis(100);
/// The steps, in parts of the saturation rate.
const STEPS: [f64; 7] = [0.2, 0.4, 0.6, 0.7, 0.8, 0.9, 1.0];
/// Bisection ends when the rate that held is this close to the one that failed, as a part of the
/// latter.
const PRECISION: f64 = 0.03;
/// A confirmation takes this many times as long as a step.
const CONFIRMATION_STEPS: u32 = 3;
/// Steps above the saturation rate, each higher by a tenth, if that held.
const RAISES_MAX: usize = 8;
/// Longer runs that must hold.
const CONFIRMATIONS: usize = 2;
/// Rates that are tried in longer runs, except those of bisection.
const CONFIRMATIONS_MAX: usize = 16;
/// After a rate failed a longer run, the next rate is at most this part of it.
const FAR_PART: f64 = 0.92;
/// The lowest rate that is tried, as a part of the saturation rate ...
const FLOOR_PART: f64 = 0.002;
/// ... but no lower than this many requests in a step.
const FLOOR_REQUESTS: f64 = 10.0;
/// Repeats for a disturbed machine, of one attempt ...
const DISTURBED_REPEATS: usize = 2;
/// ... and in total, except at 80 %.
const DISTURBED_REPEATS_MAX: usize = 12;
/// Returns to rates that failed once.
const RETURNS_MAX: usize = 6;
/// Failures on an undisturbed machine that prove that a rate is too high.
const FAILURES_PROVEN: usize = 2;
/// Expected number of bisections between two steps.
const BISECTIONS_EXPECTED: f64 = 2.0;
/// Phases after which only rates are tried that are needed to find one that holds.
const PHASES_MAX: usize = 60;

/// Searches.
///
/// # Errors
/// The failure of a phase. `Invalid` when the steps are too short.
pub fn find_max(config: FindMaxConfig, means: Means<'_>) -> Result<FindMax> {
    if config.measure < MEASURE_MIN {
        return Err(Error::invalid("a step needs at least 100ms"));
    }
    Search::new(config, means).run()
}

struct Search<'a> {
    config: FindMaxConfig,
    means: Means<'a>,
    points: Vec<Point>,
    saturation_rate: f64,
    /// Rates that held, ascending.
    good: Vec<f64>,
    /// Rates that failed, ascending: their indexes in `points`.
    bad: Vec<usize>,
    /// Rates that held in a longer run, once per run.
    held_long: Vec<f64>,
    /// Whether steps have proved too short for this server.
    is_long: bool,
    is_cut_short: bool,
    disturbed_repeats: usize,
    returns: usize,
}

impl<'a> Search<'a> {
    fn new(config: FindMaxConfig, means: Means<'a>) -> Search<'a> {
        Search {
            config,
            means,
            points: Vec::new(),
            saturation_rate: 0.0,
            good: Vec::new(),
            bad: Vec::new(),
            held_long: Vec::new(),
            is_long: false,
            is_cut_short: false,
            disturbed_repeats: 0,
            returns: 0,
        }
    }

    fn run(&mut self) -> Result<FindMax> {
        self.saturate()?;
        let mut is_confirmed = false;
        if self.saturation_rate > 0.0 && !self.is_cut_short {
            self.rise()?;
            // Shorter runs would not show that the backlog grows.
            let longest = self.config.measure * CONFIRMATION_STEPS;
            is_confirmed = self.confirm()? && longest >= judge::TREND_TIME_MIN;
        }
        let rate = self.good.last().copied();
        let at_80 = match rate {
            Some(rate) if !self.is_cut_short => Some(self.hold_at_80(rate)?),
            _ => None,
        };
        if let Some(last) = self.points.last().filter(|last| last.purpose == Purpose::At80) {
            is_confirmed &= last.judgement.holds();
        }
        Ok(FindMax {
            saturation_rate: self.saturation_rate,
            rate,
            is_confirmed,
            limit: self.limit(),
            points: std::mem::take(&mut self.points),
            at_80,
            is_cut_short: self.is_cut_short,
        })
    }

    fn saturate(&mut self) -> Result<()> {
        loop {
            let (at, outcome) = self.measure(Purpose::Saturation, 0.0, self.config.measure)?;
            self.saturation_rate = self.saturation_rate.max(outcome.rate_good());
            if self.is_cut_short || at >= DISTURBED_REPEATS || !self.takes_disturbed_repeat(at) {
                return Ok(());
            }
        }
    }

    /// Holds 80 % of the best rate; again if the machine was disturbed, since reports have its
    /// figures.
    fn hold_at_80(&mut self, rate: f64) -> Result<Outcome> {
        let mut repeats = 0;
        loop {
            let (at, outcome) =
                self.measure(Purpose::At80, round(rate * 0.8), self.config.measure)?;
            let is_disturbed = self.points[at].disturbance.is_some();
            if self.is_cut_short || !is_disturbed || repeats == DISTURBED_REPEATS {
                return Ok(outcome);
            }
            repeats += 1;
        }
    }

    /// Tries rates above the best until one fails.
    fn rise(&mut self) -> Result<()> {
        let raises = (1..=RAISES_MAX).map(|n| 1.0 + n as f64 / 10.0);
        for part in STEPS.into_iter().chain(raises) {
            let rate = round(self.saturation_rate * part);
            if self.good.last().is_some_and(|good| rate <= *good) {
                continue;
            }
            if !self.try_rate(Purpose::Step, rate)? || self.is_over() {
                break;
            }
        }
        Ok(())
    }

    /// Tries rates below the least that failed until one holds, down to the floor.
    fn descend(&mut self) -> Result<()> {
        let top = self.bad_rate().unwrap_or(self.saturation_rate);
        let floor = (self.saturation_rate * FLOOR_PART)
            .max(FLOOR_REQUESTS / self.config.measure.as_secs_f64());
        for rate in [top / 2.0, top / 4.0, floor] {
            let is_new = rate >= floor && self.bad_rate().is_none_or(|bad| round(rate) < bad);
            if is_new && (self.try_rate(Purpose::Step, round(rate))? || self.is_cut_short) {
                break;
            }
        }
        Ok(())
    }

    fn bisect(&mut self) -> Result<()> {
        while let (Some(&good), Some(bad)) = (self.good.last(), self.bad_rate()) {
            let is_far = bad > 2.0 * good;
            let middle = round(if is_far { (good * bad).sqrt() } else { (good + bad) / 2.0 });
            let is_done = bad - good <= PRECISION * bad || middle <= good || middle >= bad;
            if is_done || self.is_over() {
                break;
            }
            self.try_rate(Purpose::Bisection, middle)?;
        }
        Ok(())
    }

    /// Confirms the best rate. If it fails, searches below it, with longer runs only.
    fn confirm(&mut self) -> Result<bool> {
        for _ in 0..CONFIRMATIONS_MAX {
            if self.good.is_empty() {
                self.descend()?;
            }
            // If steps are too short, bisection needs a rate that held for longer.
            if !self.is_long || self.good.last().is_some_and(|good| self.held_long.contains(good)) {
                self.bisect()?;
            }
            let Some(&rate) = self.good.last() else { break };
            if self.is_over() {
                return Ok(self.is_confirmed(rate));
            }
            if self.is_confirmed(rate) {
                if self.returns_to_bad()? {
                    continue;
                }
                return Ok(!self.is_cut_short);
            }
            if !self.try_rate(Purpose::Confirmation, rate)? && !self.is_cut_short {
                self.is_long = true;
                // A rate close to this one that held for one step only would fail too.
                let held_long = &self.held_long;
                self.good.retain(|good| *good <= rate * FAR_PART || held_long.contains(good));
            }
        }
        if self.good.is_empty() && !self.is_cut_short {
            self.descend()?;
        }
        Ok(self.good.last().is_some_and(|rate| self.is_confirmed(*rate)))
    }

    fn is_confirmed(&self, rate: f64) -> bool {
        self.held_long.iter().filter(|held| **held == rate).count() >= CONFIRMATIONS
    }

    /// Tries rates that failed once more, in ascending order, until one fails again or is proven
    /// too high. Returns whether any holds now.
    fn returns_to_bad(&mut self) -> Result<bool> {
        let mut holds_any = false;
        while let Some(rate) = self.bad_rate() {
            let is_failure = |point: &&Point| {
                point.rate == rate && !point.judgement.holds() && point.disturbance.is_none()
            };
            let is_proven = self.points.iter().filter(is_failure).count() >= FAILURES_PROVEN;
            if is_proven || self.returns == RETURNS_MAX {
                return Ok(holds_any);
            }
            self.returns += 1;
            if !self.try_rate(Purpose::Repeat, rate)? {
                return Ok(holds_any);
            }
            holds_any = true;
        }
        if holds_any {
            self.rise()?;
        }
        Ok(holds_any)
    }

    /// Measures a rate, with repeats if something else may be why it failed. Returns whether it
    /// holds.
    fn try_rate(&mut self, purpose: Purpose, rate: f64) -> Result<bool> {
        let is_long = self.is_long || purpose == Purpose::Confirmation;
        let duration = self.config.measure * if is_long { CONFIRMATION_STEPS } else { 1 };
        let (mut at, _) = self.measure(purpose, rate, duration)?;
        let (mut disturbed, mut close) = (0, 0);
        while !self.points[at].judgement.holds() && !self.is_cut_short {
            if disturbed < DISTURBED_REPEATS && self.takes_disturbed_repeat(at) {
                disturbed += 1;
            } else if close == 0 && self.points[at].judgement.is_close {
                close += 1;
            } else {
                break;
            }
            (at, _) = self.measure(Purpose::Repeat, rate, duration)?;
        }
        if self.is_cut_short {
            return Ok(false);
        }
        let holds = self.points[at].judgement.holds();
        if holds {
            let points = &self.points;
            self.bad.retain(|bad| points[*bad].rate > rate);
            self.good.retain(|good| *good != rate);
            self.good.push(rate);
            self.good.sort_by(f64::total_cmp);
            if is_long {
                self.held_long.push(rate);
            }
        } else {
            // Runs that held at this rate or above were luck.
            self.good.retain(|good| *good < rate);
            self.held_long.retain(|held| *held < rate);
            self.bad.push(at);
            let points = &self.points;
            self.bad.sort_by(|a, b| points[*a].rate.total_cmp(&points[*b].rate));
        }
        Ok(holds)
    }

    /// Takes one of the repeats for a disturbed machine, if it was disturbed.
    fn takes_disturbed_repeat(&mut self, at: usize) -> bool {
        let takes =
            self.points[at].disturbance.is_some() && self.disturbed_repeats < DISTURBED_REPEATS_MAX;
        self.disturbed_repeats += usize::from(takes);
        takes
    }

    fn is_over(&self) -> bool {
        self.is_cut_short || self.points.len() >= PHASES_MAX
    }

    fn bad_rate(&self) -> Option<f64> {
        self.bad.first().map(|at| self.points[*at].rate)
    }

    /// Runs a phase and judges it. Returns its index in `points`.
    fn measure(
        &mut self,
        purpose: Purpose,
        rate: f64,
        duration: Duration,
    ) -> Result<(usize, Outcome)> {
        let phase = Phase {
            rate: if rate > 0.0 { Rate::Constant(rate) } else { Rate::Closed },
            warmup: self.config.settle,
            duration,
            request_count_max: None,
        };
        let attempt = Attempt { purpose, time_left: self.time_left(purpose) };
        let outcome = (self.means.run)(&phase, &attempt)?;
        self.is_cut_short |= outcome.is_cut_short;
        let point = self.point(purpose, rate, &outcome);
        (self.means.each_point)(&point);
        self.points.push(point);
        Ok((self.points.len() - 1, outcome))
    }

    fn time_left(&self, purpose: Purpose) -> Duration {
        let config = self.config;
        let short = config.settle + config.measure;
        let long = config.settle + config.measure * CONFIRMATION_STEPS;
        if purpose == Purpose::At80 {
            return short;
        }
        let best = self.good.last().copied().unwrap_or(0.0);
        let is_above =
            |part: &&f64| self.saturation_rate == 0.0 || self.saturation_rate * **part > best;
        let steps = match self.bad_rate() {
            Some(_) => 0,
            None => STEPS.iter().filter(is_above).count(),
        };
        let bisections = match self.bad_rate() {
            Some(bad) => ((bad - best) / (PRECISION * bad)).log2().ceil().max(0.0),
            None => BISECTIONS_EXPECTED,
        };
        let held = self.held_long.iter().filter(|held| **held == best).count();
        let confirmations = CONFIRMATIONS.saturating_sub(held) as u32;
        let each = if self.is_long { long } else { short };
        let saturation = match purpose {
            Purpose::Saturation => short,
            _ => Duration::ZERO,
        };
        saturation + each * (steps as u32 + bisections as u32) + long * confirmations + short
    }

    fn point(&self, purpose: Purpose, rate: f64, outcome: &Outcome) -> Point {
        let response = outcome.response_with_unanswered();
        let judgement = match purpose {
            Purpose::Saturation => Judgement::default(),
            _ => judge::judge(outcome, (self.means.slo)(outcome)),
        };
        Point {
            purpose,
            rate,
            achieved: outcome.rate_achieved(),
            p50_ns: response.percentile_ns(50.0),
            p99_ns: response.percentile_ns(99.0),
            p999_ns: response.percentile_ns(99.9),
            max_ns: response.max_ns(),
            send_lag_p99_ns: outcome.total.send_lag.percentile_ns(99.0),
            judgement,
            generator: judge::generator_limit(outcome),
            disturbance: disturbance_of_any_second(outcome),
        }
    }

    fn limit(&self) -> Option<Limit> {
        if self.saturation_rate <= 0.0 && !self.is_cut_short {
            let reasons = vec!["the closed loop had no successful response".to_owned()];
            return Some(Limit { rate: 0.0, reasons, generator: None });
        }
        let point = &self.points[*self.bad.first()?];
        let mut reasons = point.judgement.reasons.clone();
        let disturbance = point.disturbance.iter();
        reasons.extend(disturbance.map(|what| format!("the machine was disturbed: {what}")));
        Some(Limit { rate: point.rate, reasons, generator: point.generator.clone() })
    }
}

/// A rate as a whole number, unless it is small.
fn round(rate: f64) -> f64 {
    if rate >= 100.0 { rate.round() } else { rate }
}
