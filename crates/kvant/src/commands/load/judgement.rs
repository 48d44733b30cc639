//! Checks assertions on the outcomes of phases, and derives the exit code.
//!
//! A broken assertion makes the exit code 3. If the generator limited the phase, or its machine was
//! disturbed, a broken assertion about latency or rate says nothing about the server: the exit code
//! is then 4, unless another assertion is broken as well. A percentile is doubtful only if the
//! generator contributed to it. An assertion that is met by a late generator stays met: lateness is
//! part of the response time.

use super::facts::Done;
use kvant_base::Result;
use kvant_load::assertion::{Assertion, Checked};
use kvant_load::compare;
use kvant_load::report::json::{AssertionFacts, ResultFile};
use kvant_load::verdict::Verdict;
use kvant_load::{Outcome, Rate};
use std::path::Path;

/// An assertion is broken.
pub(super) const EXIT_BROKEN: u8 = 3;
/// An assertion is broken, possibly because of the generator.
const EXIT_NOT_VALID: u8 = 4;

pub(super) struct Judge<'a> {
    asserts: &'a [Assertion],
    baseline: Option<ResultFile>,
}

pub(super) struct Judged {
    pub(super) facts: Vec<AssertionFacts>,
    pub(super) exit_code: u8,
    /// A heading and a line for each; empty if there are no assertions.
    pub(super) text: String,
}

impl<'a> Judge<'a> {
    /// Reads the baseline, if there is one.
    pub(super) fn new(asserts: &'a [Assertion], baseline: Option<&Path>) -> Result<Judge<'a>> {
        Ok(Judge { asserts, baseline: baseline.map(ResultFile::read).transpose()? })
    }

    /// The outcome of the baseline at this rate.
    pub(super) fn baseline(&self, rate: Rate) -> Option<Outcome> {
        compare::baseline(self.baseline.as_ref()?, rate)
    }

    /// Checks all assertions on `phases[first..]`.
    pub(super) fn judge(&self, phases: &[Done], first: usize) -> Judged {
        let mut judged = Judged { facts: Vec::new(), exit_code: 0, text: String::new() };
        for (index, done) in phases.iter().enumerate().skip(first) {
            let baseline = self.baseline(done.outcome.phase.rate);
            for assertion in self.asserts {
                let checked = assertion.check(&done.outcome, baseline.as_ref());
                judged.add(index, phases.len() - first, assertion, checked, &done.verdict);
            }
        }
        judged
    }
}

impl Judged {
    fn add(
        &mut self,
        phase: usize,
        phase_count: usize,
        assertion: &Assertion,
        checked: Checked,
        verdict: &Verdict,
    ) {
        let is_doubtful =
            !assertion.is_about_failures() && verdict.is_doubtful(assertion.response_percent());
        match (checked.is_met, is_doubtful) {
            (true, _) => {}
            (false, false) => self.exit_code = EXIT_BROKEN,
            (false, true) if self.exit_code == 0 => self.exit_code = EXIT_NOT_VALID,
            (false, true) => {}
        }
        if self.text.is_empty() {
            self.text.push_str("Assertions:\n");
        }
        let step = if phase_count > 1 { format!("step {}: ", phase + 1) } else { String::new() };
        let doubt = if !checked.is_met && is_doubtful {
            "; the run is not valid for this: it may be the fault of the generator or its machine"
        } else {
            ""
        };
        self.text += &format!("  {step}{checked}{doubt}\n");
        self.facts.push(AssertionFacts { checked, phase });
    }
}

#[cfg(test)]
mod tests;
