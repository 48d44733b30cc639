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

mod figures;
#[cfg(test)]
mod tests;
mod text;
mod warnings;

use crate::config::Rate;
use crate::outcome::Outcome;
use crate::report::json::{PhaseResult, ResultFile};
use kvant_base::{Error, Result};
use std::path::Path;

/// A percentile with fewer values beyond it depends on chance.
pub const TAIL_VALUES_MIN: u64 = 10;
/// Rates that differ by less are equal up to rounding.
const SAME_RATE_PART: f64 = 0.001;

/// Two results, A and B, compared. `Display` is the text.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// Names of A and B.
    pub names: [String; 2],
    /// By rate, in the order of A.
    pub rates: Vec<RateComparison>,
    /// Reasons to doubt the comparison.
    pub warnings: Vec<String>,
    /// Explanations.
    pub notes: Vec<String>,
}

/// The phases of one rate.
#[derive(Clone, Debug, PartialEq)]
pub struct RateComparison {
    /// The rate, as A has it.
    pub rate: Rate,
    /// Numbers of phases in A and B, each at least 1.
    pub run_counts: [usize; 2],
    /// Figures of all kinds of requests together, then by kind.
    pub rows: Vec<Row>,
}

/// One figure of both.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The kind of requests; empty for all together.
    pub kind: String,
    /// The name of the figure: `response p99`, `errors`.
    pub what: String,
    /// Its unit.
    pub unit: Unit,
    /// The figures of A and B.
    pub sides: [Option<Spread>; 2],
    /// Whether one of the runs has fewer than [`TAIL_VALUES_MIN`] values beyond it.
    pub is_thin: bool,
}

/// The unit of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Nanoseconds.
    Ns,
    /// Requests per second.
    PerSecond,
    /// A fraction of 1.
    Part,
    /// Requests.
    Count,
}

/// A figure of one or several runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// The lowest.
    pub min: f64,
    /// The median.
    pub median: f64,
    /// The highest.
    pub max: f64,
    /// The number of runs.
    pub count: usize,
}

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

/// Whether two rates are equal up to rounding.
pub fn is_same(a: Rate, b: Rate) -> bool {
    let near = |a: f64, b: f64| (a - b).abs() <= SAME_RATE_PART * a.abs().max(b.abs());
    match (a, b) {
        (Rate::Closed, Rate::Closed) => true,
        (Rate::Constant(a), Rate::Constant(b)) => near(a, b),
        (Rate::Ramp { from: a, to: b }, Rate::Ramp { from: c, to: d }) => near(a, c) && near(b, d),
        _ => false,
    }
}

/// A rate in words: `20000/s`, `closed loop`, `0/s to 50000/s`.
fn rate_text(rate: Rate) -> String {
    match rate {
        Rate::Closed => "closed loop".to_owned(),
        Rate::Constant(rate) => format!("{rate}/s"),
        Rate::Ramp { from, to } => format!("{from}/s to {to}/s"),
    }
}

impl Row {
    /// The ratio B/A of the medians; `None` if one is absent or A is 0.
    pub fn ratio(&self) -> Option<f64> {
        let [Some(a), Some(b)] = self.sides else {
            return None;
        };
        (a.median != 0.0).then(|| b.median / a.median)
    }

    /// Whether both sides have several runs and every run of one lies beyond every run of the
    /// other.
    pub fn is_apart(&self) -> bool {
        let [Some(a), Some(b)] = self.sides else {
            return false;
        };
        a.count > 1 && b.count > 1 && (a.max < b.min || b.max < a.min)
    }
}

impl Spread {
    /// The spread of `figures`; `None` without any.
    fn of(mut figures: Vec<f64>) -> Option<Spread> {
        figures.sort_by(f64::total_cmp);
        let (&min, &max) = (figures.first()?, figures.last()?);
        let count = figures.len();
        let median = (figures[(count - 1) / 2] + figures[count / 2]) / 2.0;
        Some(Spread { min, median, max, count })
    }
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
