//! The jobs of one kind that a selector has in flight, by slot number.

use std::mem;
use std::task::{Context, Poll, Waker};

pub(in crate::work) struct Slots<T> {
    slots: Vec<Slot<T>>,
    free: Vec<usize>,
}

enum Slot<T> {
    Free,
    Waiting(Option<Waker>),
    /// In flight; nothing waits for the reply.
    Abandoned,
    Finished(T),
}

impl<T> Default for Slots<T> {
    fn default() -> Slots<T> {
        Slots { slots: Vec::new(), free: Vec::new() }
    }
}

impl<T> Slots<T> {
    pub(super) fn in_flight_count(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    pub(super) fn add(&mut self) -> usize {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot::Free);
            self.slots.len() - 1
        });
        self.slots[slot] = Slot::Waiting(None);
        slot
    }

    fn release(&mut self, slot: usize) -> Slot<T> {
        self.free.push(slot);
        mem::replace(&mut self.slots[slot], Slot::Free)
    }

    /// Takes the reply to the job in `slot`, or has the caller woken by it.
    pub(super) fn poll_take(&mut self, slot: usize, cx: &mut Context<'_>) -> Poll<T> {
        if let Slot::Waiting(waker) = &mut self.slots[slot] {
            match waker {
                Some(waker) => waker.clone_from(cx.waker()),
                None => *waker = Some(cx.waker().clone()),
            }
            return Poll::Pending;
        }
        match self.release(slot) {
            Slot::Finished(reply) => Poll::Ready(reply),
            _ => panic!("only the owner of slot {slot} frees it"),
        }
    }

    /// Puts the reply into its slot. The caller wakes the waker, or drops the reply that nothing
    /// waits for: neither may run while the slots are borrowed.
    pub(super) fn finish(&mut self, slot: usize, reply: T) -> (Option<Waker>, Option<T>) {
        match mem::replace(&mut self.slots[slot], Slot::Free) {
            Slot::Waiting(waker) => {
                self.slots[slot] = Slot::Finished(reply);
                (waker, None)
            }
            _ => {
                self.free.push(slot);
                (None, Some(reply))
            }
        }
    }

    /// Gives up waiting for the job in `slot`. The caller drops the reply, if it is there already.
    pub(super) fn abandon(&mut self, slot: usize) -> Option<T> {
        if let Slot::Waiting(_) = self.slots[slot] {
            self.slots[slot] = Slot::Abandoned;
            return None;
        }
        match self.release(slot) {
            Slot::Finished(reply) => Some(reply),
            _ => None,
        }
    }
}
