//! Bounds the connections that one turn of the event loop serves, so that `/v0/status` stays fast
//! beside any number of busy connections.
//!
//! A turn serves every connection that has become readable. With a thousand of them it takes ten
//! milliseconds, and a status request waits behind them all. So a turn serves at most
//! [`TURN_COUNT_MAX`] connections; the others wait, unread, for later turns, while the event loop
//! polls the sockets again. A connection whose last request was for the status passes at once.
//!
//! Invariant: waiting connections pass in the order in which they began to wait,
//! [`TURN_COUNT_MAX`] a turn.
//!
//! A connection waits before its task is woken, not in the task: so a request costs one run of the
//! task, whether it waits or not.
//!
//! Threads: all of it belongs to one selector, so that its lock never waits. It has one because
//! wakers must be [`Sync`].

use super::{NEVER, Turn};
use kvant_base::lock::NamedMutex;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Poll, Wake, Waker};

/// Connections that a turn serves: at about 10 us each, a third of a millisecond. A larger number
/// makes the commits of writes, one a turn, hardly cheaper.
const TURN_COUNT_MAX: usize = 32;

pub(crate) struct ReadBudget {
    turn: Arc<Turn>,
    state: NamedMutex<State>,
}

#[derive(Default)]
struct State {
    /// The turn that `passed_count` counts.
    counted_turn: u64,
    passed_count: usize,
    waiting: VecDeque<Arc<Arrival>>,
    keeper: Option<Waker>,
}

impl ReadBudget {
    pub(crate) fn new(turn: Arc<Turn>) -> Arc<ReadBudget> {
        Arc::new(ReadBudget { turn, state: NamedMutex::new("turn", State::default()) })
    }

    /// Whether the task of `arrival` may go on in this turn. If not, it is woken when it may.
    fn try_pass(&self, arrival: &Arc<Arrival>) -> bool {
        if arrival.waits.load(Ordering::Relaxed) {
            return false;
        }
        let mut state = self.state.lock();
        let turn = self.turn.number();
        if state.counted_turn != turn {
            state.counted_turn = turn;
            state.passed_count = 0;
        }
        if state.passed_count < TURN_COUNT_MAX && state.waiting.is_empty() {
            state.passed_count += 1;
            return true;
        }
        arrival.waits.store(true, Ordering::Relaxed);
        state.waiting.push_back(Arc::clone(arrival));
        let keeper = state.keeper.take();
        drop(state);
        if let Some(keeper) = keeper {
            keeper.wake();
        }
        false
    }

    /// Resolves in a turn that has room for another task.
    pub(crate) async fn pass(self: &Arc<Self>) {
        let mut requested: Option<Arc<Arrival>> = None;
        poll_fn(|cx| {
            let passes = match &requested {
                Some(arrival) => !arrival.waits.load(Ordering::Relaxed),
                None => {
                    let arrival = requested.insert(Arrival::new(cx.waker().clone(), self));
                    self.try_pass(arrival)
                }
            };
            if passes { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }

    async fn wait_until_used_up(&self) {
        poll_fn(|cx| {
            let mut state = self.state.lock();
            if state.waiting.is_empty() {
                state.keeper = Some(cx.waker().clone());
                return Poll::Pending;
            }
            Poll::Ready(())
        })
        .await;
    }

    fn grant(&self) {
        let mut state = self.state.lock();
        let count = state.waiting.len().min(TURN_COUNT_MAX);
        for arrival in state.waiting.drain(..count) {
            arrival.waits.store(false, Ordering::Relaxed);
            arrival.task.wake_by_ref();
        }
    }
}

/// A waker that notes when it was woken, and wakes its task when it is the task's turn
/// ([`ReadBudget`]).
pub(crate) struct Arrival {
    task: Waker,
    budget: Arc<ReadBudget>,
    woken_ns: AtomicU64,
    /// It was woken, and its task has to wait.
    waits: AtomicBool,
    has_priority: AtomicBool,
}

impl Arrival {
    pub(crate) fn new(task: Waker, budget: &Arc<ReadBudget>) -> Arc<Arrival> {
        Arc::new(Arrival {
            task,
            budget: Arc::clone(budget),
            woken_ns: AtomicU64::new(NEVER),
            waits: AtomicBool::new(false),
            has_priority: AtomicBool::new(false),
        })
    }

    /// When the turn began in which it was woken since the last call. Returns the current time if
    /// it was not woken: the bytes were there already.
    #[inline]
    pub(crate) fn take_ns(&self) -> u64 {
        match self.forget() {
            NEVER => self.budget.turn.clock.monotonic_ns(),
            woken_ns => woken_ns,
        }
    }

    /// Whether the task has to wait for its turn before it reads. A running connection calls it, so
    /// it ends the turn's wake-ups.
    #[inline]
    pub(crate) fn waits(&self) -> bool {
        self.budget.turn.end();
        self.waits.load(Ordering::Relaxed)
    }

    /// Forgets a wake-up that found nothing to read, and returns its time.
    #[inline]
    pub(crate) fn forget(&self) -> u64 {
        self.budget.turn.end();
        let woken_ns = self.woken_ns.load(Ordering::Relaxed);
        self.woken_ns.store(NEVER, Ordering::Relaxed);
        woken_ns
    }

    /// Whether the next wake-up passes at once, whatever else the turn serves.
    #[inline]
    pub(crate) fn set_priority(&self, has_priority: bool) {
        self.has_priority.store(has_priority, Ordering::Relaxed);
    }
}

impl Wake for Arrival {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.woken_ns.store(self.budget.turn.began_ns(), Ordering::Relaxed);
        if self.has_priority.load(Ordering::Relaxed) || self.budget.try_pass(self) {
            self.task.wake_by_ref();
        }
    }
}

/// Grants the next passes each time the event loop has polled the sockets. Never returns.
pub(crate) async fn run(budget: Arc<ReadBudget>) {
    loop {
        budget.wait_until_used_up().await;
        // The runtime resumes this task after its next poll of the sockets, and after the tasks
        // that the poll woke.
        tokio::task::yield_now().await;
        budget.grant();
    }
}

#[cfg(test)]
mod tests;
