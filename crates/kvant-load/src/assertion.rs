//! What a run must hold: `p99<5ms`, `rate>=99%`, `errors<0.1%`, `put:p99.9<=base*1.1`.
//!
//! ```text
//! assertion = [KIND ":"] measure comparison bound
//! measure   = [("response" | "service" | "lag" | "connect") "."] ("pNUMBER" | "max" | "min" | "mean" | "stdev")
//!           | "rate" | "errors" | "timeouts" | "backlog" | "completed"
//! comparison= "<" | "<=" | ">" | ">=" | "=="
//! bound     = TIME | NUMBER | NUMBER "%" | "base" ["*" NUMBER]
//! ```
//!
//! `KIND` is a kind of requests, upper or lower case; names hold blanks, slashes and colons, so it
//! ends at the last colon: `GET /v0/entity:p99<2ms`. Blanks are allowed between all parts.
//!
//! Invariants:
//! 1. A hang passes no assertion. What was not answered when the time was over counts with the time
//!    that it had waited: the least that its response time can be. Where values without it would be
//!    higher (many waited for a moment only), they hold. Where nothing was answered, or a kind has
//!    no values, nothing is decided, which is not met. Which kind a request that was not answered
//!    is of is not known: each kind counts all of them.
//! 2. Service times, send lag and connect times are of what was sent and ended; of `errors`, each
//!    is counted once.
//! 3. Shares: `rate` of what was planned (answers for each planned request), `backlog` and
//!    `completed` likewise; `errors` and `timeouts` of what was sent.
//! 4. `base` is the same measure of an earlier run at the same rate.

mod check;
mod parse;
#[cfg(test)]
mod tests;

pub use check::Checked;
pub use parse::ParseError;

/// Something that a phase of load must hold.
#[derive(Clone, Debug, PartialEq)]
pub struct Assertion {
    text: String,
    /// `None`: all kinds together.
    kind: Option<String>,
    measure: Measure,
    comparison: Comparison,
    bound: Bound,
}

/// What is looked at.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Measure {
    /// In nanoseconds.
    Latency(Series, Statistic),
    /// Answers a second.
    Rate,
    /// A number of requests.
    Count(Counter),
}

/// Which latency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Series {
    Response,
    Service,
    SendLag,
    Connect,
}

/// What of a latency.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Statistic {
    /// 0..=100.
    Percentile(f64),
    Max,
    Min,
    Mean,
    Stdev,
}

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Counter {
    Errors,
    Timeouts,
    Backlog,
    Completed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Comparison {
    Less,
    AtMost,
    Greater,
    AtLeast,
    Equal,
}

/// What it is compared with.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Bound {
    /// In the unit of the measure: nanoseconds, answers a second, requests.
    Value(f64),
    /// Of what was planned or sent, 0..=1 or more.
    Share(f64),
    /// This many times the value of the baseline.
    Base(f64),
}

impl Assertion {
    /// Reads an assertion.
    ///
    /// # Errors
    /// What is wrong, and where.
    pub fn parse(text: &str) -> Result<Assertion, ParseError> {
        parse::parse(text)
    }

    /// As it was given.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether it is about failures alone: a slow generator makes none, so that it means the same
    /// in a run that is not valid.
    pub fn is_about_failures(&self) -> bool {
        matches!(self.measure, Measure::Count(Counter::Errors | Counter::Timeouts))
    }

    /// Whether it can be looked at while the load goes on: it bounds failures or a latency from
    /// above, so that what is over the bound is no matter of what comes later. A rate is known at
    /// the end.
    pub fn is_known_early(&self) -> bool {
        let has_upper_bound = match self.comparison {
            Comparison::Less | Comparison::AtMost => true,
            Comparison::Equal => self.bound == Bound::Value(0.0),
            Comparison::Greater | Comparison::AtLeast => false,
        };
        has_upper_bound
            && (self.is_about_failures() || matches!(self.measure, Measure::Latency(..)))
    }

    /// Which percentile of the response time it is about, if it is about one.
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
