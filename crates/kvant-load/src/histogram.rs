//! Latencies in nanoseconds. All histograms have the same bounds, so that any two can be added.
//!
//! Three significant digits from 256 ns to 24 hours (25 % more buckets than wrk2's, whose unit is
//! 1 us). A value outside these bounds is recorded as the nearest bound.

pub mod encoded;
mod spectrum;
mod stored;
#[cfg(test)]
mod tests;

pub use spectrum::SpectrumRow;

use hdrhistogram::Histogram as Hdr;

/// The finest resolution, in nanoseconds.
pub const LOWEST_NS: u64 = 256;
/// The largest value, in nanoseconds.
pub const HIGHEST_NS: u64 = 24 * 3_600 * 1_000_000_000;
/// Significant decimal digits.
pub const SIGNIFICANT_DIGITS: u8 = 3;

/// An HdrHistogram of latencies.
#[derive(Clone, Debug, PartialEq)]
pub struct Histogram(Hdr<u64>);

impl Default for Histogram {
    fn default() -> Self {
        Histogram::new()
    }
}

impl Histogram {
    /// An empty histogram.
    pub fn new() -> Histogram {
        let hdr = Hdr::new_with_bounds(LOWEST_NS, HIGHEST_NS, SIGNIFICANT_DIGITS);
        Histogram(hdr.expect("the bounds are constants that the library accepts"))
    }

    /// Records one value.
    pub fn record_ns(&mut self, ns: u64) {
        self.0.saturating_record(ns);
    }

    /// Records `count` equal values.
    pub fn record_many_ns(&mut self, ns: u64, count: u64) {
        if count > 0 {
            self.0.saturating_record_n(ns, count);
        }
    }

    /// Adds all values of `other`.
    pub fn add(&mut self, other: &Histogram) {
        if !other.is_empty() {
            self.0.add(&other.0).expect("all histograms have the same bounds");
        }
    }

    /// The values that are not in `other`, which holds a part of them.
    #[must_use]
    pub fn without(&self, other: &Histogram) -> Histogram {
        let mut rest = Histogram::new();
        for value in self.0.iter_recorded() {
            let ns = value.value_iterated_to();
            rest.record_many_ns(ns, value.count_at_value().saturating_sub(other.0.count_at(ns)));
        }
        rest
    }

    /// Removes all values; keeps the memory.
    pub fn clear(&mut self) {
        if !self.is_empty() {
            self.0.reset();
        }
    }

    /// The number of values.
    pub fn count(&self) -> u64 {
        self.0.len()
    }

    /// Whether there are no values.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The value at a percentile (0..=100); 0 when empty.
    pub fn percentile_ns(&self, percent: f64) -> u64 {
        // A percentage often becomes a slightly larger quantile in binary: 99.9 / 100 of 1,000
        // values would be rank 999.0000000000001, and so the maximum. The correction is less than
        // one rank in the largest of counts.
        self.0.value_at_quantile((percent / 100.0 - 1e-12).max(0.0))
    }

    /// The lowest value of the largest value's bucket, as wrk2 prints it; 0 when empty.
    pub fn max_ns(&self) -> u64 {
        self.0.lowest_equivalent(self.0.max())
    }

    /// The smallest value; 0 when empty.
    pub fn min_ns(&self) -> u64 {
        if self.is_empty() { 0 } else { self.0.min() }
    }

    /// The mean; 0 when empty.
    pub fn mean_ns(&self) -> f64 {
        self.0.mean()
    }

    /// The standard deviation; 0 when empty.
    pub fn stdev_ns(&self) -> f64 {
        self.0.stdev()
    }

    /// The library's histogram, for its iterators and serialisation.
    pub fn as_hdr(&self) -> &Hdr<u64> {
        &self.0
    }
}
