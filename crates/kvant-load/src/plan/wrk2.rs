//! wrk2's schedule: each connection has a plan of its own, made for `--arrival wrk2` and
//! `--wrk2-exact`.
//!
//! With R requests a second over t threads of c connections each, a connection is to make `r = R /
//! t / c` a second from the moment it starts. What is due is decided by the number of answers it
//! has had, so that one that waits for an answer falls behind; then it sends at most at twice the
//! rate until it is back on its plan. Twice the rate counts from the last send for which the
//! connection had not to wait any more: after a late answer to a punctual request all is sent at
//! once that was due in the meantime. Connections of a thread start 5 ms apart. wrk2 waits by a
//! timer of 1 ms that is rounded up, which [`Wrk2Pace`] does too when it is asked for.

#[cfg(test)]
mod tests;

use std::time::Duration;

/// How much faster than the plan a connection may be that is behind.
const CATCH_UP_FACTOR: f64 = 2.0;
const NS_PER_MS: u64 = 1_000_000;

/// How long after its thread the connection with this index within the thread starts.
pub(crate) fn stagger(index_in_thread: usize) -> Duration {
    Duration::from_millis(5).saturating_mul(u32::try_from(index_in_thread).unwrap_or(u32::MAX))
}

/// Tells one connection when to send. Times are in nanoseconds of any one clock.
#[derive(Clone, Debug)]
pub(crate) struct Wrk2Pace {
    start_ns: u64,
    /// Nanoseconds from a request to the next.
    period_ns: f64,
    rounds_to_ms: bool,
    completed: u64,
    /// Since when, and since how many answers, the connection has been behind its plan.
    behind_since: Option<(u64, u64)>,
}

/// What a connection without a request in flight does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pace {
    /// Send; the corrected latency counts from `planned_ns`.
    Send {
        /// When the request was due.
        planned_ns: u64,
    },
    /// Ask again at `until_ns`, which is later than now.
    Wait {
        /// The end of the wait.
        until_ns: u64,
    },
}

impl Wrk2Pace {
    /// The plan of a connection that starts at `start_ns` and is to make `rate_per_connection`
    /// requests a second. `rounds_to_ms`: waits are full milliseconds and never 0, as wrk2's.
    pub(crate) fn new(rate_per_connection: f64, start_ns: u64, rounds_to_ms: bool) -> Wrk2Pace {
        Wrk2Pace {
            start_ns,
            period_ns: 1e9 / rate_per_connection,
            rounds_to_ms,
            completed: 0,
            behind_since: None,
        }
    }

    /// Whether the connection may send at `now_ns`; to be asked only when nothing is in flight.
    pub(crate) fn ask(&mut self, now_ns: u64) -> Pace {
        let due_ns = self.planned_ns(self.completed);
        if due_ns > now_ns {
            self.behind_since = None;
            return self.wait(now_ns, due_ns);
        }
        let (since_ns, completed_then) = *self.behind_since.get_or_insert((now_ns, self.completed));
        let period_ns = self.period_ns / CATCH_UP_FACTOR;
        let due_ns = after(since_ns, self.completed - completed_then, period_ns);
        if due_ns > now_ns {
            return self.wait(now_ns, due_ns);
        }
        Pace::Send { planned_ns: self.planned_ns(self.completed) }
    }

    /// `count` answers have come: all of a pipelined batch, or one by one.
    pub(crate) fn complete(&mut self, count: u64) {
        self.completed += count;
    }

    /// How many requests are planned before `before_ns`.
    pub(crate) fn planned_before(&self, before_ns: u64) -> u64 {
        let since_start_ns = before_ns.saturating_sub(self.start_ns);
        (since_start_ns as f64 / self.period_ns).ceil() as u64
    }

    /// How many answers have come.
    pub(crate) fn completed(&self) -> u64 {
        self.completed
    }

    /// When the request number `index` is planned.
    pub(crate) fn planned_ns(&self, index: u64) -> u64 {
        after(self.start_ns, index, self.period_ns)
    }

    /// Shows the planned moments number `taken` and following within `from_ns..to_ns`, with how
    /// many there are; many as one.
    pub(crate) fn each_left(
        &self,
        taken: u64,
        from_ns: u64,
        to_ns: u64,
        show: impl FnMut(u64, u64),
    ) {
        let count_before = |at_ns| self.planned_before(at_ns);
        let time_of_ns = |number| Some(self.planned_ns(number));
        super::left::each(taken, from_ns, to_ns, count_before, time_of_ns, show);
    }

    fn wait(&self, now_ns: u64, due_ns: u64) -> Pace {
        let wait_ns = due_ns - now_ns;
        let wait_ns =
            if self.rounds_to_ms { (wait_ns / NS_PER_MS + 1) * NS_PER_MS } else { wait_ns };
        Pace::Wait { until_ns: now_ns.saturating_add(wait_ns) }
    }
}

fn after(start_ns: u64, count: u64, period_ns: f64) -> u64 {
    // Without the first case, nothing at a rate of 0 would be at no time at all.
    let since_start_ns = if count == 0 { 0.0 } else { count as f64 * period_ns };
    start_ns.saturating_add(since_start_ns as u64)
}
