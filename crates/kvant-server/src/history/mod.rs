//! The last minutes of the server, always at hand: latency by operation and phase in windows of
//! 100 ms, the slowest requests of each second, and what the machine gave. `GET /v0/history` shows
//! them; `docs/latency.md` explains them.
//!
//! - [`recorder`]: the task that reads the counters ten times per second;
//! - [`window`], [`slow`]: what is kept, and its encoding.
//!
//! Invariants:
//! 1. Memory is bounded by [`BYTES_MAX`] and by a share of the budget, where it counts: the oldest
//!    seconds go first.
//! 2. Requests pay nothing for it: the recorder takes differences of the histograms that the
//!    selectors keep anyway.
//!
//! Threads: the recorder writes, any thread reads. The lock is held for the time of copying some
//! pointers.

mod recorder;
mod slow;
#[cfg(test)]
pub(crate) mod testing;
mod window;

pub(crate) use recorder::Recorder;
pub(crate) use window::Window;

use crate::timing::Trace;
use kvant_base::lock::NamedMutex;
use kvant_base::{Consumer, MemoryBudget, Reservation};
use std::collections::VecDeque;
use std::sync::Arc;

/// Length of a window. A late reading makes it longer.
pub(crate) const WINDOW_NS: u64 = 100_000_000;

/// Most memory, whatever the time that is to be kept.
const BYTES_MAX: u64 = 8 << 20;
/// And at most one part in this many of the budget.
const BUDGET_PARTS: u64 = 16;

pub(crate) struct History {
    kept_ns: u64,
    bytes_max: u64,
    ring: NamedMutex<Ring>,
}

struct Ring {
    /// Oldest first.
    ended: VecDeque<Arc<Second>>,
    /// The second in progress.
    current: Second,
    /// The memory of `ended`.
    memory: Reservation,
}

/// The windows that ended in a second, encoded, and its slowest requests.
#[derive(Clone, Debug, Default)]
pub(crate) struct Second {
    end_ns: u64,
    windows: Vec<u8>,
    slow: slow::SlowTraces,
}

impl History {
    /// Keeps the last `kept_ns`.
    pub(crate) fn new(kept_ns: u64, budget: &Arc<MemoryBudget>) -> Arc<History> {
        let ring = Ring {
            ended: VecDeque::new(),
            current: Second::default(),
            memory: budget.reserve(Consumer::History, 0),
        };
        Arc::new(History {
            kept_ns,
            bytes_max: BYTES_MAX.min(budget.limit_bytes() / BUDGET_PARTS),
            ring: NamedMutex::new("history", ring),
        })
    }

    /// Up to `count_max` seconds that end after `after_ns`, oldest first, with the one in progress.
    pub(crate) fn seconds_after(&self, after_ns: u64, count_max: usize) -> Vec<Arc<Second>> {
        let ring = self.ring.lock();
        let first = ring.ended.partition_point(|second| second.end_ns <= after_ns);
        let mut seconds: Vec<Arc<Second>> =
            ring.ended.range(first..).take(count_max).cloned().collect();
        if seconds.len() < count_max && ring.current.end_ns > after_ns {
            seconds.push(Arc::new(ring.current.clone()));
        }
        seconds
    }

    fn add(&self, window: &Window) {
        let current = &mut self.ring.lock().current;
        current.end_ns = window.start_ns + window.length_ns;
        window.encode(&mut current.windows);
    }

    fn end_second(&self, slowest: &[Trace]) {
        let mut ring = self.ring.lock();
        let mut second = std::mem::take(&mut ring.current);
        second.windows.shrink_to_fit();
        second.slow = slow::SlowTraces::of(slowest);
        let now_ns = second.end_ns;
        let mut bytes = ring.memory.bytes() + second.memory_bytes();
        ring.ended.push_back(Arc::new(second));
        let is_surplus = |oldest: &Second, bytes: u64| {
            oldest.end_ns.saturating_add(self.kept_ns) <= now_ns || bytes > self.bytes_max
        };
        while let Some(oldest) = ring.ended.pop_front_if(|oldest| is_surplus(oldest, bytes)) {
            bytes -= oldest.memory_bytes();
        }
        ring.memory.resize(bytes);
    }
}

impl Second {
    pub(crate) fn end_ns(&self) -> u64 {
        self.end_ns
    }

    pub(crate) fn windows(&self) -> impl Iterator<Item = Window> {
        let mut rest = &self.windows[..];
        std::iter::from_fn(move || Window::decode(&mut rest))
    }

    pub(crate) fn slowest(&self) -> impl Iterator<Item = Trace> {
        self.slow.traces()
    }

    /// What it takes, with the counts of its reference and the allocator's heads.
    fn memory_bytes(&self) -> u64 {
        const HEADS_BYTES: usize = 48;
        let own_bytes = size_of::<Second>() + size_of::<Arc<Second>>() + HEADS_BYTES;
        (own_bytes + self.windows.capacity() + self.slow.memory_bytes()) as u64
    }
}

#[cfg(test)]
mod tests;
