//! The log of the process: one line per event on standard error.
//!
//! ```text
//! 2026-07-28T12:34:56.789Z info  listening address=127.0.0.1:8080
//! {"time":"2026-07-28T12:34:56.789Z","severity":"info","event":"listening","address":"127.0.0.1:8080"}
//! ```
//!
//! Invariants:
//! 1. An event is exactly one line: line ends in its fields are escaped.
//! 2. One call writes a line, so that lines of several threads do not mix.
//!
//! Threads: any.

use crate::settings::LogFormat;
use kvant_base::log::{Level, Log};
use kvant_base::timestamp;
use kvant_env::Clock;
use serde_json::Value;
use std::fmt::Display;
use std::io::Write;
use std::sync::Arc;

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
            // No other output is left; serving continues without a log.
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
            line += &format!("{time} {level:<5} {name}");
            for (key, value) in fields {
                line += &format!(" {key}={}", text_value(value.to_string()));
            }
        }
        LogFormat::Json => {
            // Not a map: fields keep their order, for readability.
            line +=
                &format!(r#"{{"time":"{time}","severity":"{level}","event":{}"#, Value::from(name));
            for (key, value) in fields {
                line += &format!(",{}:{}", Value::from(*key), json_value(value.to_string()));
            }
            line.push('}');
        }
    }
    line.push('\n');
    line
}

/// The value, quoted and escaped as a Rust string where it would be ambiguous.
fn text_value(value: String) -> String {
    let is_ambiguous = |c: char| c.is_whitespace() || c.is_control() || "\"=\\".contains(c);
    if value.is_empty() || value.contains(is_ambiguous) { format!("{value:?}") } else { value }
}

/// Whole numbers as numbers; everything else, including numbers with leading zeros, as a string.
fn json_value(value: String) -> Value {
    match value.parse::<u64>() {
        Ok(number) if number.to_string() == value => Value::from(number),
        _ => Value::from(value),
    }
}

#[cfg(test)]
mod tests;
