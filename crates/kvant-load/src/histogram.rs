//! Latencies in nanoseconds: an HdrHistogram with the bounds that all of ours share, so that any
//! two can be added.
//!
//! Three significant digits from 256 ns to 24 hours (25 % more than wrk2's, whose unit is 1 us).
//! What lies beyond is recorded as the bound.

use hdrhistogram::Histogram as Hdr;

/// Smallest distance that is told apart, in nanoseconds.
pub const LOWEST_NS: u64 = 256;
/// Largest value, in nanoseconds.
pub const HIGHEST_NS: u64 = 24 * 3_600 * 1_000_000_000;
/// Significant decimal digits.
pub const SIGNIFICANT_DIGITS: u8 = 3;

/// Latencies of one kind.
#[derive(Clone, Debug)]
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

    /// Forgets all values; keeps the memory.
    pub fn clear(&mut self) {
        if !self.is_empty() {
            self.0.reset();
        }
    }

    /// How many values were recorded.
    pub fn count(&self) -> u64 {
        self.0.len()
    }

    /// Whether nothing was recorded.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The value that `percent` (0..=100) of all values do not exceed; 0 when empty.
    pub fn percentile_ns(&self, percent: f64) -> u64 {
        // A percentage as a share is often a hair too large in binary (99.9 / 100 of 1,000 values
        // would be 999.0000000000001 of them, and so the maximum): less than one rank in the
        // largest of counts.
        self.0.value_at_quantile((percent / 100.0 - 1e-12).max(0.0))
    }

    /// The largest value as recorded: at most one unit of resolution under the true one; 0 when
    /// empty.
    pub fn max_ns(&self) -> u64 {
        // The library rounds up to the end of the unit; wrk2 prints its start.
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

#[cfg(test)]
mod tests;
