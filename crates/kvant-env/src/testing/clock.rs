//! A clock for tests.

use crate::clock::Clock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// A clock that moves only when the test advances it.
#[derive(Debug)]
pub struct MockClock {
    monotonic_ns: AtomicU64,
    wall_origin_ms: u64,
}

impl MockClock {
    /// A clock at monotonic 0 and the given wall time.
    pub fn new(wall_ms: u64) -> MockClock {
        MockClock { monotonic_ns: AtomicU64::new(0), wall_origin_ms: wall_ms }
    }

    /// Moves both clocks forward.
    pub fn advance(&self, by: Duration) {
        let ns = u64::try_from(by.as_nanos()).unwrap_or(u64::MAX);
        self.monotonic_ns.fetch_add(ns, Ordering::Relaxed);
    }

    /// Moves both clocks forward until the monotonic one shows at least `monotonic_ns`.
    pub fn advance_to(&self, monotonic_ns: u64) {
        self.monotonic_ns.fetch_max(monotonic_ns, Ordering::Relaxed);
    }
}

impl Clock for MockClock {
    fn monotonic_ns(&self) -> u64 {
        self.monotonic_ns.load(Ordering::Relaxed)
    }

    fn wall_us(&self) -> u64 {
        self.wall_origin_ms * 1_000 + self.monotonic_ns() / 1_000
    }
}

#[cfg(test)]
mod tests;
