//! A monotonic clock for intervals and a wall clock for expiry.

use rustix::time::{ClockId, clock_gettime};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Monotonic and wall time.
pub trait Clock: Send + Sync {
    /// Nanoseconds since an arbitrary origin. Never decreases.
    fn monotonic_ns(&self) -> u64;
    /// Microseconds since 1970-01-01T00:00:00Z.
    fn wall_us(&self) -> u64;

    /// Milliseconds since 1970-01-01T00:00:00Z.
    fn wall_ms(&self) -> u64 {
        self.wall_us() / 1_000
    }
}

/// The clocks of the operating system. The monotonic one is `CLOCK_MONOTONIC`, so that times of
/// different processes on a machine compare.
#[derive(Debug, Default)]
pub struct SystemClock;

impl SystemClock {
    /// The clocks.
    pub fn new() -> SystemClock {
        SystemClock
    }
}

/// Nanoseconds of [`SystemClock`], for what calls a plain function.
pub fn system_ns() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_nsec.cast_unsigned()
}

/// CPU time of the calling thread, in nanoseconds.
pub fn thread_cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_nsec.cast_unsigned()
}

impl Clock for SystemClock {
    fn monotonic_ns(&self) -> u64 {
        system_ns()
    }

    fn wall_us(&self) -> u64 {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
        u64::try_from(since_epoch.as_micros()).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests;
