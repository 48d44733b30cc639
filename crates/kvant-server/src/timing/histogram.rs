//! A log-linear histogram of durations in nanoseconds, bucketed as HdrHistogram does.
//!
//! Each octave has 32 buckets of equal width; each value below 64 ns has its own bucket. The last
//! octave ends at [`LIMIT_NS`]. Longer durations count in the last bucket; sum and maximum stay
//! exact.
//!
//! Invariants:
//! 1. A bucket's width is at most 1/32 of its lowest value, so that a percentile is at most 3.2 %
//!    too high, never too low.
//! 2. The number of values is the sum of the buckets.
//!
//! Threads: one writes, any may read. A reader may see a value in its bucket before it is in the
//! sum.

use crate::counters::Counter;
use std::sync::atomic::{AtomicU64, Ordering};

/// Buckets per octave, as a power of two.
const OCTAVE_BITS: u32 = 5;
/// Where the last octave ends: 2^36 ns, 68.7 s.
const LIMIT_BITS: u32 = 36;
pub(crate) const LIMIT_NS: u64 = 1 << LIMIT_BITS;
/// The first 64 buckets are exact; each further octave has 32.
const BUCKET_COUNT: usize = ((LIMIT_BITS - OCTAVE_BITS + 1) << OCTAVE_BITS) as usize;
/// Pairs of neighbouring buckets, which take half of the memory: a width is at most 1/16 of the
/// lowest value.
pub(super) const PAIR_COUNT: usize = BUCKET_COUNT / 2;

pub(crate) struct Histogram {
    sum_ns: Counter,
    max_ns: AtomicU64,
    counts: [Counter; BUCKET_COUNT],
}

impl Histogram {
    pub(crate) fn new() -> Histogram {
        Histogram {
            sum_ns: Counter::default(),
            max_ns: AtomicU64::new(0),
            counts: std::array::from_fn(|_| Counter::default()),
        }
    }

    #[inline]
    pub(crate) fn record(&self, ns: u64) {
        self.counts[bucket_of(ns)].add(1);
        self.sum_ns.add(ns);
        if ns > self.max_ns.load(Ordering::Relaxed) {
            self.max_ns.store(ns, Ordering::Relaxed);
        }
    }

    /// Adds the number of values of each pair of buckets to `counts`.
    pub(super) fn add_pairs(&self, counts: &mut [u64; PAIR_COUNT]) {
        for (count, pair) in counts.iter_mut().zip(self.counts.chunks_exact(2)) {
            *count = count.wrapping_add(pair[0].get()).wrapping_add(pair[1].get());
        }
    }

    pub(super) fn sum_ns(&self) -> u64 {
        self.sum_ns.get()
    }

    pub(super) fn max_ns(&self) -> u64 {
        self.max_ns.load(Ordering::Relaxed)
    }
}

#[inline]
fn bucket_of(ns: u64) -> usize {
    let ns = ns.min(LIMIT_NS - 1);
    // The shift leaves 6 bits: the leading one, and five that number the buckets of an octave.
    let shift = (ns | 1 << OCTAVE_BITS).ilog2() - OCTAVE_BITS;
    ((shift as usize) << OCTAVE_BITS) + (ns >> shift) as usize
}

/// The longest duration of a bucket.
fn highest_ns(bucket: usize) -> u64 {
    let shift = (bucket >> OCTAVE_BITS).saturating_sub(1);
    let steps = (bucket - (shift << OCTAVE_BITS)) as u64;
    ((steps + 1) << shift) - 1
}

/// The longest duration of each pair of buckets.
pub(crate) fn pair_highest_ns() -> impl Iterator<Item = u64> {
    (0..PAIR_COUNT).map(|pair| highest_ns(2 * pair + 1))
}

/// The values of any number of histograms, as plain numbers.
#[derive(Clone)]
pub(crate) struct Snapshot {
    counts: Vec<u64>,
    pub(super) sum_ns: u64,
    pub(super) max_ns: u64,
}

impl Snapshot {
    pub(crate) fn new() -> Snapshot {
        Snapshot { counts: vec![0; BUCKET_COUNT], sum_ns: 0, max_ns: 0 }
    }

    pub(crate) fn add(&mut self, histogram: &Histogram) {
        for (total, count) in self.counts.iter_mut().zip(&histogram.counts) {
            *total += count.get();
        }
        self.sum_ns = self.sum_ns.wrapping_add(histogram.sum_ns());
        self.max_ns = self.max_ns.max(histogram.max_ns());
    }

    pub(crate) fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// The duration that `per_cent` of the values do not exceed; 0 if there are none.
    pub(crate) fn percentile_ns(&self, per_cent: f64) -> u64 {
        let rank = (self.count() as f64 * per_cent / 100.0).ceil().max(1.0) as u64;
        let mut count = 0;
        let reached = self.counts.iter().position(|bucket| {
            count += bucket;
            count >= rank
        });
        match reached {
            // Values beyond the limit have the maximum as their only bound.
            Some(bucket) if bucket == BUCKET_COUNT - 1 => self.max_ns,
            Some(bucket) => highest_ns(bucket).min(self.max_ns),
            None => 0,
        }
    }

    /// How many values are at most `bound_ns`, including all in the bucket of the bound.
    pub(crate) fn count_at_most(&self, bound_ns: u64) -> u64 {
        self.counts[..=bucket_of(bound_ns)].iter().sum()
    }
}

#[cfg(test)]
mod tests;
