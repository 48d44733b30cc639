//! Controlled delay: tells a standing queue from one that absorbs bursts.
//!
//! A burst fills a queue too. Overload shows when even the shortest wait of an interval exceeds the
//! target: the queue never drained. (K. Nichols and V. Jacobson, "Controlling Queue Delay", ACM
//! Queue 10(5), 2012; for servers, B. Maurer, "Fail at Scale", ACM Queue 13(8), 2015.) The caller
//! decides what to do: CoDel drops ever more packets until senders slow down, which suits TCP but
//! not clients that wait for a response.

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Codel {
    /// Since when every wait has exceeded the target.
    above_since_ns: Option<u64>,
    last_ns: u64,
    overloaded: bool,
}

impl Codel {
    /// Notes the wait of an item that leaves the queue at `now_ns`.
    #[inline]
    pub(crate) fn observe(&mut self, wait_ns: u64, target_ns: u64, interval_ns: u64, now_ns: u64) {
        // Nothing left the queue for an interval: the history is stale.
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

    /// Whether all waits of the last interval exceeded the target.
    #[inline]
    pub(crate) fn is_overloaded(&self) -> bool {
        self.overloaded
    }
}

#[cfg(test)]
mod tests;
