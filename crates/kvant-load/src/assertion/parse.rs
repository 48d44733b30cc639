//! Reads assertions from left to right; what is wrong is said with its place.

use super::{Assertion, Bound, Comparison, Counter, Measure, Series, Statistic};
use std::fmt;

/// Comparisons; the longer ones first.
const COMPARISONS: [(&str, Comparison); 6] = [
    ("<=", Comparison::AtMost),
    (">=", Comparison::AtLeast),
    ("==", Comparison::Equal),
    ("<", Comparison::Less),
    (">", Comparison::Greater),
    ("=", Comparison::Equal),
];
const SERIES: [(&str, Series); 4] = [
    ("response", Series::Response),
    ("service", Series::Service),
    ("lag", Series::SendLag),
    ("connect", Series::Connect),
];
const STATISTICS: [(&str, Statistic); 4] = [
    ("max", Statistic::Max),
    ("min", Statistic::Min),
    ("mean", Statistic::Mean),
    ("stdev", Statistic::Stdev),
];
const COUNTERS: [(&str, Counter); 4] = [
    ("errors", Counter::Errors),
    ("timeouts", Counter::Timeouts),
    ("backlog", Counter::Backlog),
    ("completed", Counter::Completed),
];
/// In nanoseconds.
const TIME_UNITS: [(&str, f64); 6] =
    [("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9), ("m", 60e9), ("h", 3_600e9)];
const COUNT_UNITS: [(&str, f64); 6] =
    [("", 1.0), ("k", 1e3), ("K", 1e3), ("m", 1e6), ("M", 1e6), ("G", 1e9)];

const MEASURES: &str = "p50, p99, p99.9, max, min, mean or stdev (also of service, lag or connect: `service.p99`), rate, \
    errors, timeouts, backlog or completed";

/// Why a text is no assertion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    /// The text.
    pub text: String,
    /// Where it is wrong: an offset in `text`, in bytes, at the begin of a character or at the end.
    pub at_bytes: usize,
    /// What is wrong there, and what would be right.
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

/// A part of the text, with its place.
#[derive(Clone, Copy)]
struct Part<'a> {
    text: &'a str,
    at_bytes: usize,
}

impl<'a> Part<'a> {
    fn trimmed(self) -> Part<'a> {
        let trimmed = self.text.trim_start();
        let at_bytes = self.at_bytes + self.text.len() - trimmed.len();
        Part { text: trimmed.trim_end(), at_bytes }
    }

    /// What follows the first `length` bytes.
    fn after(self, length: usize) -> Part<'a> {
        Part { text: &self.text[length..], at_bytes: self.at_bytes + length }
    }

    fn before(self, length: usize) -> Part<'a> {
        Part { text: &self.text[..length], at_bytes: self.at_bytes }
    }
}

type Parsed<T> = Result<T, (usize, String)>;

/// Reads an assertion.
pub(super) fn parse(text: &str) -> Result<Assertion, ParseError> {
    assertion(text).map_err(|(at_bytes, message)| ParseError {
        text: text.to_owned(),
        at_bytes,
        message,
    })
}

fn assertion(text: &str) -> Parsed<Assertion> {
    let whole = Part { text, at_bytes: 0 };
    // Nothing behind the name of a kind has a colon.
    let (kind, rest) = match text.rfind(':') {
        Some(colon) => (Some(whole.before(colon).trimmed()), whole.after(colon + 1).trimmed()),
        None => (None, whole.trimmed()),
    };
    if let Some(kind) = kind.filter(|kind| kind.text.is_empty()) {
        return Err((kind.at_bytes, "a kind of requests stands before the colon".to_owned()));
    }
    let end = rest.text.find(['<', '>', '=']).unwrap_or(rest.text.len());
    let left = rest.before(end).trimmed();
    let measure = measure(left)?;
    if let Some(kind) = kind {
        check_kind(kind, measure)?;
    }
    let right = rest.after(end);
    let Some((sign, comparison)) =
        COMPARISONS.iter().find(|(sign, _)| right.text.starts_with(sign))
    else {
        return Err((right.at_bytes, "a comparison must follow: <, <=, >, >= or ==".to_owned()));
    };
    if *comparison == Comparison::Equal && !matches!(measure, Measure::Count(_)) {
        let message = "only counts are exact: compare with <, <=, > or >=";
        return Err((right.at_bytes, message.to_owned()));
    }
    let bound = bound(right.after(sign.len()).trimmed(), measure)?;
    Ok(Assertion {
        text: text.trim().to_owned(),
        kind: kind.map(|kind| kind.text.to_owned()),
        measure,
        comparison: *comparison,
        bound,
    })
}

fn measure(part: Part<'_>) -> Parsed<Measure> {
    let (series, statistic) = match part.text.split_once('.') {
        Some((name, _)) if SERIES.iter().any(|(known, _)| *known == name.trim_end()) => {
            let series = SERIES.iter().find(|(known, _)| *known == name.trim_end());
            (series.map(|(_, series)| *series), part.after(name.len() + 1).trimmed())
        }
        _ => (None, part),
    };
    let latency = |statistic| Measure::Latency(series.unwrap_or(Series::Response), statistic);
    if let Some(number) = statistic.text.strip_prefix('p')
        && number.starts_with(|c: char| c.is_ascii_digit() || c == '.')
    {
        return match number.parse::<f64>() {
            Ok(percent) if (0.0..=100.0).contains(&percent) => {
                Ok(latency(Statistic::Percentile(percent)))
            }
            _ => Err((
                statistic.at_bytes + 1,
                "a percentile is a number from 0 to 100, such as p99.9".to_owned(),
            )),
        };
    }
    if let Some((_, known)) = STATISTICS.iter().find(|(name, _)| *name == statistic.text) {
        return Ok(latency(*known));
    }
    if series.is_some() {
        let message = "a latency has p50, p99, p99.9 and so on, max, min, mean and stdev";
        return Err((statistic.at_bytes, message.to_owned()));
    }
    if part.text == "rate" {
        return Ok(Measure::Rate);
    }
    match COUNTERS.iter().find(|(name, _)| *name == part.text) {
        Some((_, counter)) => Ok(Measure::Count(*counter)),
        None => Err((part.at_bytes, format!("what is asserted must be one of {MEASURES}"))),
    }
}

fn check_kind(kind: Part<'_>, measure: Measure) -> Parsed<()> {
    let is_kept = match measure {
        Measure::Latency(Series::Response | Series::Service, _) | Measure::Rate => true,
        Measure::Count(counter) => counter == Counter::Completed,
        Measure::Latency(..) => false,
    };
    if is_kept {
        return Ok(());
    }
    let message = "by kind of requests there are response and service times, rate and completed";
    Err((kind.at_bytes, message.to_owned()))
}

fn bound(part: Part<'_>, measure: Measure) -> Parsed<Bound> {
    if let Some(factor) = part.text.strip_prefix("base") {
        return base(part.after(part.text.len() - factor.len()), measure);
    }
    let digits =
        part.text.bytes().take_while(|byte| byte.is_ascii_digit() || *byte == b'.').count();
    let number = part.before(digits);
    let Ok(value) = number.text.parse::<f64>() else {
        return Err((part.at_bytes, format!("expected {}", wanted(measure))));
    };
    let unit = part.after(digits).trimmed();
    if unit.text == "%" && !matches!(measure, Measure::Latency(..)) {
        return Ok(Bound::Share(value / 100.0));
    }
    let (units, unit_text): (&[(&str, f64)], &str) = match measure {
        Measure::Latency(..) => (&TIME_UNITS, unit.text),
        Measure::Rate => (&COUNT_UNITS, unit.text.strip_suffix("/s").unwrap_or(unit.text)),
        Measure::Count(_) => (&COUNT_UNITS, unit.text),
    };
    match units.iter().find(|(name, _)| *name == unit_text) {
        Some((_, factor)) => Ok(Bound::Value(value * factor)),
        None => Err((unit.at_bytes, format!("expected {}", wanted(measure)))),
    }
}

fn base(rest: Part<'_>, measure: Measure) -> Parsed<Bound> {
    if matches!(measure, Measure::Count(_)) {
        let message = "counts of two runs are not comparable: assert a share, such as errors<0.1%";
        return Err((rest.at_bytes - "base".len(), message.to_owned()));
    }
    let rest = rest.trimmed();
    if rest.text.is_empty() {
        return Ok(Bound::Base(1.0));
    }
    let factor = rest.text.strip_prefix('*').and_then(|factor| factor.trim().parse::<f64>().ok());
    match factor {
        Some(factor) if factor.is_finite() && factor > 0.0 => Ok(Bound::Base(factor)),
        _ => Err((rest.at_bytes, "`base` stands alone or with a factor: base*1.1".to_owned())),
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
