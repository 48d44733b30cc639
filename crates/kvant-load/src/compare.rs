//! Two results side by side: what was, and what has become of it.
//!
//! Phases are compared with those of the same rate. Where a file has several of one rate (repeats),
//! each of their figures counts as one observation: the median is compared, and whether the two
//! ranges overlap is said. Percentiles are never averaged, and histograms of repeats never merged
//! before a comparison, as that would hide how far repeats differ.
//!
//! Invariants:
//! 1. No difference is called significant. With one run each, a note says that repeats differ as
//!    well; with several, "apart" says that every run of one side lies beyond every run of the
//!    other, and nothing more.
//! 2. Whatever makes the two not comparable is a warning: other configuration, another machine, a
//!    run that is not valid, a plan that was not kept.
//! 3. A percentile beyond which fewer than [`TAIL_VALUES_MIN`] values lie is marked.

mod figures;
#[cfg(test)]
mod tests;
mod text;
mod warnings;

use crate::config::Rate;
use crate::outcome::Outcome;
use crate::record::Interval;
use crate::report::json::{PhaseResult, ResultFile};
use kvant_base::{Error, Result};
use std::path::Path;

/// As few values beyond a percentile make it a matter of luck.
pub const TAIL_VALUES_MIN: u64 = 10;
/// Rates that differ by less are the same: they were typed or computed in different ways.
const SAME_RATE_PART: f64 = 0.001;

/// Two results, A and B, compared. `Display` is the text.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// What A and B are called.
    pub names: [String; 2],
    /// By rate, in the order of A.
    pub rates: Vec<RateComparison>,
    /// What makes the comparison doubtful.
    pub warnings: Vec<String>,
    /// How it is to be read.
    pub notes: Vec<String>,
}

/// The phases of one rate.
#[derive(Clone, Debug, PartialEq)]
pub struct RateComparison {
    /// The rate, as A has it.
    pub rate: Rate,
    /// How many phases A and B have of it; at least one each.
    pub run_counts: [usize; 2],
    /// Figures of all kinds together, then by kind.
    pub rows: Vec<Row>,
}

/// One figure of both.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The kind of requests; empty for all together.
    pub kind: String,
    /// What is compared: `response p99`, `errors`.
    pub what: String,
    /// Its unit.
    pub unit: Unit,
    /// The figures of A and B; `None` where there are none.
    pub sides: [Option<Spread>; 2],
    /// Whether fewer than [`TAIL_VALUES_MIN`] values lie beyond it in one of the runs.
    pub is_thin: bool,
}

/// What a figure is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Nanoseconds.
    Ns,
    /// Requests a second.
    PerSecond,
    /// A part of 1.
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
    /// How many runs.
    pub count: usize,
}

/// Compares two results, `a` the older one. `names` is what they are called: the files' names.
///
/// # Errors
/// `Invalid`: a histogram in one of them cannot be read.
pub fn compare(a: &ResultFile, b: &ResultFile, names: [&str; 2]) -> Result<Comparison> {
    let named = |index: usize| move |error: Error| error.with_file(Path::new(names[index]));
    let sides = [outcomes(a).map_err(named(0))?, outcomes(b).map_err(named(1))?];
    let mut rates = Vec::new();
    let mut seen: Vec<Rate> = Vec::new();
    for outcome in &sides[0] {
        let rate = outcome.phase.rate;
        if seen.iter().any(|known| is_same(*known, rate)) {
            continue;
        }
        seen.push(rate);
        let of_rate = sides.each_ref().map(|side| with_rate(side, rate));
        if of_rate.iter().all(|runs| !runs.is_empty()) {
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

/// What an earlier run came to at `rate`, for assertions that compare with it: all its phases of
/// that rate together. `None` when it has none.
///
/// # Errors
/// `Invalid`: a histogram in it cannot be read.
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

/// Whether two rates are the same plan.
pub fn is_same(a: Rate, b: Rate) -> bool {
    let near = |a: f64, b: f64| (a - b).abs() <= SAME_RATE_PART * a.abs().max(b.abs());
    match (a, b) {
        (Rate::Closed, Rate::Closed) => true,
        (Rate::Constant(a), Rate::Constant(b)) => near(a, b),
        (Rate::Ramp { from: a, to: b }, Rate::Ramp { from: c, to: d }) => near(a, c) && near(b, d),
        _ => false,
    }
}

/// A rate as people say it: `20000/s`, `closed loop`, `0/s to 50000/s`.
pub fn rate_text(rate: Rate) -> String {
    match rate {
        Rate::Closed => "closed loop".to_owned(),
        Rate::Constant(rate) => format!("{rate}/s"),
        Rate::Ramp { from, to } => format!("{from}/s to {to}/s"),
    }
}

impl Row {
    /// B in parts of A, by their medians; `None` where one has no figure or A's is 0.
    pub fn ratio(&self) -> Option<f64> {
        let [Some(a), Some(b)] = self.sides else {
            return None;
        };
        (a.median != 0.0).then(|| b.median / a.median)
    }

    /// Whether both have several runs and every run of one lies beyond every run of the other.
    pub fn is_apart(&self) -> bool {
        let [Some(a), Some(b)] = self.sides else {
            return false;
        };
        a.count > 1 && b.count > 1 && (a.max < b.min || b.max < a.min)
    }
}

impl Spread {
    /// The spread of some figures; `None` of none.
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

/// Adds a repeat. Both are of one run, whose kinds have the same numbers in all phases.
fn add(sum: &mut Outcome, other: &Outcome) {
    let added: &Interval = &other.total;
    sum.total.add(added);
    sum.measured_ns += other.measured_ns;
    sum.backlog += other.backlog;
    sum.in_flight += other.in_flight;
    sum.unanswered.add(&other.unanswered);
    if sum.op_names.len() < other.op_names.len() {
        sum.op_names.clone_from(&other.op_names);
    }
}
