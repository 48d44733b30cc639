//! The state of a thread's timer: when it fired, when it fires next, and how the thread has spent
//! its time.
//!
//! Threads: the drain resets it; otherwise the thread itself, also in its signal handler.

use std::ffi::c_int;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};

/// The running share covers about this much wall clock time, the wait share this much CPU time.
const RUNNING_WINDOW_NS: u64 = 1_000_000_000;
const WAIT_WINDOW_NS: u64 = 200_000_000;
pub(super) const NO_TIMER: c_int = -1;

/// What the signal handler knows of its thread's timer.
pub(super) struct Pace {
    /// The kernel's id of it, or [`NO_TIMER`].
    pub(super) id: AtomicI32,
    /// The mean gap between signals of a running thread.
    pub(super) mean_ns: AtomicU64,
    /// Both clocks at the last signal.
    pub(super) last_mono_ns: AtomicU64,
    pub(super) last_cpu_ns: AtomicU64,
    pub(super) due_mono_ns: AtomicU64,
    /// Time of the last sample, or of the timer's start.
    pub(super) sampled_mono_ns: AtomicU64,
    /// Share of the thread's time on a processor.
    pub(super) running_share: RecentShare<RUNNING_WINDOW_NS>,
    /// Share of its CPU time in announced waits.
    pub(super) wait_share: RecentShare<WAIT_WINDOW_NS>,
}

impl Pace {
    pub(super) const fn new() -> Pace {
        Pace {
            id: AtomicI32::new(NO_TIMER),
            mean_ns: AtomicU64::new(0),
            last_mono_ns: AtomicU64::new(0),
            last_cpu_ns: AtomicU64::new(0),
            due_mono_ns: AtomicU64::new(0),
            sampled_mono_ns: AtomicU64::new(0),
            running_share: RecentShare::new(),
            wait_share: RecentShare::new(),
        }
    }

    #[inline]
    pub(super) fn mean_ns(&self) -> f64 {
        self.mean_ns.load(Ordering::Relaxed) as f64
    }

    /// Drain: resets the state for the timer `id`. The lane may have been another thread's.
    pub(super) fn reset(&self, id: c_int, mean_ns: u64, now_mono_ns: u64, now_cpu_ns: u64) {
        self.mean_ns.store(mean_ns, Ordering::Relaxed);
        self.last_mono_ns.store(now_mono_ns, Ordering::Relaxed);
        self.sampled_mono_ns.store(now_mono_ns, Ordering::Relaxed);
        self.last_cpu_ns.store(now_cpu_ns, Ordering::Relaxed);
        self.running_share.reset();
        self.wait_share.reset();
        self.id.store(id, Ordering::Release);
    }
}

/// The share of recent time that a thread spent on something: of the last `WINDOW_NS`, roughly.
pub(super) struct RecentShare<const WINDOW_NS: u64> {
    whole_ns: AtomicU64,
    part_ns: AtomicU64,
}

impl<const WINDOW_NS: u64> RecentShare<WINDOW_NS> {
    const fn new() -> RecentShare<WINDOW_NS> {
        RecentShare { whole_ns: AtomicU64::new(0), part_ns: AtomicU64::new(0) }
    }

    fn reset(&self) {
        self.whole_ns.store(0, Ordering::Relaxed);
        self.part_ns.store(0, Ordering::Relaxed);
    }

    /// Adds `whole_ns`, of which `part_ns` belong to the share; returns the new share.
    #[inline]
    pub(super) fn add(&self, whole_ns: u64, part_ns: u64) -> f64 {
        let mut sum_ns = self.whole_ns.load(Ordering::Relaxed) + whole_ns;
        let mut part_sum_ns = self.part_ns.load(Ordering::Relaxed) + part_ns;
        let share = part_sum_ns as f64 / sum_ns.max(1) as f64;
        if sum_ns > WINDOW_NS {
            (sum_ns, part_sum_ns) = (sum_ns / 2, part_sum_ns / 2);
        }
        self.whole_ns.store(sum_ns, Ordering::Relaxed);
        self.part_ns.store(part_sum_ns, Ordering::Relaxed);
        share
    }
}
