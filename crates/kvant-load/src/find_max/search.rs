//! The search itself: which rate is tried next.
//!
//! Invariants:
//! 1. All rates in `good` are below the least rate that failed.
//! 2. A rate that failed a longer run is never reported, nor any above it.

use super::judge::{self, Judgement};
use super::{FindMax, FindMaxConfig, Limit, Means, Point, Purpose};
use crate::config::{Phase, Rate};
use crate::outcome::Outcome;
use kvant_base::Result;

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

pub(super) struct Search<'a> {
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

impl<'a> Search<'a> {
    /// A search that has not begun.
    pub(super) fn new(config: &'a FindMaxConfig, means: Means<'a>) -> Search<'a> {
        Search {
            config,
            means,
            points: Vec::new(),
            good: Vec::new(),
            bad: None,
            held_long: Vec::new(),
            is_long: false,
            is_cut_short: false,
        }
    }

    /// Searches.
    pub(super) fn run(&mut self) -> Result<FindMax> {
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
