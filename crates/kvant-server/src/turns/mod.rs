//! Turns of a selector's event loop: when one began, and how many connections it serves.
//!
//! A connection's task may run long after the event loop learned that its socket is readable. That
//! lag is a part of what the client waits for, so sockets are polled with a waker of their own
//! ([`Arrival`]) that notes the time before it wakes the task. The event loop wakes every readable
//! connection, then runs them: all of them share the time at which the turn began.
//!
//! Threads: all of it belongs to one selector. Atomics are used because wakers must be [`Sync`];
//! no other thread writes them.

mod read_budget;

pub(crate) use read_budget::{Arrival, ReadBudget, run};

use kvant_env::Clock;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const NEVER: u64 = u64::MAX;

pub(crate) struct Turn {
    clock: Arc<dyn Clock>,
    /// When the first connection of the turn was woken; reset when a connection runs.
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

    /// Ends the turn: connections woken from now on belong to the next one.
    pub(crate) fn end(&self) {
        self.began_ns.store(NEVER, Ordering::Relaxed);
    }

    #[inline]
    pub(crate) fn number(&self) -> u64 {
        self.number.load(Ordering::Relaxed)
    }
}
