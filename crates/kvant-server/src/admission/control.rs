//! Adaptive admission to the queue, for one class of requests (`--overload adaptive`).
//!
//! The limit is a time, not a length: a request is admitted when the work before it, at the
//! measured cost of each class, takes no longer than the target. So the limit follows the measured
//! latency in either direction, and a request admitted during overload waits for about the target,
//! whatever the load.
//!
//! A server that is not overloaded admits what it can do within an interval, because a burst that
//! drains within it does no harm. Overload begins when more arrives, or when the queue has stood
//! above the target for an interval ([`Codel`]). It ends when few requests were refused for some
//! intervals, or when all requests of these intervals were half of what can be done.
//!
//! Work may become slower after a request was admitted. Such requests are given up before they are
//! done: half of the requests too late is better than all of them.
//!
//! Target and interval grow with slow work: a target shorter than two rounds of work would leave
//! workers idle.
//!
//! Pure: no clock, no threads; every call passes the time.

use super::codel::Codel;
use super::cost::Cost;
use super::{INTERVAL_NS, TARGET_NS};

/// Overload goes on while at least one in so many requests is refused,
const REFUSED_ONE_IN: u64 = 20;
/// counted over so many intervals: a slight overload causes few refusals in a single one.
const WINDOW_INTERVALS: u64 = 5;

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Control {
    cost: Cost,
    codel: Codel,
    overloaded: bool,
    last_refusal_ns: u64,
    window: Window,
    worker_count: u64,
}

/// The requests since `start_ns`.
#[derive(Clone, Copy, Debug, Default)]
struct Window {
    start_ns: u64,
    offered: u64,
    refused: u64,
}

impl Control {
    /// The control of a class that `worker_count` workers may do at once.
    pub(crate) fn of_workers(worker_count: usize) -> Control {
        Control { worker_count: worker_count as u64, ..Control::default() }
    }

    #[inline]
    pub(crate) fn note_cost(&mut self, cost_ns: u64) {
        self.cost.note(cost_ns);
    }

    /// What a request costs a worker; 0 while that is unknown.
    #[inline]
    pub(crate) fn cost_ns(&self) -> u64 {
        self.cost.ns()
    }

    /// Whether more requests of the class arrive than can be done.
    #[inline]
    pub(crate) fn is_overloaded(&self) -> bool {
        self.overloaded
    }

    fn target_ns(&self) -> u64 {
        TARGET_NS.max(2 * self.cost.ns())
    }

    fn interval_ns(&self) -> u64 {
        INTERVAL_NS.max(2 * self.target_ns())
    }

    /// Whether requests that would wait for about `wait_ns` are admitted; never beyond
    /// `wait_max_ns`.
    #[inline]
    pub(crate) fn admit(
        &mut self,
        request_count: usize,
        wait_ns: u64,
        wait_max_ns: u64,
        now_ns: u64,
    ) -> bool {
        self.turn_window(now_ns);
        self.window.offered += request_count as u64;
        let adaptive_max_ns = match self.overloaded {
            true => self.target_ns(),
            false => self.interval_ns(),
        };
        if wait_ns <= adaptive_max_ns.min(wait_max_ns) {
            return true;
        }
        self.refused(request_count, now_ns);
        false
    }

    /// Whether to give up a request that has waited for `waited_ns`.
    #[inline]
    pub(crate) fn gives_up(&self, waited_ns: u64) -> bool {
        let target_ns = self.target_ns();
        self.overloaded
            && (waited_ns > 2 * target_ns || waited_ns > target_ns && self.codel.is_overloaded())
    }

    /// Notes requests that were given up after [`Control::admit`] had admitted them.
    pub(crate) fn gave_up(&mut self, request_count: usize, now_ns: u64) {
        self.turn_window(now_ns);
        self.refused(request_count, now_ns);
    }

    fn refused(&mut self, request_count: usize, now_ns: u64) {
        self.begin_overload(now_ns);
        self.window.refused += request_count as u64;
        self.last_refusal_ns = now_ns;
    }

    #[inline]
    fn begin_overload(&mut self, now_ns: u64) {
        if !self.overloaded {
            self.overloaded = true;
            self.last_refusal_ns = now_ns;
            // Earlier requests say nothing about the overload.
            self.window = Window::begin(now_ns);
        }
    }

    /// Notes the wait of a job that leaves the queue, done or given up.
    #[inline]
    pub(crate) fn left(&mut self, waited_ns: u64, now_ns: u64) {
        let (target_ns, interval_ns) = (self.target_ns(), self.interval_ns());
        self.codel.observe(waited_ns, target_ns, interval_ns, now_ns);
        if self.codel.is_overloaded() {
            self.begin_overload(now_ns);
        }
    }

    #[inline]
    fn turn_window(&mut self, now_ns: u64) {
        let window_ns = WINDOW_INTERVALS * self.interval_ns();
        if now_ns.saturating_sub(self.window.start_ns) < window_ns {
            return;
        }
        let few_refused = self.window.refused * REFUSED_ONE_IN < self.window.offered;
        // Bursts that would have been done in time, had they been admitted, are no overload.
        let asked_ns = self.window.offered * self.cost.ns() / self.worker_count.max(1);
        let fits = asked_ns < window_ns / 2 && !self.codel.is_overloaded();
        if few_refused || fits || now_ns.saturating_sub(self.last_refusal_ns) >= window_ns {
            self.overloaded = false;
        }
        self.window = Window::begin(now_ns);
    }
}

impl Window {
    fn begin(now_ns: u64) -> Window {
        Window { start_ns: now_ns, ..Window::default() }
    }
}

#[cfg(test)]
mod tests;
