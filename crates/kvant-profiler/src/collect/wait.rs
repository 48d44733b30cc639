//! Samples what threads wait for, and what falling asleep and waking costs them.
//!
//! A wait of `w` is a sample with probability `1 - exp(-w/R)` and stands for `w / (1 - exp(-w/R))`:
//! sums of weights are unbiased, long waits are nearly always there, and short ones cost little.
//! `R` is another one for each kind: idle threads do nothing but wait.
//!
//! A signal of a timer cannot tell a thread that was on its way to sleep from one that slept: both
//! are in the same system call. So while a thread waits its timer rests ([`goes_on_after`]), and
//! the CPU time of waits is measured instead, of one wait in [`MEASURED_ONE_IN`]: [`take_cpu_ns`]
//! says how much of the thread's time was that, and samples of the waiter's stack stand for it.
//!
//! Invariant: nothing here allocates or locks; who waited for a lock must not wait for one of ours.
//!
//! Threads: the listener is called on the thread that waits, or that is about to give up a lock;
//! [`goes_on_after`] and [`take_cpu_ns`] in the thread's signal handler.

use super::chance::{SamplePoints, is_one_in, unbiased};
use super::clock::{self, monotonic_ns};
use super::ring::{self, Observation};
use super::timer::Pace;
use crate::recording::Kind;
use kvant_base::wait::{self, WaitKind, WaitListener};
use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering, compiler_fence};

/// Calls of the system for files that take less than this have found everything in memory: they are
/// no waits.
const IO_WAIT_NS_MIN: u64 = 100_000;
/// Reading a thread's CPU clock is a system call.
const MEASURED_ONE_IN: u64 = 16;
/// When the thread's timer fires within this time after a wait, both clocks are read at the end of
/// the wait: whether the thread had a processor when it fired can then be told from this burst of
/// work alone.
const DUE_SOON_NS: u64 = 1_000_000;

static LISTENER: Listener = Listener {
    mean_ns: [const { AtomicU64::new(0) }; WaitKind::ALL.len()],
    cpu_mean_ns: AtomicU64::new(0),
    cpu_clock_ns: AtomicU64::new(0),
    since_mono_ns: AtomicU64::new(0),
};

struct Listener {
    /// By kind in the order of [`WaitKind::ALL`]; 0: none is sampled.
    mean_ns: [AtomicU64; WaitKind::ALL.len()],
    /// CPU time of waits between two samples of it; 0: it is not measured.
    cpu_mean_ns: AtomicU64,
    /// What a measurement says of no time at all.
    cpu_clock_ns: AtomicU64,
    /// When listening began, for this session.
    since_mono_ns: AtomicU64,
}

thread_local! {
    // Constant and without a destructor: reading it is one load, also in a signal handler.
    static OWN: OwnWaits = const { OwnWaits::new() };
}

/// What a thread waits for.
struct OwnWaits {
    /// How many waits go on, one inside of the other.
    depth: Cell<u32>,
    /// How long the thread has waited, since both clocks were read last.
    waited_ns: Cell<u64>,
    /// When the last wait ended.
    last_end_mono_ns: Cell<u64>,
    /// When the thread's timer fires next, as far as its signal handler has set it.
    due_mono_ns: Cell<u64>,
    /// Both clocks at the end of the last wait at which both were read.
    read_mono_ns: Cell<u64>,
    read_cpu_ns: Cell<u64>,
    /// CPU time of the thread when the outermost began, if that is measured.
    started_cpu_ns: Cell<Option<u64>>,
    /// The thread's timer, if it fired meanwhile.
    resting_timer: Cell<Option<&'static Pace>>,
    /// CPU time of waits that the signal handler does not know of yet.
    cpu_ns: AtomicU64,
    /// Of which session that is: its beginning.
    cpu_session_mono_ns: AtomicU64,
    points: [SamplePoints; WaitKind::ALL.len()],
    holder_points: SamplePoints,
    cpu_points: SamplePoints,
}

impl OwnWaits {
    const fn new() -> OwnWaits {
        OwnWaits {
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
}

impl OwnWaits {
    /// Whether the timer may fire in the work that begins at `now_mono_ns`.
    #[inline]
    fn is_due_soon(&self, now_mono_ns: u64) -> bool {
        let due_mono_ns = self.due_mono_ns.get();
        due_mono_ns > now_mono_ns && due_mono_ns - now_mono_ns < DUE_SOON_NS
    }

    /// Reads the CPU clock at the end of a wait, and remembers both; gives the CPU clock.
    fn read_clocks(&self, now_mono_ns: u64) -> u64 {
        let now_cpu_ns = clock::own_cpu_ns();
        self.waited_ns.set(0);
        self.read_mono_ns.set(now_mono_ns);
        self.read_cpu_ns.set(now_cpu_ns);
        now_cpu_ns
    }

    /// What the last session was not told is not of this one.
    fn forget_other_sessions(&self) {
        let session_mono_ns = LISTENER.since_mono_ns.load(Ordering::Relaxed);
        if self.cpu_session_mono_ns.load(Ordering::Relaxed) != session_mono_ns {
            self.cpu_session_mono_ns.store(session_mono_ns, Ordering::Relaxed);
            self.cpu_ns.store(0, Ordering::Relaxed);
        }
    }
}

/// What is to be known of waits.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Wanted {
    /// One wait is sampled in so many nanoseconds of each kind, in the order of [`WaitKind::ALL`].
    pub(super) mean_ns: Option<[u64; WaitKind::ALL.len()]>,
    /// One sample of the CPU time of waits in so many nanoseconds of it.
    pub(super) cpu_mean_ns: Option<u64>,
}

/// Begins to sample waits.
pub(super) fn begin(wanted: Wanted) {
    LISTENER.cpu_clock_ns.store(clock::own_cpu_clock_cost_ns(), Ordering::Relaxed);
    LISTENER.since_mono_ns.store(monotonic_ns(), Ordering::Relaxed);
    LISTENER.set(wanted);
    wait::install(&LISTENER);
    wait::listen(wanted.mean_ns.is_some() || wanted.cpu_mean_ns.is_some());
}

/// Ends it.
pub(super) fn end() {
    wait::listen(false);
    LISTENER.set(Wanted::default());
}

/// Whether the calling thread waits. Then its timer goes on when it has stopped.
pub(super) fn goes_on_after(pace: &'static Pace) -> bool {
    OWN.with(|own| {
        let is_waiting = own.depth.get() > 0;
        if is_waiting {
            own.resting_timer.set(Some(pace));
        }
        is_waiting
    })
}

/// How long the calling thread has waited since this was asked last, or since it last left its
/// clocks.
pub(super) fn take_waited_ns() -> u64 {
    OWN.with(|own| own.waited_ns.take())
}

/// The timer of the calling thread fires next at this time.
pub(super) fn note_due(mono_ns: u64) {
    OWN.with(|own| own.due_mono_ns.set(mono_ns));
}

/// Both clocks of the calling thread, monotonic and CPU, at the end of the last wait at which both
/// were read; 0 before the first.
pub(super) fn last_read_ns() -> (u64, u64) {
    OWN.with(|own| (own.read_mono_ns.get(), own.read_cpu_ns.get()))
}

/// When the last wait of the calling thread ended; 0 before the first.
pub(super) fn last_end_mono_ns() -> u64 {
    OWN.with(|own| own.last_end_mono_ns.get())
}

/// How much CPU time the waits of the calling thread took since this was asked last, as far as one
/// in [`MEASURED_ONE_IN`] tells.
pub(super) fn take_cpu_ns() -> u64 {
    OWN.with(|own| {
        own.forget_other_sessions();
        own.cpu_ns.swap(0, Ordering::Relaxed)
    })
}

/// Whether it is the thread that waits: tasks may keep only waits of this one kind.
fn is_of_thread(kind: WaitKind) -> bool {
    kind != WaitKind::Backpressure
}

impl WaitListener for Listener {
    fn now_ns(&self) -> u64 {
        monotonic_ns()
    }

    fn begins(&self, kind: WaitKind) -> u64 {
        if is_of_thread(kind) {
            OWN.with(|own| {
                if own.depth.replace(own.depth.get() + 1) == 0
                    && self.cpu_mean_ns.load(Ordering::Relaxed) != 0
                    && is_one_in(MEASURED_ONE_IN)
                {
                    own.started_cpu_ns.set(Some(clock::own_cpu_ns()));
                }
            });
        }
        monotonic_ns()
    }

    fn ends(&self, kind: WaitKind, name: &'static str, start_ns: u64) {
        let end_ns = monotonic_ns();
        let start_ns = self.within(start_ns);
        OWN.with(|own| {
            if is_of_thread(kind) {
                own.depth.set(own.depth.get() - 1);
                if own.depth.get() == 0 {
                    let waited_ns = own.waited_ns.get() + end_ns.saturating_sub(start_ns);
                    own.waited_ns.set(waited_ns);
                    own.last_end_mono_ns.set(end_ns);
                    self.thread_goes_on(own, name, end_ns);
                }
            }
            let duration_ns = end_ns.saturating_sub(start_ns);
            let mean_ns = self.mean_ns[kind as usize].load(Ordering::Relaxed);
            if mean_ns != 0
                && (kind != WaitKind::Io || duration_ns >= IO_WAIT_NS_MIN)
                && own.points[kind as usize].pass(duration_ns, mean_ns)
            {
                sample(
                    Kind::Wait(kind),
                    name,
                    start_ns,
                    duration_ns,
                    unbiased(duration_ns, mean_ns),
                );
            }
        });
    }

    fn held(&self, name: &'static str, since_ns: u64) {
        let since_ns = self.within(since_ns);
        let duration_ns = monotonic_ns().saturating_sub(since_ns);
        let mean_ns = self.mean_ns[WaitKind::Contention as usize].load(Ordering::Relaxed);
        if mean_ns != 0 && OWN.with(|own| own.holder_points.pass(duration_ns, mean_ns)) {
            sample(Kind::Holder, name, since_ns, duration_ns, unbiased(duration_ns, mean_ns));
        }
    }
}

impl Listener {
    fn set(&self, wanted: Wanted) {
        for (current, mean_ns) in self.mean_ns.iter().zip(wanted.mean_ns.unwrap_or_default()) {
            current.store(mean_ns, Ordering::Relaxed);
        }
        self.cpu_mean_ns.store(wanted.cpu_mean_ns.unwrap_or(0), Ordering::Relaxed);
    }

    /// What began before, in another session, counts from the beginning of this one.
    #[inline]
    fn within(&self, start_mono_ns: u64) -> u64 {
        start_mono_ns.max(self.since_mono_ns.load(Ordering::Relaxed))
    }

    /// The thread does not wait any more.
    #[inline]
    fn thread_goes_on(&self, own: &OwnWaits, name: &'static str, end_ns: u64) {
        // The handler must see the thread going on before it is asked what it left.
        compiler_fence(Ordering::SeqCst);
        if let Some(started_cpu_ns) = own.started_cpu_ns.take() {
            let now_cpu_ns = own.read_clocks(end_ns);
            self.add_cpu(own, name, end_ns, now_cpu_ns.saturating_sub(started_cpu_ns));
        } else if own.is_due_soon(end_ns) {
            own.read_clocks(end_ns);
        }
        if let Some(pace) = own.resting_timer.take() {
            pace.go_on();
        }
    }

    /// A wait whose CPU time is measured has ended.
    fn add_cpu(&self, own: &OwnWaits, name: &'static str, end_ns: u64, measured_ns: u64) {
        let spent_ns = measured_ns.saturating_sub(self.cpu_clock_ns.load(Ordering::Relaxed));
        let cpu_ns = spent_ns * MEASURED_ONE_IN;
        own.forget_other_sessions();
        own.cpu_ns.fetch_add(cpu_ns, Ordering::Relaxed);
        let mean_ns = self.cpu_mean_ns.load(Ordering::Relaxed);
        if mean_ns != 0 && own.cpu_points.pass(cpu_ns, mean_ns) {
            // When it was spent: not while the thread slept.
            sample(Kind::Cpu, name, end_ns, 0, unbiased(cpu_ns, mean_ns));
        }
    }
}

#[cold]
#[inline(never)]
fn sample(kind: Kind, name: &'static str, start_ns: u64, duration_ns: u64, weight: u64) {
    ring::record(&Observation {
        kind,
        time_mono_ns: start_ns,
        duration_ns,
        weight,
        name: Some(name),
        address: 0,
        frames_to_skip: 1,
    });
}
