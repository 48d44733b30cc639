//! A monotonic clock for intervals and a wall clock for expiry.

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

#[cfg(test)]
mod tests;
