//! The rows of a percentile spectrum, as every HdrHistogram library walks them: five steps for each
//! halving of the distance to 100 %.
//!
//! Invariants:
//! 1. Quantiles rise; so do, weakly, values and counts.
//! 2. The last row has the quantile 1, the count of the whole histogram and an infinite inverse.
//! 3. An empty histogram has no rows.

#[cfg(test)]
mod tests;

use crate::histogram::Histogram;

/// Rows for each halving of the distance to 100 %: what wrk2 prints.
pub const TICKS_PER_HALF_DISTANCE: u32 = 5;

/// One row of a spectrum.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Row {
    /// The value that this share of all values does not exceed, in nanoseconds: the end of its unit
    /// of resolution.
    pub value_ns: u64,
    /// The share, 0..=1, that the row was made for; `count` can be a larger share.
    pub quantile: f64,
    /// How many values are not above `value_ns`.
    pub count: u64,
    /// `1 / (1 - quantile)`; infinite in the last row.
    pub inverse: f64,
}

/// The rows of `histogram`, with [`TICKS_PER_HALF_DISTANCE`].
pub fn rows(histogram: &Histogram) -> impl Iterator<Item = Row> + '_ {
    rows_with_ticks(histogram, TICKS_PER_HALF_DISTANCE)
}

/// The rows of `histogram`, with that many for each halving of the distance to 100 %.
pub fn rows_with_ticks(
    histogram: &Histogram,
    ticks_per_half_distance: u32,
) -> impl Iterator<Item = Row> + '_ {
    let total = histogram.count();
    let mut steps = histogram.as_hdr().iter_recorded();
    let mut value_ns = 0;
    let mut count = 0;
    // In percent, as the other libraries reckon: the same roundings give the same rows.
    let mut next_percent = 0.0;
    let mut is_over = total == 0;
    std::iter::from_fn(move || {
        if is_over {
            return None;
        }
        // The value that holds the last sample gets one row, then the row for 100 % follows.
        if count == total {
            is_over = true;
            return Some(Row { value_ns, quantile: 1.0, count, inverse: f64::INFINITY });
        }
        while count == 0 || next_percent > 100.0 * count as f64 / total as f64 {
            let step = steps.next()?;
            value_ns = step.value_iterated_to();
            count += step.count_at_value();
        }
        let percent = next_percent;
        let halvings = (100.0 / (100.0 - percent)).log2().trunc() + 1.0;
        next_percent += 100.0 / (f64::from(ticks_per_half_distance) * halvings.exp2());
        let quantile = percent / 100.0;
        Some(Row { value_ns, quantile, count, inverse: 1.0 / (1.0 - quantile) })
    })
}
