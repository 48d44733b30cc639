//! Seeds and choices of random tests.

use crate::rng::Rng;
use std::hash::{BuildHasher, RandomState};

/// A seed that differs from run to run. Tests print it.
pub fn entropy_seed() -> u64 {
    RandomState::new().hash_one(0u8)
}

impl Rng {
    /// True with probability 1/`n`.
    pub fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }
}
