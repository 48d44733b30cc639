//! The percentile spectrum of a histogram: the one iteration over its percentiles. Every
//! HdrHistogram library prints the same rows, five for each halving of the distance to 100 %.
//!
//! Invariants:
//! 1. Quantiles rise strictly; values and counts never fall.
//! 2. The last row has the quantile 1 and the count of the whole histogram.
//! 3. An empty histogram has no rows.

#[cfg(test)]
mod tests;

use super::Histogram;

/// Rows for each halving of the distance to 100 %.
const TICKS_PER_HALF_DISTANCE: f64 = 5.0;

/// One row of a percentile spectrum.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SpectrumRow {
    /// The value at the quantile, in nanoseconds: the highest value of its bucket.
    pub value_ns: u64,
    /// From 0 to 1.
    pub quantile: f64,
    /// How many values are at most `value_ns`.
    pub count: u64,
}

impl SpectrumRow {
    /// `1 / (1 - quantile)`; infinite in the last row.
    pub fn inverse(&self) -> f64 {
        1.0 / (1.0 - self.quantile)
    }
}

impl Histogram {
    /// The rows of the percentile spectrum.
    pub fn spectrum(&self) -> impl Iterator<Item = SpectrumRow> + '_ {
        let total = self.count();
        let mut steps = self.as_hdr().iter_recorded();
        let (mut value_ns, mut count) = (0, 0);
        // The other libraries compute in percent: equal roundings give equal rows.
        let mut next_percent = 0.0;
        let mut is_over = total == 0;
        std::iter::from_fn(move || {
            if is_over {
                return None;
            }
            // The largest value gets one row for a quantile below 1, then the last row follows.
            if count == total {
                is_over = true;
                return Some(SpectrumRow { value_ns, quantile: 1.0, count });
            }
            while count == 0 || next_percent > 100.0 * count as f64 / total as f64 {
                let step = steps.next()?;
                value_ns = step.value_iterated_to();
                count += step.count_at_value();
            }
            let quantile = next_percent / 100.0;
            let halvings = (100.0 / (100.0 - next_percent)).log2().trunc() + 1.0;
            next_percent += 100.0 / (TICKS_PER_HALF_DISTANCE * halvings.exp2());
            Some(SpectrumRow { value_ns, quantile, count })
        })
    }
}
