//! When a worker sends: where it stands in its plan, and what of the plan is still undone.

use crate::config::{LoadConfig, Phase, Rate};

/// The plan of a worker in one phase.
#[derive(Clone, Debug)]
pub(super) enum Pace {
    /// Each connection sends when its answer is there.
    Closed,
    /// Planned moments for whichever connection is free.
    Shared(Shared),
}

/// A place in a plan that all connections of a worker share.
#[derive(Clone, Debug)]
pub(super) struct Shared {
    next: Place,
    /// Another place, at or after `next`: up to where planned requests have been counted.
    counted: Place,
}

#[derive(Clone, Debug)]
struct Place {
    plan: Even,
    /// Planned requests before it.
    count: u64,
}

#[derive(Clone, Debug)]
struct Even {
    begin_ns: u64,
    position: u64,
    step: u64,
    gap_ns: f64,
}

impl Even {
    fn peek(&self) -> Option<u64> {
        Some(self.begin_ns + (self.position as f64 * self.gap_ns) as u64)
    }
    fn advance(&mut self) {
        self.position += self.step;
    }
}

impl Place {
    fn peek(&self) -> Option<u64> {
        self.plan.peek()
    }

    fn advance(&mut self) {
        self.plan.advance();
        self.count += 1;
    }
}

impl Pace {
    /// The plan of thread `thread` for a phase that begins, warm-up included, at `begin_ns`.
    pub(super) fn new(config: &LoadConfig, phase: &Phase, thread: usize, begin_ns: u64) -> Pace {
        let rate = match phase.rate {
            Rate::Closed => return Pace::Closed,
            Rate::Constant(rate) => rate,
            Rate::Ramp { from, .. } => from,
        };
        let next = Place {
            plan: Even {
                begin_ns,
                position: thread as u64,
                step: config.thread_count as u64,
                gap_ns: 1e9 / rate,
            },
            count: 0,
        };
        Pace::Shared(Shared { counted: next.clone(), next })
    }
}

impl Shared {
    /// The next planned moment.
    #[inline]
    pub(super) fn peek(&self) -> Option<u64> {
        self.next.peek()
    }

    /// Takes `count` planned moments.
    #[inline]
    pub(super) fn take(&mut self, count: usize) {
        for _ in 0..count {
            self.next.advance();
        }
    }

    /// How many requests were planned before `end_ns`, and how many of those were not taken.
    pub(super) fn count_before(&mut self, end_ns: u64) -> (u64, u64) {
        if self.counted.count < self.next.count {
            self.counted = self.next.clone();
        }
        while self.counted.peek().is_some_and(|at_ns| at_ns < end_ns) {
            self.counted.advance();
        }
        (self.counted.count, self.counted.count - self.next.count)
    }

    /// The planned moments before `end_ns` that were not taken.
    pub(super) fn undone_before(&self, end_ns: u64) -> impl Iterator<Item = u64> {
        let mut place = self.next.clone();
        std::iter::from_fn(move || {
            let at_ns = place.peek().filter(|at_ns| *at_ns < end_ns)?;
            place.advance();
            Some(at_ns)
        })
    }
}
