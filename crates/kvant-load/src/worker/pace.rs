//! When a worker sends: where it stands in its plan, and what of the plan is still undone.
//!
//! Times are those of the clock; plans count from the begin of the phase.

use crate::config::{Arrival, LoadConfig, Phase, Rate};
use crate::plan::{Plan, Wrk2Pace, stagger};

/// The plan of a worker in one phase.
#[expect(clippy::large_enum_variant, reason = "a worker has one")]
pub(super) enum Pace {
    /// Each connection sends when its answer is there.
    Closed,
    /// Planned moments for whichever connection is free.
    Shared(Shared),
    /// By connection: its own plan.
    Private(Vec<Wrk2Pace>),
}

/// A plan that all connections of a worker share.
pub(super) struct Shared {
    plan: Plan,
    begin_ns: u64,
    /// The next planned moment; `u64::MAX` when there is none.
    next_ns: u64,
    /// Planned before the measured time.
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
        // Phases differ in their random arrivals, or each step would have the same bursts.
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
        Pace::Shared(Shared::new(plan, begin_ns))
    }

    /// Each connection has the same part of the rate. As wrk2 does it they start 5 ms apart; where
    /// that is not asked for, they start at even distances within one period, so that together they
    /// are evenly spaced.
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

    /// What is planned from now on belongs to the measured time, which begins at `at_ns`.
    pub(super) fn begin_measuring(&mut self, at_ns: u64) {
        if let Pace::Shared(shared) = self {
            shared.before_measured = shared.planned_before(at_ns);
        }
    }

    /// Planned requests before `at_ns` that were not sent: of the measured time, which began at
    /// `measured_ns`, and of all. `in_flight` are those of a connection.
    pub(super) fn undone_before(
        &mut self,
        measured_ns: u64,
        at_ns: u64,
        in_flight: impl Fn(usize) -> u64,
    ) -> Undone {
        let mut sum = Undone::default();
        // What is planned is sent in its order: what is undone is the end of it.
        let mut add = |planned: u64, before_measured: u64, taken: u64| {
            let of_all = planned.saturating_sub(taken);
            sum.of_all += of_all;
            sum.of_measured += of_all.min(planned.saturating_sub(before_measured));
        };
        match self {
            Pace::Closed => {}
            Pace::Shared(shared) => {
                let planned = shared.planned_before(at_ns);
                add(planned, shared.before_measured, shared.plan.taken());
            }
            Pace::Private(paces) => {
                for (index, pace) in paces.iter().enumerate() {
                    let taken = pace.completed() + in_flight(index);
                    add(pace.planned_before(at_ns), pace.planned_before(measured_ns), taken);
                }
            }
        }
        sum
    }

    /// Shows the planned moments within `from_ns..to_ns` that were not sent, with how many there
    /// are. Where they are many, moments whose ages at `to_ns` no histogram tells apart are shown
    /// as one.
    pub(super) fn each_undone(
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
                    let taken = pace.completed() + in_flight(index);
                    pace.each_left(taken, from_ns, to_ns, &mut show);
                }
            }
        }
    }
}

/// How many planned requests were not sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Undone {
    /// Of those of the measured time.
    pub(super) of_measured: u64,
    /// Of those of the warm-up too.
    pub(super) of_all: u64,
}

impl Shared {
    fn new(plan: Plan, begin_ns: u64) -> Shared {
        let mut shared = Shared { plan, begin_ns, next_ns: 0, before_measured: 0 };
        shared.look();
        shared
    }

    fn look(&mut self) {
        let next_ns = self.plan.peek_ns();
        self.next_ns = next_ns.map_or(u64::MAX, |next_ns| next_ns.saturating_add(self.begin_ns));
    }

    fn planned_before(&mut self, at_ns: u64) -> u64 {
        self.plan.planned_before(at_ns.saturating_sub(self.begin_ns))
    }

    /// The next planned moment; `u64::MAX` when there is none.
    #[inline]
    pub(super) fn next_ns(&self) -> u64 {
        self.next_ns
    }

    /// Takes `count` planned moments.
    #[inline]
    pub(super) fn take(&mut self, count: usize) {
        for _ in 0..count {
            self.plan.advance();
        }
        self.look();
    }
}

#[cfg(test)]
mod tests;
