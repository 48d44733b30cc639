//! Parses assertions from left to right. An error has its place.

use super::{Assertion, Bound, Comparison, Counter, Measure, Series, Statistic};
use std::fmt;

/// Comparisons, the longer ones first.
const COMPARISONS: [(&str, Comparison); 6] = [
    ("<=", Comparison::AtMost),
    (">=", Comparison::AtLeast),
    ("==", Comparison::Equal),
    ("<", Comparison::Less),
    (">", Comparison::Greater),
    ("=", Comparison::Equal),
];
const STATISTICS: [(&str, Statistic); 4] = [
    ("max", Statistic::Max),
    ("min", Statistic::Min),
    ("mean", Statistic::Mean),
    ("stdev", Statistic::Stdev),
];
/// In nanoseconds.
const TIME_UNITS: [(&str, f64); 6] =
    [("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9), ("m", 60e9), ("h", 3_600e9)];
const COUNT_UNITS: [(&str, f64); 6] =
    [("", 1.0), ("k", 1e3), ("K", 1e3), ("m", 1e6), ("M", 1e6), ("G", 1e9)];

const MEASURES: &str = "p50, p99, p99.9, max, min, mean or stdev (also of service, lag or connect: `service.p99`), rate, \
    errors, timeouts, backlog or completed";

/// Why a text is not an assertion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    /// The text.
    pub text: String,
    /// The place of the error: a byte offset in `text`, on a character boundary.
    pub at_bytes: usize,
    /// What is wrong, and what is expected.
    pub message: String,
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (before, rest) = self.text.split_at(self.at_bytes);
        let column = before.chars().count() + 1;
        match rest {
            "" => write!(f, "`{}`, at its end: {}", self.text, self.message),
            rest => {
                write!(f, "`{}`, at `{rest}` (character {column}): {}", self.text, self.message)
            }
        }
    }
}

impl std::error::Error for ParseError {}

/// A result, or the part of the text that is wrong, with a message.
type Parsed<'a, T> = Result<T, (&'a str, String)>;

impl Assertion {
    /// Parses an assertion.
    pub fn parse(text: &str) -> Result<Assertion, ParseError> {
        assertion(text).map_err(|(part, message)| ParseError {
            text: text.to_owned(),
            // The part is a slice of the text.
            at_bytes: part.as_ptr() as usize - text.as_ptr() as usize,
            message,
        })
    }
}

fn assertion(text: &str) -> Parsed<'_, Assertion> {
    // Only the name of a kind may contain a colon.
    let (kind, rest) = match text.rsplit_once(':') {
        Some((kind, rest)) => (Some(trim(kind)), trim(rest)),
        None => (None, trim(text)),
    };
    if let Some(kind) = kind.filter(|kind| kind.is_empty()) {
        return wrong(kind, "a kind of requests stands before the colon");
    }
    let (left, right) = rest.split_at(rest.find(['<', '>', '=']).unwrap_or(rest.len()));
    let measure = measure(trim(left))?;
    if let Some(kind) = kind {
        check_kind(kind, measure)?;
    }
    let known = COMPARISONS
        .iter()
        .find_map(|(sign, comparison)| Some((right.strip_prefix(sign)?, *comparison)));
    let Some((bound_text, comparison)) = known else {
        return wrong(right, "a comparison must follow: <, <=, >, >= or ==");
    };
    if comparison == Comparison::Equal && !matches!(measure, Measure::Count(_)) {
        return wrong(right, "only counts are exact: compare with <, <=, > or >=");
    }
    Ok(Assertion {
        text: text.trim().to_owned(),
        kind: kind.map(str::to_owned),
        measure,
        comparison,
        bound: bound(trim(bound_text), measure)?,
    })
}

fn measure(text: &str) -> Parsed<'_, Measure> {
    let named = |name: &str| Series::from_name(name.trim_end());
    let prefixed =
        text.split_once('.').and_then(|(name, rest)| Some((Some(named(name)?), trim(rest))));
    let (series, statistic) = prefixed.unwrap_or((None, text));
    let latency = |statistic| Measure::Latency(series.unwrap_or(Series::Response), statistic);
    if let Some(number) = statistic.strip_prefix('p')
        && number.starts_with(|c: char| c.is_ascii_digit() || c == '.')
    {
        return match number.parse::<f64>() {
            Ok(percent) if (0.0..=100.0).contains(&percent) => {
                Ok(latency(Statistic::Percentile(percent)))
            }
            _ => wrong(number, "a percentile is a number from 0 to 100, such as p99.9"),
        };
    }
    if let Some((_, known)) = STATISTICS.iter().find(|(name, _)| *name == statistic) {
        return Ok(latency(*known));
    }
    if series.is_some() {
        return wrong(
            statistic,
            "a latency has p50, p99, p99.9 and so on, max, min, mean and stdev",
        );
    }
    if text == "rate" {
        return Ok(Measure::Rate);
    }
    match Counter::from_name(text) {
        Some(counter) => Ok(Measure::Count(counter)),
        None => wrong(text, format!("what is asserted must be one of {MEASURES}")),
    }
}

fn check_kind(kind: &str, measure: Measure) -> Parsed<'_, ()> {
    match measure {
        Measure::Latency(Series::Response | Series::Service, _) | Measure::Rate => Ok(()),
        Measure::Count(Counter::Completed) => Ok(()),
        Measure::Latency(..) | Measure::Count(_) => wrong(
            kind,
            "by kind of requests there are response and service times, rate and completed",
        ),
    }
}

fn bound(text: &str, measure: Measure) -> Parsed<'_, Bound> {
    if let Some(rest) = text.strip_prefix("base") {
        if matches!(measure, Measure::Count(_)) {
            return wrong(
                text,
                "counts of two runs are not comparable: assert a share, such as errors<0.1%",
            );
        }
        return base(trim(rest));
    }
    let digits = text.bytes().take_while(|byte| byte.is_ascii_digit() || *byte == b'.').count();
    let (number, unit) = (&text[..digits], trim(&text[digits..]));
    let Ok(value) = number.parse::<f64>() else {
        return wrong(text, format!("expected {}", wanted(measure)));
    };
    let (units, unit_text): (&[(&str, f64)], &str) = match measure {
        Measure::Rate | Measure::Count(_) if unit == "%" => return Ok(Bound::Share(value / 100.0)),
        Measure::Latency(..) => (&TIME_UNITS, unit),
        Measure::Rate => (&COUNT_UNITS, unit.strip_suffix("/s").unwrap_or(unit)),
        Measure::Count(_) => (&COUNT_UNITS, unit),
    };
    match units.iter().find(|(name, _)| *name == unit_text) {
        Some((_, factor)) => Ok(Bound::Value(value * factor)),
        None => wrong(unit, format!("expected {}", wanted(measure))),
    }
}

/// Parses the factor after `base`.
fn base(text: &str) -> Parsed<'_, Bound> {
    if text.is_empty() {
        return Ok(Bound::Base(1.0));
    }
    match text.strip_prefix('*').and_then(|factor| factor.trim().parse::<f64>().ok()) {
        Some(factor) if factor.is_finite() && factor > 0.0 => Ok(Bound::Base(factor)),
        _ => wrong(text, "`base` stands alone or with a factor: base*1.1"),
    }
}

fn wanted(measure: Measure) -> &'static str {
    match measure {
        Measure::Latency(..) => {
            "a time with its unit (ns, us, ms, s, m, h), such as 5ms, or base, base*1.1"
        }
        Measure::Rate => "answers a second (20k), a part of the plan (99%), or base, base*0.95",
        Measure::Count(_) => "a number of requests (0, 10k) or a part of them (0.1%)",
    }
}

/// Trims both ends. Blank text becomes the empty slice at its end.
fn trim(text: &str) -> &str {
    text.trim_start().trim_end()
}

fn wrong<T>(part: &str, message: impl Into<String>) -> Parsed<'_, T> {
    Err((part, message.into()))
}
