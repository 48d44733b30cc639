//! When the event loop learned that a connection has something to read.
//!
//! A connection's task may wait behind many others between that moment and its turn: this lag of
//! the selector is a part of what its clients wait for. So sockets are read with a waker of their
//! own, which notes the time before it wakes the task.
//!
//! The event loop wakes all connections that have become readable, then runs them: what is woken
//! together belongs to one turn and has one time, which is also cheaper to tell.
//!
//! Threads: the event loop runs on the selector's own thread, so nobody else writes; atomics are
//! there because wakers must be [`Sync`].

use kvant_env::Clock;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Wake, Waker};

/// No time has been noted.
const NEVER: u64 = u64::MAX;

/// The present turn of a selector's event loop.
pub(crate) struct Turn {
    clock: Arc<dyn Clock>,
    /// When the first connection of the turn was woken, until one of them runs.
    began_ns: AtomicU64,
    number: AtomicU64,
}

impl Turn {
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Arc<Turn> {
        Arc::new(Turn { clock, began_ns: AtomicU64::new(NEVER), number: AtomicU64::new(0) })
    }

    #[inline]
    fn began_ns(&self) -> u64 {
        match self.began_ns.load(Ordering::Relaxed) {
            NEVER => {
                let now_ns = self.clock.monotonic_ns();
                self.began_ns.store(now_ns, Ordering::Relaxed);
                self.number.store(self.number.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
                now_ns
            }
            began_ns => began_ns,
        }
    }

    /// The event loop has nothing to run and waits: whom it wakes next belongs to another turn.
    pub(crate) fn ends(&self) {
        self.began_ns.store(NEVER, Ordering::Relaxed);
    }

    /// Counts turns.
    #[inline]
    pub(crate) fn number(&self) -> u64 {
        self.number.load(Ordering::Relaxed)
    }
}

/// Notes when it is woken.
pub(crate) struct Arrival {
    task: Waker,
    turn: Arc<Turn>,
    woken_ns: AtomicU64,
}

impl Arrival {
    pub(crate) fn new(task: Waker, turn: Arc<Turn>) -> Arc<Arrival> {
        Arc::new(Arrival { task, turn, woken_ns: AtomicU64::new(NEVER) })
    }

    /// The beginning of the turn in which it was woken since the last call; now, if it was not:
    /// what is read has been there already.
    #[inline]
    pub(crate) fn take_ns(&self) -> u64 {
        match self.forget() {
            NEVER => self.turn.clock.monotonic_ns(),
            woken_ns => woken_ns,
        }
    }

    /// Whether it was woken since the last read. Asked by a connection that runs, so that whom the
    /// event loop wakes next belongs to another turn.
    #[inline]
    pub(crate) fn is_woken(&self) -> bool {
        self.turn.began_ns.store(NEVER, Ordering::Relaxed);
        self.woken_ns.load(Ordering::Relaxed) != NEVER
    }

    /// There was nothing to read after all.
    #[inline]
    pub(crate) fn forget(&self) -> u64 {
        self.turn.began_ns.store(NEVER, Ordering::Relaxed);
        let woken_ns = self.woken_ns.load(Ordering::Relaxed);
        self.woken_ns.store(NEVER, Ordering::Relaxed);
        woken_ns
    }
}

impl Wake for Arrival {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.woken_ns.store(self.turn.began_ns(), Ordering::Relaxed);
        self.task.wake_by_ref();
    }
}
