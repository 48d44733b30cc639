//! The log of the process: one line an event on standard error.
//!
//! ```text
//! 2026-07-28T12:34:56.789Z info  listening address=127.0.0.1:8080
//! {"time":"2026-07-28T12:34:56.789Z","severity":"info","event":"listening","address":"127.0.0.1:8080"}
//! ```
//!
//! Invariants:
//! 1. An event is exactly one line, whatever its fields hold: line ends in them are escaped.
//! 2. A line is written by one call, so that lines of several threads do not mix.
//!
//! Threads: any.

use crate::settings::LogFormat;
use kvant_base::log::{Level, Log};
use kvant_env::Clock;
use serde_json::Value;
use std::fmt::{Display, Write as _};
use std::io::Write as _;
use std::sync::Arc;

/// Writes events to standard error.
pub(crate) struct StderrLog {
    format: LogFormat,
    clock: Arc<dyn Clock>,
}

impl StderrLog {
    /// A log whose lines carry the time of `clock`.
    pub(crate) fn new(format: LogFormat, clock: Arc<dyn Clock>) -> StderrLog {
        StderrLog { format, clock }
    }
}

impl Log for StderrLog {
    fn event(&self, level: Level, name: &'static str, fields: &[(&str, &dyn Display)]) {
        let line = line(self.format, self.clock.wall_ms(), level, name, fields);
        if std::io::stderr().write_all(line.as_bytes()).is_err() {
            // There is nowhere left to say so, and serving goes on without a log.
        }
    }
}

fn line(
    format: LogFormat,
    wall_ms: u64,
    level: Level,
    name: &'static str,
    fields: &[(&str, &dyn Display)],
) -> String {
    let mut line = String::with_capacity(128);
    let time = timestamp(wall_ms);
    match format {
        LogFormat::Text => {
            write!(line, "{time} {level:<5} {name}").expect("writing to a string cannot fail");
            for (key, value) in fields {
                write!(line, " {key}={}", text_value(value.to_string()))
                    .expect("writing to a string cannot fail");
            }
        }
        LogFormat::Json => {
            // Written by hand, not as a map: the order of fields is part of what makes a log readable.
            write!(
                line,
                r#"{{"time":"{time}","severity":"{level}","event":{}"#,
                Value::from(name)
            )
            .expect("writing to a string cannot fail");
            for (key, value) in fields {
                write!(line, ",{}:{}", Value::from(*key), json_value(value.to_string()))
                    .expect("writing to a string cannot fail");
            }
            line.push('}');
        }
    }
    line.push('\n');
    line
}

/// As it is where that cannot be misread, else quoted and escaped as a Rust string.
fn text_value(value: String) -> String {
    let misread = |c: char| c.is_whitespace() || c.is_control() || "\"=\\".contains(c);
    if value.is_empty() || value.contains(misread) {
        format!("{value:?}")
    } else {
        value
    }
}

/// Whole numbers as numbers, everything else, numbers with leading zeros included, as a string.
fn json_value(value: String) -> Value {
    match value.parse::<u64>() {
        Ok(number) if number.to_string() == value => Value::from(number),
        _ => Value::from(value),
    }
}

/// RFC 3339 in UTC with milliseconds.
fn timestamp(wall_ms: u64) -> String {
    let (seconds, ms) = (wall_ms / 1000, wall_ms % 1000);
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = civil_date(days);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{ms:03}Z")
}

/// Year, month and day of the Gregorian calendar, `days` days after 1970-01-01. Counts in years that begin in March, so that the
/// leap day is the last of its year (H. Hinnant, "chrono-Compatible Low-Level Date Algorithms").
fn civil_date(days: u64) -> (u64, u64, u64) {
    const DAYS_TO_1970_FROM_MARCH_OF_YEAR_0: u64 = 719_468;
    const DAYS_OF_400_YEARS: u64 = 146_097;
    let days = days + DAYS_TO_1970_FROM_MARCH_OF_YEAR_0;
    let (era, day_of_era) = (days / DAYS_OF_400_YEARS, days % DAYS_OF_400_YEARS);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let (month, next_year) = if month_from_march < 10 {
        (month_from_march + 3, 0)
    } else {
        (month_from_march - 9, 1)
    };
    (400 * era + year_of_era + next_year, month, day)
}

#[cfg(test)]
mod tests;
