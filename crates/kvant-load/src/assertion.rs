//! Assertions about a run: `p99<5ms`, `rate>=99%`, `errors<0.1%`, `put:p99.9<=base*1.1`.
//!
//! ```text
//! assertion = [KIND ":"] measure comparison bound
//! measure   = [("response" | "service" | "lag" | "connect") "."]
//!             ("pNUMBER" | "max" | "min" | "mean" | "stdev")
//!           | "rate" | "errors" | "timeouts" | "backlog" | "completed"
//! comparison= "<" | "<=" | ">" | ">=" | "=="
//! bound     = TIME | NUMBER | NUMBER "%" | "base" ["*" NUMBER]
//! ```
//!
//! `KIND` is a kind of requests, in upper or lower case. Names of kinds may have blanks, slashes
//! and colons: the name ends at the last colon, as in `GET /v0/entity:p99<2ms`. Blanks are allowed
//! between all parts.
//!
//! Invariants:
//! 1. A hanging server meets no assertion. Requests that are unanswered at the end count with their
//!    age, a lower bound of their response time, unless the value is higher without them. Without
//!    any response, or any value of the kind, the assertion is undecided, which is not met. The
//!    kind of an unanswered request is unknown: each kind counts all of them.
//! 2. Service times, send lag and connect times cover completed requests and connections. An error
//!    counts once.
//! 3. Shares of `rate`, `backlog` and `completed` are of planned requests; shares of `errors` and
//!    `timeouts` are of sent requests.
//! 4. `base` is the same measure of an earlier run at the same rate.

mod check;
mod parse;
#[cfg(test)]
mod tests;

pub use check::Checked;
pub use parse::ParseError;

use kvant_base::named_enum;

/// An assertion about a phase.
#[derive(Clone, Debug, PartialEq)]
pub struct Assertion {
    text: String,
    /// `None`: all kinds together.
    kind: Option<String>,
    measure: Measure,
    comparison: Comparison,
    bound: Bound,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Measure {
    /// In nanoseconds.
    Latency(Series, Statistic),
    /// Responses per second.
    Rate,
    /// A number of requests.
    Count(Counter),
}

named_enum! {
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Series {
        Response = "response",
        Service = "service",
        SendLag = "lag",
        Connect = "connect",
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Statistic {
    /// 0..=100.
    Percentile(f64),
    Max,
    Min,
    Mean,
    Stdev,
}

named_enum! {
    /// A number of requests.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Counter {
        Errors = "errors",
        Timeouts = "timeouts",
        Backlog = "backlog",
        Completed = "completed",
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Comparison {
    Less,
    AtMost,
    Greater,
    AtLeast,
    Equal,
}

/// The right side of the comparison.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Bound {
    /// In the unit of the measure: nanoseconds, responses per second, requests.
    Value(f64),
    /// A fraction of the planned or sent requests.
    Share(f64),
    /// A multiple of the value of the baseline.
    Base(f64),
}

impl Assertion {
    /// The assertion as given.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether it is about failures. A slow generator causes none, so that the assertion is
    /// meaningful even in an invalid run.
    pub fn is_about_failures(&self) -> bool {
        matches!(self.measure, Measure::Count(Counter::Errors | Counter::Timeouts))
    }

    /// Whether it can be checked during the phase: it bounds failures or a latency from above. All
    /// other values are known at the end only.
    pub fn is_known_early(&self) -> bool {
        let has_upper_bound = match self.comparison {
            Comparison::Less | Comparison::AtMost => true,
            Comparison::Equal => self.bound == Bound::Value(0.0),
            Comparison::Greater | Comparison::AtLeast => false,
        };
        has_upper_bound
            && (self.is_about_failures() || matches!(self.measure, Measure::Latency(..)))
    }

    /// The percentile of the response time that it is about, if any.
    pub fn response_percent(&self) -> Option<f64> {
        match self.measure {
            Measure::Latency(Series::Response, Statistic::Percentile(percent)) => Some(percent),
            _ => None,
        }
    }

    /// Whether it compares with a baseline.
    pub fn needs_baseline(&self) -> bool {
        matches!(self.bound, Bound::Base(_))
    }
}

impl Comparison {
    fn holds(self, value: f64, bound: f64) -> bool {
        match self {
            Comparison::Less => value < bound,
            Comparison::AtMost => value <= bound,
            Comparison::Greater => value > bound,
            Comparison::AtLeast => value >= bound,
            Comparison::Equal => value == bound,
        }
    }
}
