//! The flight recorder: the slowest requests of the last minute, and those of each second for the
//! history.
//!
//! Time is divided into windows of 10 s. Each selector keeps the slowest 32 requests of each window
//! and operation, so that a slow moment does not evict the slow requests of calmer ones, and ranges
//! do not evict point reads. Of each second it keeps the slowest 4 besides, until the history takes
//! them.
//!
//! Invariants:
//! 1. A window holds the slowest requests whose response was sent during it, as many as fit. Those
//!    that other machines have traced count as the slowest of all: a client asked to see them.
//! 2. `keep_from_ns` and `second_end_ns` are those of the newest window and second; only the
//!    selector changes them, and only under the lock.
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

pub(crate) const SECOND_NS: u64 = 1_000_000_000;
/// Requests of an operation that a selector keeps of each second.
pub(crate) const SECOND_KEPT_COUNT: usize = 4;
/// Seconds that are kept until they are taken: the history may be late, or off.
const UNTAKEN_COUNT_MAX: usize = 8;

const WINDOW_NS: u64 = 10 * SECOND_NS;
/// The current window, and those that the span covers.
const WINDOW_COUNT: usize = (SLOW_SPAN_NS / WINDOW_NS) as usize + 1;
const KEPT_COUNT: usize = 32;

pub(super) struct SlowRequests {
    /// Quicker requests are kept neither in the newest window nor in the newest second.
    keep_from_ns: AtomicU64,
    second_end_ns: AtomicU64,
    kept: NamedMutex<Kept>,
}

/// The slowest requests of a time, at most `COUNT_MAX`.
#[derive(Default)]
struct Slowest<const COUNT_MAX: usize>(Vec<Trace>);

#[derive(Default)]
struct Kept {
    /// By the number of the window, modulo their count.
    windows: [Slowest<KEPT_COUNT>; WINDOW_COUNT],
    window: u64,
    newest: Slowest<SECOND_KEPT_COUNT>,
    second: u64,
    /// Of earlier seconds, oldest first.
    untaken: Vec<Trace>,
}

impl Default for SlowRequests {
    fn default() -> SlowRequests {
        SlowRequests {
            keep_from_ns: AtomicU64::new(0),
            second_end_ns: AtomicU64::new(0),
            kept: NamedMutex::new("slow requests", Kept::default()),
        }
    }
}

impl SlowRequests {
    #[inline]
    pub(super) fn offer(&self, trace: &Trace) {
        let is_quick = rank_ns(trace) < self.keep_from_ns.load(Ordering::Relaxed);
        if is_quick && trace.stamps.written_ns < self.second_end_ns.load(Ordering::Relaxed) {
            return;
        }
        self.keep(trace);
    }

    #[cold]
    fn keep(&self, trace: &Trace) {
        let mut kept = self.kept.lock();
        if trace.stamps.written_ns >= self.second_end_ns.load(Ordering::Relaxed) {
            kept.begin_second(trace.stamps.written_ns / SECOND_NS);
            self.second_end_ns.store((kept.second + 1) * SECOND_NS, Ordering::Relaxed);
        }
        kept.newest.offer(trace);
        let window = kept.newest_window();
        window.offer(trace);
        let keep_from_ns = window.keep_from_ns().min(kept.newest.keep_from_ns());
        self.keep_from_ns.store(keep_from_ns, Ordering::Relaxed);
    }

    /// Adds the kept requests that ended at `since_ns` or later to `found`.
    pub(super) fn add_since(&self, since_ns: u64, found: &mut Vec<Trace>) {
        let kept = self.kept.lock();
        let all = kept.windows.iter().flat_map(|window| &window.0);
        found.extend(all.filter(|trace| trace.stamps.written_ns >= since_ns));
    }

    /// Moves what is kept of the seconds before `second` to `found`.
    pub(super) fn take_ended(&self, second: u64, found: &mut Vec<Trace>) {
        let mut kept = self.kept.lock();
        found.append(&mut kept.untaken);
        if kept.second < second {
            found.append(&mut kept.newest.0);
        }
    }

    /// Adds the kept requests of seconds that were not taken.
    pub(super) fn add_untaken(&self, found: &mut Vec<Trace>) {
        let kept = self.kept.lock();
        found.extend(kept.untaken.iter().chain(&kept.newest.0));
    }
}

impl Kept {
    fn begin_second(&mut self, second: u64) {
        self.second = second;
        let surplus_count = (self.untaken.len() + self.newest.0.len())
            .saturating_sub(UNTAKEN_COUNT_MAX * SECOND_KEPT_COUNT);
        self.untaken.drain(..surplus_count.min(self.untaken.len()));
        self.untaken.append(&mut self.newest.0);
        let window = second * SECOND_NS / WINDOW_NS;
        if window != self.window {
            self.window = window;
            self.newest_window().0.clear();
        }
    }

    fn newest_window(&mut self) -> &mut Slowest<KEPT_COUNT> {
        &mut self.windows[self.window as usize % WINDOW_COUNT]
    }
}

impl<const COUNT_MAX: usize> Slowest<COUNT_MAX> {
    fn offer(&mut self, trace: &Trace) {
        if rank_ns(trace) < self.keep_from_ns() {
            return;
        }
        if self.0.len() == COUNT_MAX {
            let (quickest, _) = self.quickest();
            self.0.swap_remove(quickest);
        }
        self.0.push(*trace);
    }

    /// Quicker requests are not kept.
    fn keep_from_ns(&self) -> u64 {
        if self.0.len() == COUNT_MAX { self.quickest().1.saturating_add(1) } else { 0 }
    }

    /// The index and the rank of the quickest, of at least one.
    fn quickest(&self) -> (usize, u64) {
        let ranks = self.0.iter().map(rank_ns);
        ranks.enumerate().min_by_key(|&(_, rank_ns)| rank_ns).unwrap_or((0, 0))
    }
}

fn rank_ns(trace: &Trace) -> u64 {
    match trace.remote.trace_id {
        Some(_) => u64::MAX,
        None => trace.stamps.phase_ns(Phase::Total),
    }
}

#[cfg(test)]
mod tests;
