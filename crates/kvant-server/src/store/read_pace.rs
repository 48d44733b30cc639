//! Whether reads take long, by what the last ones did: LevelDB does not say beforehand whether one
//! needs the disk, or how long its value is.
//!
//! For a second after a long read others belong on threads that may take their time. So a thread
//! that must not wait does so at most once per second. A read does not count if it took long only
//! because another thread had the processor.
//!
//! Threads: any.

use kvant_env::Clock;
use kvant_env::posix::{self, ThreadSwitches};
use std::sync::atomic::{AtomicU64, Ordering};

/// Shorter ones are as long as other work between two looks at the connections of a thread.
const SLOW_NS: u64 = 200_000;
const REST_NS: u64 = 1_000_000_000;

#[derive(Default)]
pub(super) struct ReadPace {
    slow_until_ns: AtomicU64,
}

impl ReadPace {
    /// Whether no read of the last second took long.
    pub(super) fn is_quick(&self, clock: &dyn Clock) -> bool {
        clock.monotonic_ns() >= self.slow_until_ns.load(Ordering::Relaxed)
    }

    /// Reads, and notes whether that took long.
    pub(super) fn observe<T>(&self, clock: &dyn Clock, read: impl FnOnce() -> T) -> T {
        let (started_ns, before) = (clock.monotonic_ns(), posix::thread_switches());
        let found = read();
        let ended_ns = clock.monotonic_ns();
        if ended_ns - started_ns >= SLOW_NS && is_own_time(before, posix::thread_switches()) {
            self.slow_until_ns.fetch_max(ended_ns + REST_NS, Ordering::Relaxed);
        }
        found
    }
}

/// Whether the time between these is that of the thread's own work and waits.
fn is_own_time(before: ThreadSwitches, after: ThreadSwitches) -> bool {
    after.sleep_count != before.sleep_count || after.preempted_count == before.preempted_count
}

#[cfg(test)]
mod tests;
