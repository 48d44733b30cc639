//! The last minutes of the server, always at hand: latency by operation and phase in windows of
//! 100 ms, the slowest requests of each second, and what the machine gave. `GET /v0/history` shows
//! them; `docs/latency.md` explains them.
//!
//! - [`recorder`]: the task that reads the counters ten times per second;
//! - `profile`: the task that samples CPU time;
//! - [`window`], [`slow`]: what is kept, and its encoding.
//!
//! Invariants:
//! 1. Memory is bounded by [`BYTES_MAX`] and by a share of the budget, where it counts: the oldest
//!    seconds go first.
//! 2. Requests pay nothing for it but a sample in 50 ms of CPU time: the recorder takes differences
//!    of the histograms that the selectors keep anyway.
//!
//! Threads: the recorder writes, any thread reads. The lock is held for the time of copying some
//! pointers.

#[cfg(feature = "profiler")]
mod profile;
mod recorder;
mod slow;
#[cfg(test)]
pub(crate) mod testing;
mod window;

#[cfg(feature = "profiler")]
pub(crate) use profile::Profile;
pub(crate) use recorder::Recorder;
pub(crate) use window::Window;

use crate::timing::{SECOND_NS, Trace};
use kvant_base::lock::NamedMutex;
use kvant_base::{Consumer, MemoryBudget, Reservation};
use std::collections::VecDeque;
use std::sync::Arc;

/// Length of a window. A late reading makes it longer.
pub(crate) const WINDOW_NS: u64 = 100_000_000;

/// Most memory, whatever the time that is to be kept.
const BYTES_MAX: u64 = 8 << 20;
/// What the reference counts and the allocator add to an entry.
const HEADS_BYTES: usize = 48;
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
    /// CPU time by second, oldest first.
    cpu: VecDeque<Arc<CpuSecond>>,
    /// The memory of `ended` and `cpu`.
    memory: Reservation,
}

/// The windows that ended in a second, encoded, and its slowest requests.
#[derive(Clone, Debug, Default)]
pub(crate) struct Second {
    end_ns: u64,
    windows: Vec<u8>,
    slow: slow::SlowTraces,
}

/// CPU time of a second, or of a part of one.
#[derive(Debug, PartialEq)]
pub(crate) struct CpuSecond {
    pub(crate) start_ns: u64,
    pub(crate) length_ns: u64,
    /// By the code of the tag.
    pub(crate) cpu_ns: Vec<(u16, u64)>,
}

impl History {
    /// Keeps the last `kept_ns`.
    pub(crate) fn new(kept_ns: u64, budget: &Arc<MemoryBudget>) -> Arc<History> {
        let ring = Ring {
            ended: VecDeque::new(),
            current: Second::default(),
            cpu: VecDeque::new(),
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

    /// Up to `count_max` seconds of CPU time that end after `after_ns`, oldest first.
    pub(crate) fn cpu_after(&self, after_ns: u64, count_max: usize) -> Vec<Arc<CpuSecond>> {
        let cpu = &self.ring.lock().cpu;
        let first = cpu.partition_point(|second| second.end_ns() <= after_ns);
        cpu.range(first..).take(count_max).cloned().collect()
    }

    /// Adds seconds that follow those that were added before.
    #[cfg(any(feature = "profiler", test))]
    pub(crate) fn add_cpu(&self, seconds: Vec<CpuSecond>) {
        let mut ring = self.ring.lock();
        let added: u64 = seconds.iter().map(CpuSecond::memory_bytes).sum();
        let bytes = ring.memory.bytes() + added;
        ring.cpu.extend(seconds.into_iter().map(Arc::new));
        self.drop_oldest(&mut ring, bytes);
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
        let bytes = ring.memory.bytes() + second.memory_bytes();
        ring.ended.push_back(Arc::new(second));
        self.drop_oldest(&mut ring, bytes);
    }

    /// Removes the seconds that are too old or too many, of `bytes` that all have.
    fn drop_oldest(&self, ring: &mut Ring, mut bytes: u64) {
        let now_ns = ring.ended.back().map_or(0, |second| second.end_ns);
        let is_surplus = |oldest: &Second, bytes: u64| {
            oldest.end_ns.saturating_add(self.kept_ns) <= now_ns || bytes > self.bytes_max
        };
        while let Some(oldest) = ring.ended.pop_front_if(|oldest| is_surplus(oldest, bytes)) {
            bytes -= oldest.memory_bytes();
        }
        let first_ns =
            ring.ended.front().map_or(now_ns, |second| second.end_ns.saturating_sub(SECOND_NS));
        while let Some(oldest) = ring.cpu.pop_front_if(|oldest| oldest.end_ns() <= first_ns) {
            bytes -= oldest.memory_bytes();
        }
        ring.memory.resize(bytes);
    }
}

impl CpuSecond {
    pub(crate) fn end_ns(&self) -> u64 {
        self.start_ns + self.length_ns
    }

    fn memory_bytes(&self) -> u64 {
        let own_bytes = size_of::<CpuSecond>() + size_of::<Arc<CpuSecond>>() + HEADS_BYTES;
        (own_bytes + self.cpu_ns.capacity() * size_of::<(u16, u64)>()) as u64
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

    /// What it takes.
    fn memory_bytes(&self) -> u64 {
        let own_bytes = size_of::<Second>() + size_of::<Arc<Second>>() + HEADS_BYTES;
        (own_bytes + self.windows.capacity() + self.slow.memory_bytes()) as u64
    }
}

#[cfg(test)]
mod tests;
