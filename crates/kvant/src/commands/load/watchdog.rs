//! `--abort-on-fail`: checks assertions during the load; the first broken one ends it.
//!
//! Assertions that bound failures or latencies from above are checked each second on the phase so
//! far, all others at the end of the phase.

use super::facts::Done;
use super::judgement::Judge;
use kvant_load::assertion::Assertion;
use kvant_load::units::format_time_ns;
use kvant_load::{Interval, OpNames, Outcome, Phase};

pub(super) struct Watchdog<'a> {
    asserts: &'a [Assertion],
    so_far: Option<Outcome>,
    baseline: Option<Outcome>,
    /// The first broken assertion, in words.
    broken: Option<String>,
}

impl<'a> Watchdog<'a> {
    pub(super) fn new(asserts: &'a [Assertion]) -> Watchdog<'a> {
        Watchdog { asserts, so_far: None, baseline: None, broken: None }
    }

    /// Starts a phase.
    pub(super) fn begin(&mut self, phase: &Phase, judge: &Judge<'_>) {
        self.baseline = judge.baseline(phase.rate);
        self.so_far = Some(Outcome { phase: *phase, ..Outcome::default() });
    }

    /// Adds a second of the phase; returns whether an assertion is broken.
    pub(super) fn is_broken_by(&mut self, second: &Interval, ops: &OpNames) -> bool {
        if self.has_broken() {
            // What ends the load is not taken back by the requests that were in flight.
            return true;
        }
        let Some(so_far) = &mut self.so_far else {
            return false;
        };
        so_far.total.add(second);
        so_far.measured_ns = second.end_ns;
        so_far.total.name_ops(ops.all());
        let early = self.asserts.iter().filter(|assertion| assertion.is_known_early());
        let broken = early
            .map(|assertion| assertion.check(so_far, self.baseline.as_ref()))
            .find(|checked| !checked.is_met && checked.undecided.is_none());
        self.broken =
            broken.map(|checked| format!("{checked} after {}", format_time_ns(second.end_ns)));
        self.broken.is_some()
    }

    /// Checks a completed phase; returns the broken assertion, in words.
    pub(super) fn broken(&mut self, done: &Done, judge: &Judge<'_>) -> Option<&str> {
        if self.broken.is_none() {
            let baseline = judge.baseline(done.outcome.phase.rate);
            self.broken = self
                .asserts
                .iter()
                .map(|assertion| assertion.check(&done.outcome, baseline.as_ref()))
                .find(|checked| !checked.is_met)
                .map(|checked| checked.to_string());
        }
        self.broken.as_deref()
    }

    pub(super) fn has_broken(&self) -> bool {
        self.broken.is_some()
    }
}

#[cfg(test)]
mod tests;
