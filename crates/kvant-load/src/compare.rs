//! Compares two results, the older one with the newer one.
//!
//! Phases are compared with phases of the same rate. If a file has several of a rate (repeats),
//! each is one observation: the medians are compared, and the ranges checked for overlap.
//! Percentiles are never averaged, nor histograms of repeats merged, as that would hide how much
//! repeats differ.
//!
//! Invariants:
//! 1. No difference is called significant. With one run each, a note says that repeats differ as
//!    well; with several, "apart" means that every run of one side lies beyond every run of the
//!    other, and no more.
//! 2. Everything that makes the runs incomparable is a warning: another configuration or machine,
//!    an invalid run, a plan that was not kept.
//! 3. A percentile with fewer than [`TAIL_VALUES_MIN`] values beyond it is marked.

mod comparison;
mod figures;
#[cfg(test)]
mod tests;
mod text;
mod warnings;

pub use comparison::{Comparison, RateComparison, Row, Spread, TAIL_VALUES_MIN, Unit, is_same};

use crate::config::Rate;
use crate::outcome::Outcome;
use crate::report::json::{PhaseResult, ResultFile};
use kvant_base::{Error, Result};
use std::path::Path;

/// Compares two results, of which `a` is the older one. `names` are those of the files.
///
/// # Errors
/// `Invalid`: a histogram in one of them is malformed.
pub fn compare(a: &ResultFile, b: &ResultFile, names: [&str; 2]) -> Result<Comparison> {
    let named = |index: usize| move |error: Error| error.with_file(Path::new(names[index]));
    let sides = [outcomes(a).map_err(named(0))?, outcomes(b).map_err(named(1))?];
    let mut rates: Vec<RateComparison> = Vec::new();
    for outcome in &sides[0] {
        let rate = outcome.phase.rate;
        let is_new = !rates.iter().any(|known| is_same(known.rate, rate));
        let of_rate = sides.each_ref().map(|side| with_rate(side, rate));
        if is_new && !of_rate[1].is_empty() {
            rates.push(RateComparison {
                rate,
                run_counts: of_rate.each_ref().map(Vec::len),
                rows: figures::rows(&of_rate),
            });
        }
    }
    let mut comparison = Comparison {
        names: names.map(str::to_owned),
        rates,
        warnings: Vec::new(),
        notes: Vec::new(),
    };
    comparison.warnings = warnings::of([a, b], &sides, names);
    comparison.notes = warnings::notes(&comparison, &sides);
    Ok(comparison)
}

/// The sum of an earlier run's phases of this rate, for assertions that compare with it; `None`
/// without such phases.
///
/// # Errors
/// `Invalid`: a histogram in it is malformed.
pub fn baseline(file: &ResultFile, rate: Rate) -> Result<Option<Outcome>> {
    let all = outcomes(file)?;
    let mut of_rate = with_rate(&all, rate).into_iter();
    let Some(first) = of_rate.next() else {
        return Ok(None);
    };
    let mut sum = first.clone();
    for outcome in of_rate {
        add(&mut sum, outcome);
    }
    Ok(Some(sum))
}

fn outcomes(file: &ResultFile) -> Result<Vec<Outcome>> {
    file.phases.iter().map(PhaseResult::outcome).collect()
}

fn with_rate(outcomes: &[Outcome], rate: Rate) -> Vec<&Outcome> {
    outcomes.iter().filter(|outcome| is_same(outcome.phase.rate, rate)).collect()
}

/// Adds a repeat. Kinds have the same index in all phases of a file.
fn add(sum: &mut Outcome, other: &Outcome) {
    sum.total.add(&other.total);
    sum.measured_ns += other.measured_ns;
    sum.backlog += other.backlog;
    sum.in_flight += other.in_flight;
    sum.unanswered.add(&other.unanswered);
    if sum.op_names.len() < other.op_names.len() {
        sum.op_names.clone_from(&other.op_names);
    }
}
