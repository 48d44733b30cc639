//! Every wait has a kind and a name: locks, conditions, queues and slow system calls tell a
//! profiler how long they took.
//!
//! Nothing is measured unless a profiler listens: then [`begin`] is one load and a branch, and only
//! on paths that wait anyway.
//!
//! Kinds are never merged. A worker with nothing to do and a thread that cannot get a lock are both
//! asleep, but only one of them is a problem.
//!
//! Threads: any. The listener is called on the thread that waits.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// What kind of wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum WaitKind {
    /// Another thread had the lock.
    Contention,
    /// There was nothing to do.
    Idle,
    /// Someone slower had to catch up: a full queue, a write stall.
    Backpressure,
    /// The disk.
    Io,
    /// Ready to run, but no processor was free.
    Scheduler,
}

impl WaitKind {
    /// All, in the order of their numbers.
    pub const ALL: [WaitKind; 5] = [
        WaitKind::Contention,
        WaitKind::Idle,
        WaitKind::Backpressure,
        WaitKind::Io,
        WaitKind::Scheduler,
    ];

    /// Its name in profiles.
    pub fn name(self) -> &'static str {
        match self {
            WaitKind::Contention => "contention",
            WaitKind::Idle => "idle",
            WaitKind::Backpressure => "backpressure",
            WaitKind::Io => "io",
            WaitKind::Scheduler => "scheduler",
        }
    }
}

/// Who wants to know of waits.
pub trait WaitListener: Sync {
    /// Now, in nanoseconds of the listener's monotonic clock.
    fn now_ns(&self) -> u64;
    /// A wait of that kind begins now: at the time that is returned.
    fn begins(&self, kind: WaitKind) -> u64;
    /// A wait for what is called `name` ends now; it was said to begin at `start_ns`. Called for
    /// each wait that began, also when nobody listens any more.
    fn ends(&self, kind: WaitKind, name: &'static str, start_ns: u64);
    /// The calling thread is about to give up the lock `name`, for which others wait since
    /// `since_ns`.
    fn held(&self, name: &'static str, since_ns: u64);
}

static IS_LISTENING: AtomicBool = AtomicBool::new(false);
static LISTENER: OnceLock<&'static dyn WaitListener> = OnceLock::new();

/// Makes `listener` the one that is told of waits from the next [`listen`] on; a process has one,
/// the first that was installed.
pub fn install(listener: &'static dyn WaitListener) {
    LISTENER.get_or_init(|| listener);
}

/// Begins or ends telling the listener.
pub fn listen(is_on: bool) {
    IS_LISTENING.store(is_on, Ordering::Release);
}

/// The listener, while it listens.
#[inline]
pub fn listener() -> Option<&'static dyn WaitListener> {
    // Without the profiler nobody ever listens, and all that asks compiles to nothing.
    if cfg!(feature = "profiler") && IS_LISTENING.load(Ordering::Acquire) {
        LISTENER.get().copied()
    } else {
        None
    }
}

/// A wait begins, which ends when the result is dropped.
#[inline]
pub fn begin(kind: WaitKind, name: &'static str) -> Waiting {
    Waiting { kind, name, start_ns: listener().map(|listener| listener.begins(kind)) }
}

/// A wait that goes on, of the calling thread. One for [`WaitKind::Backpressure`] a task may keep
/// across an `await`: then what waits is the task, not the thread.
#[must_use = "the wait ends when this is dropped"]
pub struct Waiting {
    kind: WaitKind,
    name: &'static str,
    /// `None` when nobody listened at its beginning.
    start_ns: Option<u64>,
}

impl Waiting {
    /// When it began, in the listener's time; `None` when nobody listened.
    #[inline]
    pub fn start_ns(&self) -> Option<u64> {
        self.start_ns
    }
}

impl Drop for Waiting {
    #[inline]
    fn drop(&mut self) {
        if let Some(start_ns) = self.start_ns
            && let Some(listener) = LISTENER.get()
        {
            listener.ends(self.kind, self.name, start_ns);
        }
    }
}
