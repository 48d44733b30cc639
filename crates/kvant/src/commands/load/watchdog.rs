//! `--abort-on-fail`: assertions are looked at while the load goes on, and the first that is broken
//! ends it.
//!
//! Each second those are held against what the phase has come to so far that bound failures or
//! latencies from above; the others say something at the end of a phase only.

use super::facts::Done;
use super::judgement::Judge;
use kvant_base::Result;
use kvant_load::assertion::Assertion;
use kvant_load::histogram::Histogram;
use kvant_load::units::format_time_ns;
use kvant_load::{Interval, OpNames, Outcome, Phase};

/// Looks for broken assertions.
pub(super) struct Watchdog<'a> {
    asserts: &'a [Assertion],
    /// The phase that runs, as far as it has come.
    so_far: Option<Outcome>,
    baseline: Option<Outcome>,
    /// What was found broken.
    broken: Option<String>,
}

impl<'a> Watchdog<'a> {
    pub(super) fn new(asserts: &'a [Assertion]) -> Watchdog<'a> {
        Watchdog { asserts, so_far: None, baseline: None, broken: None }
    }

    /// A phase begins.
    ///
    /// # Errors
    /// `Invalid`: a histogram of the baseline cannot be read.
    pub(super) fn begin(&mut self, phase: &Phase, judge: &Judge<'_>) -> Result<()> {
        self.baseline = judge.baseline(phase.rate)?;
        self.so_far = Some(Outcome {
            phase: *phase,
            start_wall_ms: 0,
            measured_ns: 0,
            op_names: Vec::new(),
            total: Interval::default(),
            seconds: Vec::new(),
            backlog: 0,
            in_flight: 0,
            unanswered: Histogram::new(),
            threads: Vec::new(),
            machine: None,
            is_cut_short: false,
        });
        Ok(())
    }

    /// Adds a second of the phase; whether an assertion is broken with it.
    pub(super) fn is_broken_by(&mut self, second: &Interval, ops: &OpNames) -> bool {
        let Some(so_far) = &mut self.so_far else {
            return false;
        };
        so_far.total.add(second);
        so_far.measured_ns = second.end_ns;
        so_far.op_names = ops.all();
        let early = self.asserts.iter().filter(|assertion| assertion.is_known_early());
        let broken = early
            .map(|assertion| assertion.check(so_far, self.baseline.as_ref()))
            .find(|checked| !checked.is_met && checked.undecided.is_none());
        self.broken =
            broken.map(|checked| format!("{checked} after {}", format_time_ns(second.end_ns)));
        self.broken.is_some()
    }

    /// What was found broken in a phase that has ended.
    ///
    /// # Errors
    /// `Invalid`: a histogram of the baseline cannot be read.
    pub(super) fn broken(&mut self, done: &Done, judge: &Judge<'_>) -> Result<Option<&str>> {
        if self.broken.is_none() {
            let baseline = judge.baseline(done.outcome.phase.rate)?;
            self.broken = self
                .asserts
                .iter()
                .map(|assertion| assertion.check(&done.outcome, baseline.as_ref()))
                .find(|checked| !checked.is_met)
                .map(|checked| checked.to_string());
        }
        Ok(self.broken.as_deref())
    }

    /// Whether something was found broken.
    pub(super) fn has_barked(&self) -> bool {
        self.broken.is_some()
    }
}
