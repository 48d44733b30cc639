//! Medians of repeats and their intervals.

use crate::model::Measured;

/// Repeats below which the order statistics give no interval of 95 %.
const INTERVAL_COUNT_MIN: usize = 6;

/// The summary of `values`; `None` without any.
pub(super) fn measured(values: impl IntoIterator<Item = f64>) -> Option<Measured> {
    let values = sorted(values);
    Some(Measured {
        median: median(&values)?,
        min: *values.first()?,
        max: *values.last()?,
        count: values.len(),
    })
}

/// An interval that contains the median of what was measured with a probability of at least 95 %,
/// by order statistics, which assume no distribution; `None` for fewer than six values.
pub(super) fn median_interval(values: impl IntoIterator<Item = f64>) -> Option<(f64, f64)> {
    let values = sorted(values);
    let n = values.len();
    if n < INTERVAL_COUNT_MIN {
        return None;
    }
    // The largest k for which P(fewer than k of n values are below the median) <= 2.5 %, with
    // probabilities of the binomial distribution with p = 1/2.
    let mut below = 0;
    let (mut term, mut sum) = (0.5f64.powi(n as i32), 0.0);
    while sum + term <= 0.025 {
        sum += term;
        below += 1;
        term = term * (n - below + 1) as f64 / below as f64;
    }
    Some((values[below.max(1) - 1], values[n - below.max(1)]))
}

/// The middle of ascending values, or the mean of both middles.
pub(super) fn median(sorted: &[f64]) -> Option<f64> {
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => None,
        n if n % 2 == 1 => Some(sorted[middle]),
        _ => Some((sorted[middle - 1] + sorted[middle]) / 2.0),
    }
}

fn sorted(values: impl IntoIterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.into_iter().filter(|value| value.is_finite()).collect();
    values.sort_by(f64::total_cmp);
    values
}

#[cfg(test)]
mod tests;
