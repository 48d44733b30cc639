//! Whether reads wait for the disk, by what the last ones did: LevelDB does not say beforehand.
//!
//! A read that took long and slept has waited, for the disk or for a lock. For a second after it,
//! reads belong on threads that may wait. So a thread that must not wait does so at most once per
//! second.
//!
//! Threads: any.

use kvant_env::{Clock, posix};
use std::sync::atomic::{AtomicU64, Ordering};

/// Shorter waits are as long as other work between two looks at the connections of a thread.
const SLOW_NS: u64 = 200_000;
const REST_NS: u64 = 1_000_000_000;

#[derive(Default)]
pub(super) struct ReadPace {
    slow_until_ns: AtomicU64,
}

impl ReadPace {
    /// Whether no read of the last second has waited.
    pub(super) fn is_quick(&self, clock: &dyn Clock) -> bool {
        clock.monotonic_ns() >= self.slow_until_ns.load(Ordering::Relaxed)
    }

    /// Reads, and notes whether that waited.
    pub(super) fn observe<T>(&self, clock: &dyn Clock, read: impl FnOnce() -> T) -> T {
        let (started_ns, sleep_count) = (clock.monotonic_ns(), posix::thread_sleep_count());
        let found = read();
        let ended_ns = clock.monotonic_ns();
        // A thread that another one has driven from its processor has not slept.
        if ended_ns - started_ns >= SLOW_NS && posix::thread_sleep_count() != sleep_count {
            self.slow_until_ns.fetch_max(ended_ns + REST_NS, Ordering::Relaxed);
        }
        found
    }
}

#[cfg(test)]
mod tests;
