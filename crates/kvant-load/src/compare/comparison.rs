//! What a comparison consists of: rates, rows of figures, and sentences about them.

use crate::config::Rate;

/// A percentile with fewer values beyond it depends on chance.
pub const TAIL_VALUES_MIN: u64 = 10;
/// Rates that differ by less are equal up to rounding.
pub(super) const SAME_RATE_PART: f64 = 0.001;

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
pub(super) fn rate_text(rate: Rate) -> String {
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
    pub(super) fn of(mut figures: Vec<f64>) -> Option<Spread> {
        figures.sort_by(f64::total_cmp);
        let (&min, &max) = (figures.first()?, figures.last()?);
        let count = figures.len();
        let median = (figures[(count - 1) / 2] + figures[count / 2]) / 2.0;
        Some(Spread { min, median, max, count })
    }
}
