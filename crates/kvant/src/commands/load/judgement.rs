//! Assertions held against what the phases came to, and the exit code that follows.
//!
//! What is broken makes the exit code 3. Where the generator was the limit of a phase, or its
//! machine was disturbed, a broken assertion on its latency or rate says nothing about the server:
//! the exit code is then 4, unless something else is broken. Of percentiles, only those count as
//! doubtful that are not the server's. An assertion that holds although the generator was late
//! holds all the more: its lateness is part of the response time.

use super::facts::Done;
use kvant_base::Result;
use kvant_load::assertion::{Assertion, Checked};
use kvant_load::compare;
use kvant_load::report::json::{AssertionFacts, ResultFile};
use kvant_load::verdict::Verdict;
use kvant_load::{Outcome, Rate};
use std::fmt::Write as _;
use std::path::Path;

/// An assertion is broken.
pub(super) const EXIT_BROKEN: u8 = 3;
/// An assertion is broken, and that may be the generator's fault.
const EXIT_NOT_VALID: u8 = 4;

/// What all phases must hold.
pub(super) struct Judge<'a> {
    asserts: &'a [Assertion],
    baseline: Option<ResultFile>,
}

/// How assertions were met.
pub(super) struct Judged {
    pub(super) facts: Vec<AssertionFacts>,
    pub(super) exit_code: u8,
    /// A line each, with a heading; empty when there are none.
    pub(super) text: String,
}

impl<'a> Judge<'a> {
    /// Reads the baseline, if there is one.
    ///
    /// # Errors
    /// `Io`, or what is wrong with the file.
    pub(super) fn new(asserts: &'a [Assertion], baseline: Option<&Path>) -> Result<Judge<'a>> {
        Ok(Judge { asserts, baseline: baseline.map(ResultFile::read).transpose()? })
    }

    /// What the baseline came to at this rate.
    ///
    /// # Errors
    /// `Invalid`: one of its histograms cannot be read.
    pub(super) fn baseline(&self, rate: Rate) -> Result<Option<Outcome>> {
        match &self.baseline {
            Some(file) => compare::baseline(file, rate),
            None => Ok(None),
        }
    }

    /// Holds all assertions against all phases from number `first` on.
    ///
    /// # Errors
    /// `Invalid`: a histogram of the baseline cannot be read.
    pub(super) fn judge(&self, phases: &[Done], first: usize) -> Result<Judged> {
        let mut judged = Judged { facts: Vec::new(), exit_code: 0, text: String::new() };
        for (index, done) in phases.iter().enumerate().skip(first) {
            let baseline = self.baseline(done.outcome.phase.rate)?;
            for assertion in self.asserts {
                let checked = assertion.check(&done.outcome, baseline.as_ref());
                judged.add(index, phases.len() - first, assertion, &checked, &done.verdict);
            }
        }
        Ok(judged)
    }
}

impl Judged {
    fn add(
        &mut self,
        phase: usize,
        phase_count: usize,
        assertion: &Assertion,
        checked: &Checked,
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
        writeln!(self.text, "  {step}{checked}{doubt}").expect("writing to a string cannot fail");
        self.facts.push(AssertionFacts::of(checked, phase));
    }
}

#[cfg(test)]
mod tests;
