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
use kvant_base::timestamp;
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
    let time = timestamp::format(wall_ms);
    match format {
        LogFormat::Text => {
            write!(line, "{time} {level:<5} {name}").expect("writing to a string cannot fail");
            for (key, value) in fields {
                write!(line, " {key}={}", text_value(value.to_string()))
                    .expect("writing to a string cannot fail");
            }
        }
        LogFormat::Json => {
            // Written by hand, not as a map: the order of fields is part of what makes a log
            // readable.
            write!(line, r#"{{"time":"{time}","severity":"{level}","event":{}"#, Value::from(name))
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
    if value.is_empty() || value.contains(misread) { format!("{value:?}") } else { value }
}

/// Whole numbers as numbers, everything else, numbers with leading zeros included, as a string.
fn json_value(value: String) -> Value {
    match value.parse::<u64>() {
        Ok(number) if number.to_string() == value => Value::from(number),
        _ => Value::from(value),
    }
}

#[cfg(test)]
mod tests;
