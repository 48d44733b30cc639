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
//! Threads: belongs to one selector.

use super::Turn;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Poll, Waker};

/// Connections that a turn serves: at about 10 us each, a third of a millisecond. A larger number
/// makes the commits of writes, one a turn, hardly cheaper.
const TURN_COUNT_MAX: usize = 32;

/// Whether a task may go on in this turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Pass {
    #[default]
    NotRequested,
    Waiting,
    Granted,
}

pub(crate) struct ReadBudget {
    turn: Arc<Turn>,
    /// The turn that `passed_count` counts.
    counted_turn: Cell<u64>,
    passed_count: Cell<usize>,
    waiting: RefCell<VecDeque<(Waker, Rc<Cell<Pass>>)>>,
    keeper: Cell<Option<Waker>>,
}

impl ReadBudget {
    pub(crate) fn new(turn: Arc<Turn>) -> Rc<ReadBudget> {
        Rc::new(ReadBudget {
            turn,
            counted_turn: Cell::default(),
            passed_count: Cell::default(),
            waiting: RefCell::default(),
            keeper: Cell::default(),
        })
    }

    /// Whether `task` may go on in this turn. If not, it is woken when it may; `pass` is its own.
    #[inline]
    pub(crate) fn try_pass(&self, pass: &Rc<Cell<Pass>>, task: &Waker) -> bool {
        match pass.replace(Pass::NotRequested) {
            Pass::Granted => return true,
            Pass::Waiting => {
                // Something else woke the task.
                pass.set(Pass::Waiting);
                return false;
            }
            Pass::NotRequested => {}
        }
        let turn = self.turn.number();
        if self.counted_turn.replace(turn) != turn {
            self.passed_count.set(0);
        }
        if self.passed_count.get() < TURN_COUNT_MAX && self.waiting.borrow().is_empty() {
            self.passed_count.set(self.passed_count.get() + 1);
            return true;
        }
        pass.set(Pass::Waiting);
        self.waiting.borrow_mut().push_back((task.clone(), Rc::clone(pass)));
        if let Some(keeper) = self.keeper.take() {
            keeper.wake();
        }
        false
    }

    /// Resolves in a turn that has room for another task.
    pub(crate) async fn pass(&self) {
        let pass = Rc::default();
        poll_fn(|cx| match self.try_pass(&pass, cx.waker()) {
            true => Poll::Ready(()),
            false => Poll::Pending,
        })
        .await;
    }

    async fn wait_until_used_up(&self) {
        poll_fn(|cx| match self.waiting.borrow().is_empty() {
            true => {
                self.keeper.set(Some(cx.waker().clone()));
                Poll::Pending
            }
            false => Poll::Ready(()),
        })
        .await;
    }

    fn grant(&self) {
        let mut waiting = self.waiting.borrow_mut();
        let count = waiting.len().min(TURN_COUNT_MAX);
        for (task, pass) in waiting.drain(..count) {
            pass.set(Pass::Granted);
            task.wake();
        }
    }
}

/// Grants the next passes each time the event loop has polled the sockets. Never returns.
pub(crate) async fn run(budget: Rc<ReadBudget>) {
    loop {
        budget.wait_until_used_up().await;
        // The runtime resumes this task after its next poll of the sockets, and after the tasks
        // that the poll woke.
        tokio::task::yield_now().await;
        budget.grant();
    }
}
