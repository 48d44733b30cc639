//! Admission to a selector that does storage work itself: its own lag is the queue.
//!
//! A request's lag is the time from the beginning of the turn in which the selector saw it until
//! the selector serves it. A turn is one observation of the queue, and its wait is the lag of the
//! turn's last request: the first has none, however long the turn is.
//!
//! Threads: belongs to one selector.

use super::codel::Codel;
use super::cost::Cost;
use super::{Class, INTERVAL_NS, Refusal, Refusals, TARGET_NS};
use crate::config::{Overload, ServerConfig};
use kvant_base::duration;
use std::cell::Cell;
use std::sync::Arc;

/// Storage work below this is not worth refusing: reading a request and responding `503` takes
/// about 5 us, so refusing a class that costs less than ten times that saves the selector little.
const COSTLY_NS: u64 = 50_000;

pub(crate) struct Lag {
    adaptive: bool,
    queue_wait_max_ns: u64,
    refusals: Arc<Refusals>,
    codel: Cell<Codel>,
    /// When the current turn began, and its longest lag.
    turn_ns: Cell<u64>,
    turn_lag_ns: Cell<u64>,
    /// What a request of each class costs here.
    costs: [Cell<Cost>; Class::COUNT],
}

impl Lag {
    pub(crate) fn new(config: &ServerConfig, refusals: Arc<Refusals>) -> Lag {
        Lag {
            adaptive: config.overload == Overload::Adaptive,
            queue_wait_max_ns: duration::ns(config.queue_wait_max),
            refusals,
            codel: Cell::default(),
            turn_ns: Cell::default(),
            turn_lag_ns: Cell::default(),
            costs: Default::default(),
        }
    }

    /// Whether to refuse a request that is about to be done here, `lag_ns` after its turn of the
    /// event loop began. Counts refusals. Called for every request of the three classes, so that
    /// the lag is known.
    #[inline]
    pub(crate) fn admit(&self, class: Class, lag_ns: u64, now_ns: u64) -> Option<Refusal> {
        let turn_ns = now_ns.saturating_sub(lag_ns);
        if turn_ns != self.turn_ns.get() {
            self.begin_turn(turn_ns);
        }
        self.turn_lag_ns.set(self.turn_lag_ns.get().max(lag_ns));
        let refusal = if lag_ns > self.queue_wait_max_ns {
            Refusal::WaitedTooLong
        } else if self.adaptive
            && lag_ns > TARGET_NS
            && self.codel.get().is_overloaded()
            && self.is_costly(class)
        {
            Refusal::Overloaded
        } else {
            return None;
        };
        self.refusals.add(class, refusal, 1, now_ns);
        Some(refusal)
    }

    /// Counts a request that other machines have no room for.
    #[cold]
    pub(crate) fn note_nodes_busy(&self, class: Class, now_ns: u64) -> Refusal {
        self.refusals.add(class, Refusal::NodesBusy, 1, now_ns);
        Refusal::NodesBusy
    }

    fn begin_turn(&self, turn_ns: u64) {
        let last_lag_ns = self.turn_lag_ns.replace(0);
        let last_end_ns = self.turn_ns.replace(turn_ns) + last_lag_ns;
        let mut codel = self.codel.get();
        // A turn may be longer than the interval: a single one is no overload.
        let interval_ns = INTERVAL_NS.max(2 * last_lag_ns);
        codel.observe(last_lag_ns, TARGET_NS, interval_ns, last_end_ns);
        // The selector was idle in between: no request waited.
        let was_idle = turn_ns.saturating_sub(last_end_ns) > TARGET_NS;
        self.codel.set(if was_idle { Codel::default() } else { codel });
    }

    #[inline]
    pub(crate) fn note_cost(&self, class: Class, storage_ns: u64) {
        let cell = &self.costs[class as usize];
        let mut cost = cell.get();
        cost.note(storage_ns);
        cell.set(cost);
    }

    fn is_costly(&self, class: Class) -> bool {
        self.costs[class as usize].get().ns() >= COSTLY_NS
    }
}

#[cfg(test)]
mod tests;
