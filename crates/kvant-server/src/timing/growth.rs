//! What was recorded since the last reading, by operation: the difference of the histograms.
//!
//! Invariants:
//! 1. Over all readings each request is in exactly one difference. Its phases may be in the next
//!    one, since they are read one after the other.
//! 2. Recording costs nothing more for it: the histograms are cumulative.
//!
//! Threads: the selectors record, one thread reads.

use super::histogram::PAIR_COUNT;
use super::{Phase, Timings, pair_highest_ns};
use crate::http::Operation;
use std::sync::Arc;

/// Phases but the total, whose sums are their sum.
const PARTS: usize = Phase::ALL.len() - 1;

/// Requests of an operation in an interval.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Recorded {
    pub(crate) operation: Operation,
    pub(crate) failed_count: u64,
    /// As exact as the buckets are.
    pub(crate) max_ns: u64,
    /// Sum of the time of block reads.
    pub(crate) block_read_ns: u64,
    /// Sums, in the order of [`Phase::ALL`] without the total.
    pub(crate) phases_ns: [u64; PARTS],
    /// Total times: ascending numbers of [`pair_highest_ns`], and requests, at least one.
    pub(crate) buckets: Vec<(u16, u64)>,
}

impl Recorded {
    pub(crate) fn count(&self) -> u64 {
        self.buckets.iter().map(|(_, count)| count).sum()
    }
}

/// The sums of all selectors at the last reading.
pub(crate) struct Growth {
    highest_ns: Vec<u64>,
    last: [Option<Box<Sums>>; Operation::ALL.len()],
}

#[derive(Clone)]
struct Sums {
    counts: [u64; PAIR_COUNT],
    phases_ns: [u64; PARTS],
    failed_count: u64,
    max_ns: u64,
    block_read_ns: u64,
}

impl Growth {
    /// What was recorded before the first reading is in that one.
    pub(crate) fn new() -> Growth {
        Growth { highest_ns: pair_highest_ns().collect(), last: Default::default() }
    }

    /// What was recorded since the last call, of the operations that occurred since.
    pub(crate) fn read(&mut self, timings: &[Arc<Timings>]) -> Vec<Recorded> {
        Operation::ALL
            .into_iter()
            .filter_map(|operation| {
                let now = Box::new(sums(timings, operation)?);
                let last = &mut self.last[operation as usize];
                let recorded = now.since(last.as_deref(), operation, &self.highest_ns);
                *last = Some(now);
                (!recorded.buckets.is_empty()).then_some(recorded)
            })
            .collect()
    }
}

/// `None` if the operation has not occurred.
fn sums(timings: &[Arc<Timings>], operation: Operation) -> Option<Sums> {
    let mut sums: Option<Sums> = None;
    for times in timings.iter().filter_map(|timings| timings.operation(operation)) {
        let sums = sums.get_or_insert(Sums::ZERO);
        times.phases[Phase::Total as usize].add_pairs(&mut sums.counts);
        for (sum_ns, histogram) in sums.phases_ns.iter_mut().zip(&times.phases) {
            *sum_ns = sum_ns.wrapping_add(histogram.sum_ns());
        }
        sums.failed_count = sums.failed_count.wrapping_add(times.failed.get());
        sums.block_read_ns = sums.block_read_ns.wrapping_add(times.block_read_ns.get());
        sums.max_ns = sums.max_ns.max(times.phases[Phase::Total as usize].max_ns());
    }
    sums
}

impl Sums {
    const ZERO: Sums = Sums {
        counts: [0; PAIR_COUNT],
        phases_ns: [0; PARTS],
        failed_count: 0,
        max_ns: 0,
        block_read_ns: 0,
    };

    fn since(&self, last: Option<&Sums>, operation: Operation, highest_ns: &[u64]) -> Recorded {
        let last = last.unwrap_or(&Sums::ZERO);
        let grown = self.counts.iter().zip(&last.counts).map(|(now, last)| now.wrapping_sub(*last));
        let buckets: Vec<(u16, u64)> = (0..).zip(grown).filter(|(_, count)| *count > 0).collect();
        let max_ns = match buckets.last() {
            // Times beyond the limit have the maximum as their only bound.
            Some((bucket, _)) if usize::from(*bucket) < PAIR_COUNT - 1 => {
                highest_ns[usize::from(*bucket)].min(self.max_ns)
            }
            _ => self.max_ns,
        };
        Recorded {
            operation,
            failed_count: self.failed_count.wrapping_sub(last.failed_count),
            max_ns,
            block_read_ns: self.block_read_ns.wrapping_sub(last.block_read_ns),
            phases_ns: std::array::from_fn(|phase| {
                self.phases_ns[phase].wrapping_sub(last.phases_ns[phase])
            }),
            buckets,
        }
    }
}

#[cfg(test)]
mod tests;
