//! wrk2's schedule, in which each connection has its own plan, for `--arrival wrk2` and
//! `--wrk2-exact`.
//!
//! With R requests per second over t threads of c connections each, a connection makes `r = R / t /
//! c` requests per second from its start. The number of its responses decides which request is due:
//! a connection that waits for a response falls behind, and then sends at most at twice the rate
//! until it is back on its plan. Twice the rate counts from the first send behind the plan: after a
//! late response to a punctual request, all requests that became due in the meantime are sent at
//! once. Connections of a thread start 5 ms apart. wrk2's timer rounds waits up to full
//! milliseconds, and so does [`Wrk2Pace`] on request.

#[cfg(test)]
mod tests;

use std::time::Duration;

/// Rate of a connection that is behind, relative to its plan.
const CATCH_UP_FACTOR: f64 = 2.0;
const NS_PER_MS: u64 = 1_000_000;

/// Delay of the start of the connection with this index within its thread.
pub(crate) fn stagger(index_in_thread: usize) -> Duration {
    Duration::from_millis(5).saturating_mul(u32::try_from(index_in_thread).unwrap_or(u32::MAX))
}

/// The schedule of one connection. Times are in nanoseconds of one clock.
#[derive(Clone, Debug)]
pub(crate) struct Wrk2Pace {
    start_ns: u64,
    /// Nanoseconds from a request to the next.
    period_ns: f64,
    rounds_to_ms: bool,
    completed: u64,
    /// Time and number of responses at which the connection fell behind its plan.
    behind_since: Option<(u64, u64)>,
}

/// The next action of a connection without requests in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wrk2Step {
    /// Send; the corrected latency counts from `planned_ns`.
    Send { planned_ns: u64 },
    /// Wait until `until_ns`, which is later than now.
    Wait { until_ns: u64 },
}

impl Wrk2Pace {
    /// The schedule of a connection that starts at `start_ns` and makes `rate_per_connection`
    /// requests per second. With `rounds_to_ms` waits are rounded up as in wrk2, and never 0.
    pub(crate) fn new(rate_per_connection: f64, start_ns: u64, rounds_to_ms: bool) -> Wrk2Pace {
        Wrk2Pace {
            start_ns,
            period_ns: 1e9 / rate_per_connection,
            rounds_to_ms,
            completed: 0,
            behind_since: None,
        }
    }

    /// The action at `now_ns`. Requires that no request is in flight.
    pub(crate) fn next_step(&mut self, now_ns: u64) -> Wrk2Step {
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
        Wrk2Step::Send { planned_ns: self.planned_ns(self.completed) }
    }

    /// Counts responses: all of a pipelined batch, or single ones.
    pub(crate) fn complete(&mut self, count: u64) {
        self.completed += count;
    }

    pub(crate) fn planned_before(&self, before_ns: u64) -> u64 {
        let since_start_ns = before_ns.saturating_sub(self.start_ns);
        (since_start_ns as f64 / self.period_ns).ceil() as u64
    }

    pub(crate) fn completed(&self) -> u64 {
        self.completed
    }

    pub(crate) fn planned_ns(&self, index: u64) -> u64 {
        after(self.start_ns, index, self.period_ns)
    }

    /// Calls `show` with the planned times number `taken` and following within `from_ns..to_ns`, as
    /// [`super::left::each`].
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

    fn wait(&self, now_ns: u64, due_ns: u64) -> Wrk2Step {
        let wait_ns = due_ns - now_ns;
        let wait_ns =
            if self.rounds_to_ms { (wait_ns / NS_PER_MS + 1) * NS_PER_MS } else { wait_ns };
        Wrk2Step::Wait { until_ns: now_ns.saturating_add(wait_ns) }
    }
}

fn after(start_ns: u64, count: u64, period_ns: f64) -> u64 {
    // At a rate of 0 the period is infinite, and 0 * infinity is NaN.
    let since_start_ns = if count == 0 { 0.0 } else { count as f64 * period_ns };
    start_ns.saturating_add(since_start_ns as u64)
}
