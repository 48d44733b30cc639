//! The planned times of requests, from rates and ramps.
//!
//! All threads follow one plan. With uniform arrivals its positions are numbered, and thread `t` of
//! `T` takes `t`, `t + T`, ...: intervals are equal for any number of threads, and no request is
//! lost to a division. With Poisson arrivals each thread has its own process, as the sum of Poisson
//! processes is one.
//!
//! Invariants:
//! 1. Planned times never decrease and lie before the end of the phase.
//! 2. The time of a position is computed from its number, not from the previous time: errors do not
//!    accumulate.
//! 3. With uniform arrivals exactly `rate * duration` requests are planned (rounded up), and for
//!    the warm-up likewise.
//!
//! Threads: each worker owns its plan.

mod curve;
mod left;
#[cfg(test)]
mod tests;
mod wrk2;

pub(crate) use wrk2::{Wrk2Pace, Wrk2Step, stagger};

use crate::config::{Arrival, Rate};
use curve::Curve;
use kvant_base::duration::ns;
use kvant_env::rng::Rng;
use std::time::Duration;

/// The planned times of one thread for one phase, in nanoseconds since the phase began: first the
/// warm-up, then the measured time.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    taker: Process,
    /// Counts ahead of `taker` if counting takes steps.
    scout: Process,
}

impl Plan {
    /// The plan of thread `thread_index` of `thread_count`. A warm-up has the rate at the start of
    /// the measured time.
    ///
    /// A closed loop has an empty plan. For [`Arrival::Wrk2`] the plan is uniform, and [`Wrk2Pace`]
    /// decides when to send. Phases with the same seed have the same random arrivals.
    pub(crate) fn new(
        rate: Rate,
        warmup: Duration,
        duration: Duration,
        arrival: Arrival,
        seed: u64,
        thread_index: usize,
        thread_count: usize,
    ) -> Plan {
        let (from, to) = match rate {
            Rate::Closed => (0.0, 0.0),
            Rate::Constant(rate) => (rate, rate),
            Rate::Ramp { from, to } => (from, to),
        };
        let warmup_ns = ns(warmup);
        let phase = PhaseCurve {
            warmup: Curve::new(0, warmup_ns, from, from),
            measured: Curve::new(warmup_ns, warmup_ns.saturating_add(ns(duration)), from, to),
        };
        let thread_index = thread_index as u64;
        let arrivals = match arrival {
            Arrival::Uniform | Arrival::Wrk2 => Arrivals::Even { next_position: thread_index },
            Arrival::Poisson => Arrivals::Poisson {
                // Hashing makes the sequences of neighbouring seeds independent.
                rng: Rng::new(
                    Rng::new(seed ^ thread_index.wrapping_mul(0xd134_2543_de82_ef95)).next_u64(),
                ),
                at: 0.0,
            },
        };
        let taker = Process::new(phase, arrivals, thread_index, thread_count as u64);
        Plan { scout: taker.clone(), taker }
    }

    /// The planned time of the next request; `None` at the end of the plan.
    pub(crate) fn peek_ns(&self) -> Option<u64> {
        self.taker.next_ns
    }

    pub(crate) fn advance(&mut self) {
        self.taker.advance();
    }

    /// How many requests [`Plan::advance`] has taken.
    pub(crate) fn taken(&self) -> u64 {
        self.taker.taken
    }

    /// How many requests of this thread are planned before `before_ns`, taken or not; the backlog
    /// is this less [`Plan::taken`]. `before_ns` must not decrease from call to call. Takes
    /// constant time with uniform arrivals, else a step for each request since the last call.
    pub(crate) fn planned_before(&mut self, before_ns: u64) -> u64 {
        match self.scout.arrivals {
            Arrivals::Even { .. } => self.scout.even_before(before_ns),
            Arrivals::Poisson { .. } => {
                // Requests that were taken need not be counted again.
                if self.scout.taken < self.taker.taken {
                    self.scout = self.taker.clone();
                }
                while self.scout.next_ns.is_some_and(|next_ns| next_ns < before_ns) {
                    self.scout.advance();
                }
                self.scout.taken
            }
        }
    }

    /// Calls `show` with the untaken planned times within `from_ns..to_ns`, as [`left::each`].
    pub(crate) fn each_left(&self, from_ns: u64, to_ns: u64, mut show: impl FnMut(u64, u64)) {
        match self.taker.arrivals {
            Arrivals::Even { .. } => {
                let count_before = |at_ns| self.taker.even_before(at_ns);
                let time_of_ns = |number: u64| {
                    let position = self.taker.thread_index + number * self.taker.thread_count;
                    self.taker.phase.time_of_position_ns(position)
                };
                left::each(self.taken(), from_ns, to_ns, count_before, time_of_ns, show);
            }
            Arrivals::Poisson { .. } => {
                let mut process = self.taker.clone();
                while let Some(next_ns) = process.next_ns.filter(|next_ns| *next_ns < to_ns) {
                    if next_ns >= from_ns {
                        show(next_ns, 1);
                    }
                    process.advance();
                }
            }
        }
    }
}

#[derive(Clone, Debug)]
struct Process {
    phase: PhaseCurve,
    arrivals: Arrivals,
    thread_index: u64,
    thread_count: u64,
    next_ns: Option<u64>,
    taken: u64,
}

#[derive(Clone, Debug)]
enum Arrivals {
    /// At whole numbers of requests.
    Even { next_position: u64 },
    /// At exponentially distributed intervals, measured in requests of all threads.
    Poisson { rng: Rng, at: f64 },
}

impl Process {
    fn new(phase: PhaseCurve, arrivals: Arrivals, thread_index: u64, thread_count: u64) -> Process {
        assert!(thread_index < thread_count, "a thread is one of all");
        let mut process =
            Process { phase, arrivals, thread_index, thread_count, next_ns: None, taken: 0 };
        process.draw();
        process
    }

    fn advance(&mut self) {
        if self.next_ns.is_none() {
            return;
        }
        self.taken += 1;
        if let Arrivals::Even { next_position } = &mut self.arrivals {
            *next_position += self.thread_count;
        }
        self.draw();
    }

    /// Computes the next planned time; draws a random interval if needed.
    fn draw(&mut self) {
        self.next_ns = match &mut self.arrivals {
            Arrivals::Even { next_position } => self.phase.time_of_position_ns(*next_position),
            Arrivals::Poisson { rng, at } => {
                *at += exponential(rng) * self.thread_count as f64;
                self.phase.time_at_ns(*at)
            }
        };
    }

    /// How many of this thread's positions are planned before `before_ns`.
    fn even_before(&self, before_ns: u64) -> u64 {
        let of_all = self.phase.positions_before(before_ns);
        match of_all.checked_sub(self.thread_index) {
            Some(after_first) => after_first.div_ceil(self.thread_count),
            None => 0,
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct PhaseCurve {
    warmup: Curve,
    measured: Curve,
}

impl PhaseCurve {
    fn time_of_position_ns(&self, position: u64) -> Option<u64> {
        match position.checked_sub(self.warmup.count()) {
            None => Some(self.warmup.time_of_ns(position as f64)),
            Some(position) if position < self.measured.count() => {
                Some(self.measured.time_of_ns(position as f64))
            }
            Some(_) => None,
        }
    }

    /// The time of request `at`, which may be fractional.
    fn time_at_ns(&self, at: f64) -> Option<u64> {
        let of_measured = at - self.warmup.total();
        if of_measured < 0.0 {
            Some(self.warmup.time_of_ns(at))
        } else {
            (of_measured < self.measured.total()).then(|| self.measured.time_of_ns(of_measured))
        }
    }

    fn positions_before(&self, before_ns: u64) -> u64 {
        self.warmup.positions_before(before_ns) + self.measured.positions_before(before_ns)
    }
}

/// An exponentially distributed number with mean 1.
fn exponential(rng: &mut Rng) -> f64 {
    // 53 bits, and never 0.
    let uniform = ((rng.next_u64() >> 11) + 1) as f64 / (1u64 << 53) as f64;
    -uniform.ln()
}
