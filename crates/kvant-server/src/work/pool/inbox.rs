//! Replies on their way to one selector.
//!
//! The delivery that finds the inbox empty wakes the selector: however many replies come before the
//! selector takes them, it is woken once.
//!
//! Threads: any delivers; the selector alone takes.

use super::work::{AnyReply, Ticket};
use kvant_base::lock::NamedMutex;
use std::mem;
use std::task::{Context, Poll, Waker};

/// The reply to the job in `slot`.
pub(super) struct Delivery {
    pub(super) slot: usize,
    pub(super) reply: AnyReply,
}

pub(super) struct Inbox(NamedMutex<State>);

#[derive(Default)]
struct State {
    deliveries: Vec<Delivery>,
    selector: Option<Waker>,
}

impl Inbox {
    pub(super) fn new() -> Inbox {
        Inbox(NamedMutex::new("pool_inbox", State::default()))
    }

    pub(super) fn deliver(&self, deliveries: &mut Vec<Delivery>) {
        let selector = {
            let mut state = self.0.lock();
            state.deliveries.append(deliveries);
            state.selector.take()
        };
        if let Some(selector) = selector {
            selector.wake();
        }
    }

    /// Moves the deliveries to `taken`, which is empty; or has the caller woken by the next one.
    pub(super) fn poll_take(&self, taken: &mut Vec<Delivery>, cx: &mut Context<'_>) -> Poll<()> {
        let mut state = self.0.lock();
        if state.deliveries.is_empty() {
            state.selector = Some(cx.waker().clone());
            return Poll::Pending;
        }
        mem::swap(&mut state.deliveries, taken);
        Poll::Ready(())
    }
}

/// Replies by selector, to be delivered together.
#[derive(Default)]
pub(super) struct Outbox(Vec<Vec<Delivery>>);

impl Outbox {
    pub(super) fn add(&mut self, ticket: Ticket, reply: AnyReply) {
        self.to(ticket.selector).push(Delivery { slot: ticket.slot, reply });
    }

    pub(super) fn to(&mut self, selector: usize) -> &mut Vec<Delivery> {
        if self.0.len() <= selector {
            self.0.resize_with(selector + 1, Vec::new);
        }
        &mut self.0[selector]
    }

    pub(super) fn deliver(&mut self, inboxes: &[Inbox]) {
        for (inbox, deliveries) in inboxes.iter().zip(&mut self.0) {
            if !deliveries.is_empty() {
                inbox.deliver(deliveries);
            }
        }
    }
}

#[cfg(test)]
mod tests;
