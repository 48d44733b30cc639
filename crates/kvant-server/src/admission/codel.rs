//! Controlled delay: tells a queue that stands from one that only takes up bursts.
//!
//! A full queue says little: a burst fills it too. What tells overload is that even the shortest
//! wait of an interval is over the target: then the queue never drained. (K. Nichols and V.
//! Jacobson, "Controlling Queue Delay", ACM Queue 10(5), 2012; for servers, B. Maurer, "Fail at
//! Scale", ACM Queue 13(8), 2015.) What to do about it is the caller's: CoDel's own answer,
//! dropping ever more packets until senders slow down, fits TCP and not clients that wait for an
//! answer.

/// Watches the waits of one queue.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Codel {
    /// Since when every wait has been over the target.
    above_since_ns: Option<u64>,
    last_ns: u64,
    overloaded: bool,
}

impl Codel {
    /// Notes how long something waited that left the queue now.
    #[inline]
    pub(crate) fn observe(&mut self, wait_ns: u64, target_ns: u64, interval_ns: u64, now_ns: u64) {
        // Nothing left the queue for an interval: whatever was before says nothing of now.
        if now_ns.saturating_sub(self.last_ns) > interval_ns {
            *self = Codel::default();
        }
        self.last_ns = now_ns;
        if wait_ns <= target_ns {
            self.above_since_ns = None;
            self.overloaded = false;
            return;
        }
        let since_ns = *self.above_since_ns.get_or_insert(now_ns);
        self.overloaded |= now_ns.saturating_sub(since_ns) >= interval_ns;
    }

    /// Whether all waits of the last interval were over the target.
    #[inline]
    pub(crate) fn is_overloaded(&self) -> bool {
        self.overloaded
    }
}

#[cfg(test)]
mod tests;
