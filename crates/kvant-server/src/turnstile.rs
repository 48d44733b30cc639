//! Keeps the turns of the event loop short, so that `/v0/status` stays fast beside any number of
//! busy connections.
//!
//! A turn serves every connection that has become readable, in that order. With a thousand of them
//! it lasts for ten milliseconds, and who asks for the status waits behind all. So a turn serves at
//! most [`TURN_COUNT_MAX`] connections; the others wait, unread, for the next ones, while the event
//! loop looks again for what has become readable. Connections that asked for the status last pass
//! at once.
//!
//! Invariant: who waits is let through in the order of waiting, [`TURN_COUNT_MAX`] a turn.
//!
//! Threads: belongs to one selector.

use crate::io::SocketState;
use crate::selector::Selector;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Poll, Waker};

/// Connections that a turn serves: at some 10 us each it lasts for a third of a millisecond. More
/// make the commits of writes, which are one a turn, hardly cheaper.
const TURN_COUNT_MAX: usize = 32;

/// Where a connection stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Pass {
    /// It has not asked.
    #[default]
    None,
    Waiting,
    /// It may read.
    Given,
}

/// The turnstile of one selector.
#[derive(Default)]
pub(crate) struct Turnstile {
    /// The turn that `passed_count` counts.
    turn: Cell<u64>,
    passed_count: Cell<usize>,
    waiting: RefCell<VecDeque<(Waker, Rc<SocketState>)>>,
    keeper: Cell<Option<Waker>>,
}

impl Turnstile {
    /// Whether a connection may read in this turn of the event loop. If not, `task` is woken when
    /// it may.
    #[inline]
    pub(crate) fn passes(&self, turn: u64, socket: &Rc<SocketState>, task: &Waker) -> bool {
        match socket.pass.replace(Pass::None) {
            Pass::Given => return true,
            Pass::Waiting => {
                // It was woken for something else.
                socket.pass.set(Pass::Waiting);
                return false;
            }
            Pass::None => {}
        }
        if self.turn.replace(turn) != turn {
            self.passed_count.set(0);
        }
        if self.passed_count.get() < TURN_COUNT_MAX && self.waiting.borrow().is_empty() {
            self.passed_count.set(self.passed_count.get() + 1);
            return true;
        }
        socket.pass.set(Pass::Waiting);
        self.waiting.borrow_mut().push_back((task.clone(), Rc::clone(socket)));
        if let Some(keeper) = self.keeper.take() {
            keeper.wake();
        }
        false
    }

    /// Resolves when somebody waits.
    async fn somebody_waits(&self) {
        poll_fn(|cx| match self.waiting.borrow().is_empty() {
            true => {
                self.keeper.set(Some(cx.waker().clone()));
                Poll::Pending
            }
            false => Poll::Ready(()),
        })
        .await;
    }

    fn let_through(&self) {
        let mut waiting = self.waiting.borrow_mut();
        let count = waiting.len().min(TURN_COUNT_MAX);
        for (task, socket) in waiting.drain(..count) {
            socket.pass.set(Pass::Given);
            task.wake();
        }
    }
}

/// The keeper: lets the next ones through after each look of the event loop at what has become
/// readable.
pub(crate) async fn run(selector: Rc<Selector>) {
    loop {
        selector.turnstile.somebody_waits().await;
        // Resumes behind the event loop's next look, and behind whom that has woken.
        tokio::task::yield_now().await;
        selector.turnstile.let_through();
    }
}
