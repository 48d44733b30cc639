//! What workers have done for one selector, until the selector looks.
//!
//! Whoever finds the inbox empty wakes the selector: however many outcomes come before it looks, it
//! is woken once.
//!
//! Threads: any delivers; the selector alone takes.

use super::work::Done;
use kvant_base::lock::NamedMutex;
use std::mem;
use std::task::{Context, Poll, Waker};

/// An outcome on its way.
pub(super) struct Arrival {
    pub(super) slot: usize,
    pub(super) done: Done,
}

/// The inbox of one selector.
pub(super) struct Inbox(NamedMutex<State>);

#[derive(Default)]
struct State {
    arrivals: Vec<Arrival>,
    selector: Option<Waker>,
}

impl Inbox {
    pub(super) fn new() -> Inbox {
        Inbox(NamedMutex::new("pool_inbox", State::default()))
    }

    /// Moves `arrivals` here.
    pub(super) fn deliver(&self, arrivals: &mut Vec<Arrival>) {
        let selector = {
            let mut state = self.0.lock();
            state.arrivals.append(arrivals);
            state.selector.take()
        };
        if let Some(selector) = selector {
            selector.wake();
        }
    }

    /// Moves what has arrived to `arrivals`, which is empty; or has the caller woken by the next
    /// delivery.
    pub(super) fn poll_take(&self, arrivals: &mut Vec<Arrival>, cx: &mut Context<'_>) -> Poll<()> {
        let mut state = self.0.lock();
        if state.arrivals.is_empty() {
            state.selector = Some(cx.waker().clone());
            return Poll::Pending;
        }
        mem::swap(&mut state.arrivals, arrivals);
        Poll::Ready(())
    }
}

#[cfg(test)]
mod tests;
