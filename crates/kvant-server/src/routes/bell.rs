//! Wakes the event streams.
//!
//! Threads: any thread that adds an event rings the bell.

use kvant_base::Events;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::Notify;
use tokio::sync::futures::OwnedNotified;

#[derive(Default)]
pub(crate) struct Bell {
    rung: Arc<Notify>,
    /// A listener is in the ring, or about to be.
    listening: AtomicBool,
}

impl Bell {
    /// Resolves when the bell rings after this call.
    pub(super) fn next_ring(&self) -> OwnedNotified {
        Arc::clone(&self.rung).notified_owned()
    }

    /// Registers for events after `number`. A caller that waits must have called
    /// [`Bell::next_ring`] before it looked for events, so that an event in between wakes it.
    pub(super) fn listen(self: &Arc<Self>, events: &Events, number: u64) {
        if self.listening.swap(true, Ordering::AcqRel) {
            return;
        }
        let bell = Arc::clone(self);
        let ring = move || {
            // First: later callers register anew, earlier ones are woken by this ring.
            bell.listening.store(false, Ordering::Release);
            bell.rung.notify_waiters();
        };
        events.notify_after(number, Box::new(ring));
    }
}
