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

/// Compares two results, of which `a` is the older one. `names` are those of the files.
pub fn compare(a: &ResultFile, b: &ResultFile, names: [&str; 2]) -> Comparison {
    let sides = [a, b].map(|file| file.phases.as_slice());
    let mut rates: Vec<RateComparison> = Vec::new();
    for phase in sides[0] {
        let rate = phase.outcome.phase.rate;
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
    comparison.warnings = warnings::of([a, b], names);
    comparison.notes = warnings::notes(&comparison, sides);
    comparison
}

/// The sum of an earlier run's phases of this rate, for assertions that compare with it; `None`
/// without such phases.
pub fn baseline(file: &ResultFile, rate: Rate) -> Option<Outcome> {
    let mut of_rate = with_rate(&file.phases, rate).into_iter();
    let mut sum = of_rate.next()?.clone();
    of_rate.for_each(|outcome| add(&mut sum, outcome));
    Some(sum)
}

fn with_rate(phases: &[PhaseResult], rate: Rate) -> Vec<&Outcome> {
    let outcomes = phases.iter().map(|phase| &phase.outcome);
    outcomes.filter(|outcome| is_same(outcome.phase.rate, rate)).collect()
}

/// Adds a repeat. Kinds have the same index in all phases of a file.
fn add(sum: &mut Outcome, other: &Outcome) {
    sum.total.add(&other.total);
    sum.measured_ns += other.measured_ns;
    sum.backlog += other.backlog;
    sum.in_flight += other.in_flight;
    sum.unanswered.add(&other.unanswered);
}
