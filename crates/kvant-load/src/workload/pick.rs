//! Picks the number of the next key.

use super::config::KeyDist;
use super::permutation::Permutation;
use super::zipf::Zipf;
use kvant_env::rng::Rng;

#[derive(Clone, Debug)]
pub(super) enum Picker {
    /// `next`, `next + step`, ... and from `first` again.
    Sequential { first: u64, next: u64, step: u64, count: u64 },
    /// Each number with the same probability.
    Uniform { count: u64 },
    /// Permuted Zipf ranks.
    Zipfian { ranks: Zipf, spread: Permutation },
}

impl Picker {
    /// The picker of thread `thread` of `thread_count`; `count` is at least 1.
    pub(super) fn new(dist: KeyDist, count: u64, thread: usize, thread_count: usize) -> Picker {
        match dist {
            KeyDist::Sequential => {
                // With more threads than keys some share a key.
                let first = thread as u64 % count;
                Picker::Sequential { first, next: first, step: thread_count as u64, count }
            }
            KeyDist::Uniform => Picker::Uniform { count },
            KeyDist::Zipfian => {
                Picker::Zipfian { ranks: Zipf::new(count), spread: Permutation::new(count) }
            }
        }
    }

    #[inline]
    pub(super) fn next(&mut self, rng: &mut Rng) -> u64 {
        match self {
            Picker::Sequential { first, next, step, count } => {
                let index = *next;
                *next += *step;
                if *next >= *count {
                    *next = *first;
                }
                index
            }
            Picker::Uniform { count } => rng.below(*count),
            Picker::Zipfian { ranks, spread } => spread.map(ranks.next(rng) - 1),
        }
    }
}

#[cfg(test)]
mod tests;
