//! Named waits: locks, condition variables, queues and slow system calls report their duration to a
//! profiler.
//!
//! Without a listening profiler [`begin`] is two loads and branches, and it is only called on paths
//! that block anyway.
//!
//! In an experiment that slows stages down, a wait is rest ([`tag::rest`]), except for the disk:
//! that is the work of the stage.
//!
//! Kinds are never merged. An idle worker and a thread that waits for a lock are both asleep, but
//! only the second is a problem.
//!
//! Threads: any. The listener runs on the waiting thread.

use crate::tag::{self, Resting};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

crate::named_enum! {
    /// The reason for a wait. Names are those of profiles.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    #[repr(u8)]
    pub enum WaitKind {
        /// Another thread held the lock.
        Contention = "contention",
        /// There was no work.
        Idle = "idle",
        /// A slower stage had to catch up: a full queue, a write stall.
        Backpressure = "backpressure",
        /// The disk.
        Io = "io",
        /// The thread was runnable, but no CPU was free.
        Scheduler = "scheduler",
    }
}

/// Receives wait events.
pub trait WaitListener: Sync {
    /// The current time, in nanoseconds of the listener's monotonic clock.
    fn now_ns(&self) -> u64;
    /// A wait begins. Returns its start time.
    fn on_wait_start(&self, kind: WaitKind) -> u64;
    /// A wait for `name` ends. [`WaitListener::on_wait_start`] returned `start_ns`. Every wait that
    /// began also ends, even if listening has been switched off since.
    fn on_wait_end(&self, kind: WaitKind, name: &'static str, start_ns: u64);
    /// The calling thread is about to release the lock `name`, for which others have waited since
    /// `since_ns`.
    fn on_contended_unlock(&self, name: &'static str, since_ns: u64);
}

static IS_LISTENING: AtomicBool = AtomicBool::new(false);
static LISTENER: OnceLock<&'static dyn WaitListener> = OnceLock::new();

/// Installs the process's listener. Later calls have no effect.
pub fn install(listener: &'static dyn WaitListener) {
    LISTENER.get_or_init(|| listener);
}

/// Switches wait events on or off.
pub fn listen(is_on: bool) {
    IS_LISTENING.store(is_on, Ordering::Release);
}

/// The listener, if wait events are on.
#[inline]
pub fn listener() -> Option<&'static dyn WaitListener> {
    // Without the feature this is constant, and the callers' code is removed.
    if cfg!(feature = "profiler") && IS_LISTENING.load(Ordering::Acquire) {
        LISTENER.get().copied()
    } else {
        None
    }
}

/// Begins a wait that ends when the result is dropped.
#[inline]
pub fn begin(kind: WaitKind, name: &'static str) -> Waiting {
    let resting = (kind != WaitKind::Io).then(tag::rest);
    let start_ns = listener().map(|listener| listener.on_wait_start(kind));
    Waiting { kind, name, start_ns, _resting: resting }
}

/// A wait of the calling thread. A task may hold a [`WaitKind::Backpressure`] wait across an
/// `await`; then the wait is the task's.
#[must_use = "the wait ends when this is dropped"]
pub struct Waiting {
    kind: WaitKind,
    name: &'static str,
    /// `None` if wait events were off at the start.
    start_ns: Option<u64>,
    _resting: Option<Resting>,
}

impl Waiting {
    /// Start time of the listener's clock; `None` if wait events were off.
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
            listener.on_wait_end(self.kind, self.name, start_ns);
        }
    }
}
