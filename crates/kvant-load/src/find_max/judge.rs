//! Whether a phase kept its plan.

use super::FindMaxConfig;
use crate::outcome::{Outcome, Second};
use crate::verdict::{self, Bound};

/// Growth of the backlog over a phase below this part of the plan is no growth, whatever the
/// statistics say.
const GROWTH_MIN_PART: f64 = 0.001;
/// Likewise, in requests.
const GROWTH_MIN: f64 = 10.0;
/// Seconds from which on a trend can be told from noise.
const SECONDS_MIN: usize = 4;
/// Below this part of the plan, another run would not say anything else when the backlog grew ...
const CLOSE_ACHIEVED_GROWING: f64 = 0.97;
/// ... and when it did not: what is missing may be one hiccup near the end.
const CLOSE_ACHIEVED: f64 = 0.9;

/// Whether a phase held.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Judgement {
    /// Why not, a sentence each; empty when it did.
    pub reasons: Vec<String>,
    /// The part of the plan that was answered or in flight at the end.
    pub achieved_part: f64,
    /// The part of the plan that failed.
    pub errors_part: f64,
    /// Growth of the backlog, in requests a second.
    pub backlog_slope: f64,
    /// Whether that is growth beyond doubt, and enough to matter.
    pub is_backlog_growing: bool,
}

impl Judgement {
    /// Whether the rate was sustained.
    pub fn holds(&self) -> bool {
        self.reasons.is_empty()
    }

    /// Whether it failed, but by so little that it should be tried again.
    pub(super) fn is_close(&self) -> bool {
        let close = if self.is_backlog_growing { CLOSE_ACHIEVED_GROWING } else { CLOSE_ACHIEVED };
        !self.holds() && self.achieved_part >= close
    }
}

/// Judges a phase with a plan. `broken` are the caller's objectives that were missed.
pub(super) fn judge(outcome: &Outcome, config: &FindMaxConfig, broken: Vec<String>) -> Judgement {
    let total = &outcome.total;
    let planned = total.planned.max(1) as f64;
    // What is in flight is bounded by the connections and says nothing about the rate; how old it
    // is counts as latency.
    let achieved_part = ((total.completed + outcome.in_flight) as f64 / planned).min(1.0);
    let errors = total.errors;
    let failures = errors.connect + errors.read + errors.write + errors.status + errors.timeout;
    let errors_part = failures as f64 / planned;
    let trend = trend(&outcome.seconds);
    let mut reasons = Vec::new();
    if total.planned == 0 {
        reasons.push("nothing was planned in the measured time".into());
    }
    if achieved_part < config.achieved_min {
        reasons.push(format!(
            "{:.2} % of the plan were done, not {:.2} %",
            achieved_part * 100.0,
            config.achieved_min * 100.0
        ));
    }
    if errors_part > config.errors_max {
        reasons.push(format!(
            "{:.2} % of the requests failed, more than {:.2} %",
            errors_part * 100.0,
            config.errors_max * 100.0
        ));
    }
    let growth = trend.slope * outcome.measured_ns as f64 / 1e9;
    let is_backlog_growing =
        trend.slope_least > 0.0 && growth > GROWTH_MIN.max(planned * GROWTH_MIN_PART);
    if is_backlog_growing {
        reasons.push(format!("the backlog grew by {:.1} requests a second", trend.slope));
    }
    reasons.extend(broken);
    Judgement {
        reasons,
        achieved_part,
        errors_part,
        backlog_slope: trend.slope,
        is_backlog_growing,
    }
}

/// A straight line through the backlog at the end of each second.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Trend {
    /// Requests a second.
    pub(super) slope: f64,
    /// It is at least this with a confidence of 95 %.
    pub(super) slope_least: f64,
}

/// Ordinary least squares; the bound is that of Student's distribution, one-sided.
pub(super) fn trend(seconds: &[Second]) -> Trend {
    let count = seconds.len();
    if count < SECONDS_MIN {
        return Trend::default();
    }
    let points = seconds.iter().map(|second| (second.end_ns as f64 / 1e9, second.backlog as f64));
    let n = count as f64;
    let (mean_x, mean_y) =
        points.clone().fold((0.0, 0.0), |sum, (x, y)| (sum.0 + x / n, sum.1 + y / n));
    let (mut xx, mut xy) = (0.0, 0.0);
    for (x, y) in points.clone() {
        xx += (x - mean_x) * (x - mean_x);
        xy += (x - mean_x) * (y - mean_y);
    }
    if xx <= 0.0 {
        return Trend::default();
    }
    let slope = xy / xx;
    let residual = |(x, y): (f64, f64)| y - mean_y - slope * (x - mean_x);
    let squares: f64 = points.map(|point| residual(point).powi(2)).sum();
    let deviation = (squares / (n - 2.0) / xx).sqrt();
    Trend { slope, slope_least: slope - student_95(n - 2.0) * deviation }
}

/// The 95 % quantile of Student's distribution, by the expansion around the normal one (Fisher and
/// Cornish, 1960): within 0.5 % from three degrees of freedom on.
fn student_95(freedom: f64) -> f64 {
    let z = 1.644_853_627;
    let z2: f64 = z * z;
    let first = z * (z2 + 1.0) / 4.0;
    let second = z * (5.0 * z2 * z2 + 16.0 * z2 + 3.0) / 96.0;
    let third = z * (3.0 * z2 * z2 * z2 + 19.0 * z2 * z2 + 17.0 * z2 - 15.0) / 384.0;
    z + first / freedom + second / freedom.powi(2) + third / freedom.powi(3)
}

/// How the generator limited a phase, by its verdict.
pub(super) fn generator_limit(outcome: &Outcome) -> Option<String> {
    let verdict = verdict::judge(outcome);
    (verdict.bound == Bound::Generator).then_some(verdict.headline)
}

#[cfg(test)]
mod tests;
