//! The syntax of durations in settings: `250us`, `10ms`, `1s`, `2m`.

use std::time::Duration;

const UNITS: [(&str, u64); 4] = [("us", 1), ("ms", 1_000), ("s", 1_000_000), ("m", 60_000_000)];

/// Parses a duration. The unit is required.
///
/// # Errors
/// A sentence with the text and the accepted forms.
pub fn parse(text: &str) -> Result<Duration, String> {
    let trimmed = text.trim();
    UNITS
        .iter()
        .find_map(|(unit, factor)| {
            let digits = trimmed.strip_suffix(unit)?;
            let plain = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
            plain.then(|| digits.parse::<u64>().ok()?.checked_mul(*factor)).flatten()
        })
        .map(Duration::from_micros)
        .ok_or_else(|| {
            format!("`{text}` is not a duration: write us, ms, s or m, such as 250us, 10ms, 1s, 2m")
        })
}

/// The shortest exact form in whole units, rounded down to microseconds.
pub fn format(duration: Duration) -> String {
    let us = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
    let unit = UNITS.iter().rev().find(|(_, factor)| us != 0 && us.is_multiple_of(*factor));
    unit.map_or_else(|| "0s".to_string(), |(name, factor)| format!("{}{name}", us / factor))
}

/// Nanoseconds; `u64::MAX` if they are more.
pub fn ns(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
