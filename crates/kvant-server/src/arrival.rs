//! When the event loop learned that a connection has something to read.
//!
//! A connection's task may wait behind many others between that moment and its turn: this lag of the selector is a part of what its
//! clients wait for. So sockets are read with a waker of their own, which notes the time before it wakes the task.

use kvant_env::Clock;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Wake, Waker};

/// No time has been noted.
const NEVER: u64 = u64::MAX;

/// Notes when it is woken.
pub(crate) struct Arrival {
    task: Waker,
    clock: Arc<dyn Clock>,
    woken_ns: AtomicU64,
}

impl Arrival {
    pub(crate) fn new(task: Waker, clock: Arc<dyn Clock>) -> Arc<Arrival> {
        Arc::new(Arrival {
            task,
            clock,
            woken_ns: AtomicU64::new(NEVER),
        })
    }

    /// When it was woken since the last call; now, if it was not: what is read has been there already.
    #[inline]
    pub(crate) fn take_ns(&self) -> u64 {
        // The reactor runs on the selector's own thread: nobody writes between the two.
        let woken_ns = self.woken_ns.load(Ordering::Relaxed);
        self.woken_ns.store(NEVER, Ordering::Relaxed);
        match woken_ns {
            NEVER => self.clock.monotonic_ns(),
            woken_ns => woken_ns,
        }
    }

    /// There was nothing to read after all.
    #[inline]
    pub(crate) fn forget(&self) {
        self.woken_ns.store(NEVER, Ordering::Relaxed);
    }
}

impl Wake for Arrival {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.woken_ns.store(self.clock.monotonic_ns(), Ordering::Relaxed);
        self.task.wake_by_ref();
    }
}
