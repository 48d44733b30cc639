//! When a worker sends: its position in the plan, and the planned requests that are unsent.
//!
//! Times are those of the clock; plans count from the beginning of the phase.

use crate::config::{Arrival, LoadConfig, Phase, Rate};
use crate::plan::{Plan, Wrk2Pace, stagger};

#[derive(Default)]
#[expect(clippy::large_enum_variant, reason = "a worker has one")]
pub(super) enum Pace {
    /// Each connection sends when it has its response.
    #[default]
    Closed,
    /// Planned times for any free connection.
    Shared(SharedPace),
    Private(Vec<Wrk2Pace>),
}

pub(super) struct SharedPace {
    plan: Plan,
    begin_ns: u64,
    /// The next planned time; `u64::MAX` if there is none.
    next_ns: u64,
    /// Requests planned before the measured time.
    before_measured: u64,
}

impl Pace {
    /// The plan of thread `thread` with `connection_count` connections for the phase number
    /// `phase_number`, which begins, warm-up included, at `begin_ns`.
    pub(super) fn new(
        config: &LoadConfig,
        phase: &Phase,
        phase_number: u64,
        thread: usize,
        connection_count: usize,
        begin_ns: u64,
    ) -> Pace {
        let rate = match phase.rate {
            Rate::Closed => return Pace::Closed,
            Rate::Constant(rate) | Rate::Ramp { from: rate, .. } => rate,
        };
        if config.arrival == Arrival::Wrk2 || config.wrk2_exact {
            return Pace::private(config, rate, thread, connection_count, begin_ns);
        }
        // A seed of its own, or random arrivals would have the same bursts in every phase.
        let seed = config.seed.wrapping_add(phase_number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let plan = Plan::new(
            phase.rate,
            phase.warmup,
            phase.duration,
            config.arrival,
            seed,
            thread,
            config.thread_count,
        );
        let mut shared = SharedPace { plan, begin_ns, next_ns: 0, before_measured: 0 };
        shared.update_next();
        Pace::Shared(shared)
    }

    /// Each connection has the same share of the rate. With `wrk2_exact` they start 5 ms apart,
    /// otherwise evenly spaced within one period, so that all requests together are evenly spaced.
    fn private(
        config: &LoadConfig,
        rate: f64,
        thread: usize,
        connection_count: usize,
        begin_ns: u64,
    ) -> Pace {
        let is_exact = config.wrk2_exact;
        let own_rate = if is_exact {
            rate / config.thread_count as f64 / connection_count as f64
        } else {
            rate / config.connection_count as f64
        };
        let start_ns = |index: usize| {
            let after_ns = if is_exact {
                stagger(index).as_nanos() as u64
            } else {
                ((thread + index * config.thread_count) as f64 * 1e9 / rate) as u64
            };
            begin_ns.saturating_add(after_ns)
        };
        let paces =
            (0..connection_count).map(|index| Wrk2Pace::new(own_rate, start_ns(index), is_exact));
        Pace::Private(paces.collect())
    }

    pub(super) fn begin_measuring(&mut self, at_ns: u64) {
        if let Pace::Shared(shared) = self {
            shared.before_measured = shared.planned_before(at_ns);
        }
    }

    /// The number of unsent requests planned before `at_ns`. The measured time began at
    /// `measured_ns`; `in_flight` returns the requests in flight on a connection.
    pub(super) fn unsent_before(
        &mut self,
        measured_ns: u64,
        at_ns: u64,
        in_flight: impl Fn(usize) -> u64,
    ) -> Unsent {
        let mut sum = Unsent::default();
        // Requests are sent in planned order, so that the unsent ones are the last.
        let mut add = |planned: u64, before_measured: u64, sent: u64| {
            let total = planned.saturating_sub(sent);
            sum.total += total;
            sum.measured += total.min(planned.saturating_sub(before_measured));
        };
        match self {
            Pace::Closed => {}
            Pace::Shared(shared) => {
                let planned = shared.planned_before(at_ns);
                add(planned, shared.before_measured, shared.plan.taken());
            }
            Pace::Private(paces) => {
                for (index, pace) in paces.iter().enumerate() {
                    let sent = pace.completed() + in_flight(index);
                    add(pace.planned_before(at_ns), pace.planned_before(measured_ns), sent);
                }
            }
        }
        sum
    }

    /// Calls `show` with each time within `from_ns..to_ns` for which unsent requests were planned,
    /// and their number. Times whose ages at `to_ns` fall into one bucket of a histogram may be
    /// shown as one.
    pub(super) fn each_unsent(
        &self,
        from_ns: u64,
        to_ns: u64,
        in_flight: impl Fn(usize) -> u64,
        mut show: impl FnMut(u64, u64),
    ) {
        match self {
            Pace::Closed => {}
            Pace::Shared(shared) => {
                let begin_ns = shared.begin_ns;
                let (from_ns, to_ns) =
                    (from_ns.saturating_sub(begin_ns), to_ns.saturating_sub(begin_ns));
                shared.plan.each_left(from_ns, to_ns, |at_ns, count| show(at_ns + begin_ns, count));
            }
            Pace::Private(paces) => {
                for (index, pace) in paces.iter().enumerate() {
                    let sent = pace.completed() + in_flight(index);
                    pace.each_left(sent, from_ns, to_ns, &mut show);
                }
            }
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Unsent {
    /// Planned in the measured time.
    pub(super) measured: u64,
    /// Including the warm-up.
    pub(super) total: u64,
}

impl SharedPace {
    fn update_next(&mut self) {
        let next_ns = self.plan.peek_ns();
        self.next_ns = next_ns.map_or(u64::MAX, |next_ns| next_ns.saturating_add(self.begin_ns));
    }

    fn planned_before(&mut self, at_ns: u64) -> u64 {
        self.plan.planned_before(at_ns.saturating_sub(self.begin_ns))
    }

    /// The next planned time; `u64::MAX` if there is none.
    #[inline]
    pub(super) fn next_ns(&self) -> u64 {
        self.next_ns
    }

    #[inline]
    pub(super) fn take(&mut self, count: usize) {
        for _ in 0..count {
            self.plan.advance();
        }
        self.update_next();
    }
}

#[cfg(test)]
mod tests;
