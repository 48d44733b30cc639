//! The flight recorder: the slowest requests of the last minute.
//!
//! Time is divided into windows of 10 s. Each selector keeps the slowest 32 requests of each window
//! and operation, so that a slow moment does not evict the slow requests of calmer ones, and ranges
//! do not evict point reads.
//!
//! Invariants:
//! 1. A window holds the slowest requests whose response was sent during it, as many as fit.
//! 2. `keep_from_ns` and `window_end_ns` are those of the newest window; only the selector changes
//!    them, and only under the lock.
//!
//! Threads: the selector offers, any thread reads. A request that is not slow costs two
//! comparisons. Slow requests and readers take the lock, at most for the time of copying some KiB.

use super::trace::{Phase, Trace};
use kvant_base::lock::NamedMutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// How far back slow requests are shown.
pub(crate) const SLOW_SPAN_NS: u64 = 60_000_000_000;
/// The most slow requests that are shown.
pub(crate) const SLOW_COUNT_MAX: usize = 100;

const WINDOW_NS: u64 = 10_000_000_000;
/// The current window, and those that the span covers.
const WINDOW_COUNT: usize = (SLOW_SPAN_NS / WINDOW_NS) as usize + 1;
const KEPT_COUNT: usize = 32;

pub(super) struct SlowRequests {
    /// Requests of the newest window that took less are not kept.
    keep_from_ns: AtomicU64,
    window_end_ns: AtomicU64,
    windows: NamedMutex<Windows>,
}

#[derive(Default)]
struct Windows {
    newest: usize,
    kept: [Vec<Trace>; WINDOW_COUNT],
}

impl Default for SlowRequests {
    fn default() -> SlowRequests {
        SlowRequests {
            keep_from_ns: AtomicU64::new(0),
            window_end_ns: AtomicU64::new(0),
            windows: NamedMutex::new("slow requests", Windows::default()),
        }
    }
}

impl SlowRequests {
    #[inline]
    pub(super) fn offer(&self, trace: &Trace) {
        let is_quick =
            trace.stamps.phase_ns(Phase::Total) < self.keep_from_ns.load(Ordering::Relaxed);
        if is_quick && trace.stamps.written_ns < self.window_end_ns.load(Ordering::Relaxed) {
            return;
        }
        self.keep(trace);
    }

    #[cold]
    fn keep(&self, trace: &Trace) {
        let mut windows = self.windows.lock();
        if trace.stamps.written_ns >= self.window_end_ns.load(Ordering::Relaxed) {
            let number = trace.stamps.written_ns / WINDOW_NS;
            windows.newest = number as usize % WINDOW_COUNT;
            let newest = windows.newest;
            windows.kept[newest].clear();
            self.window_end_ns.store((number + 1) * WINDOW_NS, Ordering::Relaxed);
        }
        let newest = windows.newest;
        let kept = &mut windows.kept[newest];
        if kept.len() == KEPT_COUNT {
            let (quickest, _) = quickest(kept);
            kept.swap_remove(quickest);
        }
        kept.push(*trace);
        let keep_from_ns = match kept.len() {
            KEPT_COUNT => quickest(kept).1 + 1,
            _ => 0,
        };
        self.keep_from_ns.store(keep_from_ns, Ordering::Relaxed);
    }

    /// Adds the kept requests that ended at `since_ns` or later to `found`.
    pub(super) fn add_since(&self, since_ns: u64, found: &mut Vec<Trace>) {
        let windows = self.windows.lock();
        let kept = windows.kept.iter().flatten();
        found.extend(kept.filter(|trace| trace.stamps.written_ns >= since_ns));
    }
}

/// The index and the time of the quickest of `kept`, which is not empty.
fn quickest(kept: &[Trace]) -> (usize, u64) {
    let totals = kept.iter().map(|trace| trace.stamps.phase_ns(Phase::Total));
    let quickest = totals.enumerate().min_by_key(|&(_, total_ns)| total_ns);
    quickest.unwrap_or((0, 0))
}

#[cfg(test)]
mod tests;
