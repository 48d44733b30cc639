//! Returns memory that the allocator keeps to the system.
//!
//! What is freed within a heap of the C library stays resident: blocks of the cache, of tables that
//! a compaction has replaced, or that made room for memtables. The budget counts them no more
//! (`docs/decisions/0013-chunks-are-prepared-and-reused.md`).
//!
//! Threads: a task of its own, which looks once per second. It has the priority of a selector,
//! because it holds the locks of the heaps, one after the other.

use crate::{Clock, Env, Step, Task, posix};
use kvant_base::MemoryBudget;
use kvant_base::log::{Level, Log};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const INTERVAL_NS: u64 = 1_000_000_000;
/// Memory is released when the uncounted part has grown by one part in this many of the budget: as
/// much as the block cache leaves free.
const BUDGET_PARTS: u64 = 16;

/// Starts the task, which ends with the process. `memory` is the budget of all that the process
/// holds.
pub fn keep_releasing(env: &Env, memory: &Arc<MemoryBudget>, log: &Arc<dyn Log>) {
    env.spawner.spawn(Arc::new(FreedMemory {
        memory: Arc::clone(memory),
        clock: Arc::clone(&env.clock),
        log: Arc::clone(log),
        expected_bytes: AtomicU64::new(u64::MAX),
    }));
}

struct FreedMemory {
    memory: Arc<MemoryBudget>,
    clock: Arc<dyn Clock>,
    log: Arc<dyn Log>,
    /// The least that was resident and not counted since the last release: it stays.
    expected_bytes: AtomicU64,
}

impl FreedMemory {
    /// Resident memory that the budget does not count.
    fn uncounted_bytes(&self) -> Option<u64> {
        Some(posix::private_resident_bytes()?.saturating_sub(self.memory.used_bytes_total()))
    }

    fn release(&self, uncounted_bytes: u64) {
        let started_ns = self.clock.monotonic_ns();
        posix::release_freed_memory();
        let us = (self.clock.monotonic_ns() - started_ns) / 1000;
        let left_bytes = self.uncounted_bytes().unwrap_or(uncounted_bytes);
        self.expected_bytes.store(left_bytes, Ordering::Relaxed);
        let bytes = uncounted_bytes.saturating_sub(left_bytes);
        self.log.event(Level::Info, "memory_released", &[("bytes", &bytes), ("us", &us)]);
    }
}

impl Task for FreedMemory {
    fn name(&self) -> &str {
        "kvant-memory"
    }

    fn step(&self) -> Step {
        // A system that does not tell is left alone.
        let Some(uncounted_bytes) = self.uncounted_bytes() else { return Step::Finished };
        let expected_bytes = self.expected_bytes.load(Ordering::Relaxed).min(uncounted_bytes);
        self.expected_bytes.store(expected_bytes, Ordering::Relaxed);
        if uncounted_bytes - expected_bytes >= self.memory.limit_bytes() / BUDGET_PARTS {
            self.release(uncounted_bytes);
        }
        Step::IdleUntil(self.clock.monotonic_ns() + INTERVAL_NS)
    }
}

#[cfg(test)]
mod tests;
