//! Whether a phase kept its plan.

use crate::outcome::{Outcome, Second};
use crate::verdict::{self, Bound};
use std::time::Duration;

/// Part of a plan that must be answered or in flight at the end.
const ACHIEVED_PART_MIN: f64 = 0.995;
/// Part of a plan that may fail.
const ERRORS_PART_MAX: f64 = 0.001;
/// Growth of the backlog below this part of the plan does not matter, however significant.
const GROWTH_MIN_PART: f64 = 0.001;
/// Likewise, in requests.
const GROWTH_MIN: f64 = 10.0;
/// Seconds that a trend needs.
const SECONDS_MIN: usize = 4;
/// Phases that are shorter have no trend.
pub(super) const TREND_TIME_MIN: Duration = Duration::from_secs(SECONDS_MIN as u64);
/// A failure is narrow if this part of the plan was achieved although the backlog grew ...
const CLOSE_ACHIEVED_GROWING: f64 = 0.97;
/// ... or this part, if it did not: the rest may be due to one hiccup near the end.
const CLOSE_ACHIEVED: f64 = 0.9;

/// Whether a phase held.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Judgement {
    /// Why not, a sentence each; empty if it held.
    pub reasons: Vec<String>,
    /// Whether it failed so narrowly that another run may hold.
    pub is_close: bool,
}

impl Judgement {
    /// Whether the rate was sustained.
    pub fn holds(&self) -> bool {
        self.reasons.is_empty()
    }
}

/// Judges a phase with a plan. `missed` are the caller's objectives that it missed.
pub(super) fn judge(outcome: &Outcome, missed: Vec<String>) -> Judgement {
    let total = &outcome.total;
    let planned = total.planned.max(1) as f64;
    // The connections bound the requests in flight, which say nothing about the rate; their age
    // counts as latency.
    let achieved_part = ((total.completed + outcome.in_flight) as f64 / planned).min(1.0);
    let errors_part = total.errors.total() as f64 / planned;
    let trend = trend(&outcome.seconds);
    let mut reasons = Vec::new();
    if total.planned == 0 {
        reasons.push("nothing was planned in the measured time".into());
    }
    if achieved_part < ACHIEVED_PART_MIN {
        reasons.push(format!(
            "{:.2} % of the plan were done, not {:.2} %",
            achieved_part * 100.0,
            ACHIEVED_PART_MIN * 100.0
        ));
    }
    if errors_part > ERRORS_PART_MAX {
        reasons.push(format!(
            "{:.2} % of the requests failed, more than {:.2} %",
            errors_part * 100.0,
            ERRORS_PART_MAX * 100.0
        ));
    }
    let growth = trend.slope * outcome.measured_ns as f64 / 1e9;
    let is_growing = trend.slope_min > 0.0 && growth > GROWTH_MIN.max(planned * GROWTH_MIN_PART);
    if is_growing {
        reasons.push(format!("the backlog grew by {:.1} requests a second", trend.slope));
    }
    reasons.extend(missed);
    let close_part = if is_growing { CLOSE_ACHIEVED_GROWING } else { CLOSE_ACHIEVED };
    Judgement { is_close: !reasons.is_empty() && achieved_part >= close_part, reasons }
}

/// The linear trend of the backlog.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Trend {
    /// Requests a second.
    slope: f64,
    /// The lower bound of the slope, with a confidence of 95 %.
    slope_min: f64,
}

/// Ordinary least squares, with a one-sided bound by Student's distribution.
fn trend(seconds: &[Second]) -> Trend {
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
    Trend { slope, slope_min: slope - student_95(n - 2.0) * deviation }
}

/// The 95 % quantile of Student's distribution, by its expansion around the normal distribution
/// (Fisher and Cornish, 1960). The error is below 0.5 % from three degrees of freedom on.
fn student_95(freedom: f64) -> f64 {
    let z = 1.644_853_627;
    let z2: f64 = z * z;
    let first = z * (z2 + 1.0) / 4.0;
    let second = z * (5.0 * z2 * z2 + 16.0 * z2 + 3.0) / 96.0;
    let third = z * (3.0 * z2 * z2 * z2 + 19.0 * z2 * z2 + 17.0 * z2 - 15.0) / 384.0;
    z + first / freedom + second / freedom.powi(2) + third / freedom.powi(3)
}

/// How the generator limited a phase, if it did.
pub(super) fn generator_limit(outcome: &Outcome) -> Option<String> {
    let verdict = verdict::judge(outcome);
    (verdict.bound == Bound::Generator).then_some(verdict.headline)
}

#[cfg(test)]
mod tests;
