//! Parsers of option values. Errors are sentences that the option's name precedes.

use kvant_load::{Target, units};
use std::time::Duration;

/// Where a server listens by default.
pub(super) const URL: &str = "http://127.0.0.1:8080";

pub(super) fn url(text: &str) -> Result<String, String> {
    let url = if text.contains("://") { text.to_owned() } else { format!("http://{text}") };
    Target::parse(&url).map(|_| url).map_err(|error| error.to_string())
}

pub(super) fn last(text: &str) -> Result<Duration, String> {
    match units::parse_time(text)? {
        Duration::ZERO => Err(format!("`{text}` is no time at all")),
        time => Ok(time),
    }
}

/// Seconds since midnight.
pub(super) fn at(text: &str) -> Result<u64, String> {
    let problem = || format!("`{text}` is not a time of day: write 14:03 or 14:03:30");
    let parts: Vec<u64> = text
        .split(':')
        .map(|part| match part.len() {
            1 | 2 => part.parse().map_err(|_| problem()),
            _ => Err(problem()),
        })
        .collect::<Result<_, String>>()?;
    match parts[..] {
        [hour @ 0..24, minute @ 0..60] => Ok(hour * 3600 + minute * 60),
        [hour @ 0..24, minute @ 0..60, second @ 0..60] => Ok(hour * 3600 + minute * 60 + second),
        _ => Err(problem()),
    }
}

#[cfg(test)]
mod tests;
