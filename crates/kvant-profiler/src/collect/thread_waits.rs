//! What each thread knows of its own waits: the wait listener writes it, the thread's signal
//! handler reads it.
//!
//! Threads: each has its own; also in its signal handler.

use super::chance::SamplePoints;
use super::clock;
use super::pace::Pace;
use kvant_base::wait::WaitKind;
use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

/// If the thread's timer fires within this time after a wait, both clocks are read at the end of
/// the wait: this burst of work alone then tells whether the thread had a processor when it fired.
const DUE_SOON_NS: u64 = 1_000_000;

pub(super) static SESSION_MONO_NS: AtomicU64 = AtomicU64::new(0);

thread_local! {
    // Constant and without a destructor: access is one load, also in a signal handler.
    pub(super) static OWN: ThreadWaits = const { ThreadWaits::new() };
}

pub(super) struct ThreadWaits {
    pub(super) depth: Cell<u32>,
    /// Waiting time since both clocks were last read.
    pub(super) waited_ns: Cell<u64>,
    pub(super) last_end_mono_ns: Cell<u64>,
    /// When the thread's timer fires next, if its signal handler has set it.
    due_mono_ns: Cell<u64>,
    /// Both clocks, as last read at the end of a wait.
    read_mono_ns: Cell<u64>,
    read_cpu_ns: Cell<u64>,
    /// CPU time of the thread at the start of the outermost wait, if it is measured.
    pub(super) started_cpu_ns: Cell<Option<u64>>,
    /// The thread's timer, if it fired during the wait.
    pub(super) resting_timer: Cell<Option<&'static Pace>>,
    /// CPU time of waits that the signal handler has not taken yet.
    cpu_ns: AtomicU64,
    cpu_session_mono_ns: AtomicU64,
    pub(super) points: [SamplePoints; WaitKind::ALL.len()],
    pub(super) holder_points: SamplePoints,
    pub(super) cpu_points: SamplePoints,
}

impl ThreadWaits {
    const fn new() -> ThreadWaits {
        ThreadWaits {
            depth: Cell::new(0),
            waited_ns: Cell::new(0),
            last_end_mono_ns: Cell::new(0),
            due_mono_ns: Cell::new(0),
            read_mono_ns: Cell::new(0),
            read_cpu_ns: Cell::new(0),
            started_cpu_ns: Cell::new(None),
            resting_timer: Cell::new(None),
            cpu_ns: AtomicU64::new(0),
            cpu_session_mono_ns: AtomicU64::new(0),
            points: [const { SamplePoints::new() }; WaitKind::ALL.len()],
            holder_points: SamplePoints::new(),
            cpu_points: SamplePoints::new(),
        }
    }

    /// Whether the timer may fire in the work that begins at `now_mono_ns`.
    #[inline]
    pub(super) fn is_due_soon(&self, now_mono_ns: u64) -> bool {
        let due_mono_ns = self.due_mono_ns.get();
        due_mono_ns > now_mono_ns && due_mono_ns - now_mono_ns < DUE_SOON_NS
    }

    /// Stores both clocks at the end of a wait; returns the CPU clock, which it reads.
    #[inline]
    pub(super) fn read_clocks(&self, now_mono_ns: u64) -> u64 {
        let now_cpu_ns = clock::own_cpu_ns();
        self.waited_ns.set(0);
        self.read_mono_ns.set(now_mono_ns);
        self.read_cpu_ns.set(now_cpu_ns);
        now_cpu_ns
    }

    #[inline]
    pub(super) fn add_cpu_ns(&self, cpu_ns: u64) {
        self.discard_other_sessions();
        self.cpu_ns.fetch_add(cpu_ns, Ordering::Relaxed);
    }

    /// CPU time that the last session did not take does not belong to this one.
    fn discard_other_sessions(&self) {
        let session_mono_ns = SESSION_MONO_NS.load(Ordering::Relaxed);
        if self.cpu_session_mono_ns.load(Ordering::Relaxed) != session_mono_ns {
            self.cpu_session_mono_ns.store(session_mono_ns, Ordering::Relaxed);
            self.cpu_ns.store(0, Ordering::Relaxed);
        }
    }
}

/// Signal handler: whether the calling thread is waiting. If so, the listener restarts `pace`'s
/// timer when the wait ends.
#[inline]
pub(super) fn rest_if_waiting(pace: &'static Pace) -> bool {
    OWN.with(|own| {
        let is_waiting = own.depth.get() > 0;
        if is_waiting {
            own.resting_timer.set(Some(pace));
        }
        is_waiting
    })
}

/// Takes the waiting time of the calling thread since the last call, or since both clocks were last
/// read.
#[inline]
pub(super) fn take_waited_ns() -> u64 {
    OWN.with(|own| own.waited_ns.take())
}

/// Notes when the timer of the calling thread fires next.
#[inline]
pub(super) fn note_due(mono_ns: u64) {
    OWN.with(|own| own.due_mono_ns.set(mono_ns));
}

/// Both clocks of the calling thread, monotonic and CPU, as last read at the end of a wait; 0
/// before the first.
#[inline]
pub(super) fn last_read_ns() -> (u64, u64) {
    OWN.with(|own| (own.read_mono_ns.get(), own.read_cpu_ns.get()))
}

/// When the last wait of the calling thread ended; 0 before the first.
#[inline]
pub(super) fn last_end_mono_ns() -> u64 {
    OWN.with(|own| own.last_end_mono_ns.get())
}

/// Takes the CPU time of the calling thread's waits since the last call, as estimated from the
/// measured ones.
#[inline]
pub(super) fn take_cpu_ns() -> u64 {
    OWN.with(|own| {
        own.discard_other_sessions();
        own.cpu_ns.swap(0, Ordering::Relaxed)
    })
}
