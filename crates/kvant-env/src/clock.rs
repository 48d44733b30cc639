//! A monotonic clock for intervals and a wall clock for expiry.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Monotonic and wall time.
pub trait Clock: Send + Sync {
    /// Nanoseconds since an arbitrary origin. Never decreases.
    fn monotonic_ns(&self) -> u64;
    /// Milliseconds since 1970-01-01T00:00:00Z.
    fn wall_ms(&self) -> u64;
}

/// The clocks of the operating system.
#[derive(Debug)]
pub struct SystemClock {
    origin: Instant,
}

impl SystemClock {
    /// A clock whose monotonic origin is now.
    pub fn new() -> SystemClock {
        SystemClock { origin: Instant::now() }
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        SystemClock::new()
    }
}

impl Clock for SystemClock {
    fn monotonic_ns(&self) -> u64 {
        u64::try_from(self.origin.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    fn wall_ms(&self) -> u64 {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
        u64::try_from(since_epoch.as_millis()).unwrap_or(u64::MAX)
    }
}

/// A clock that only moves when told to.
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

    fn wall_ms(&self) -> u64 {
        self.wall_origin_ms + self.monotonic_ns() / 1_000_000
    }
}

#[cfg(test)]
mod tests;
