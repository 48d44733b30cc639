//! Reads interval logs that the generator wrote: see [`kvant_load::report::hlog`].

use kvant_base::{Error, Result};
use kvant_env::host;
use kvant_load::Histogram;
use kvant_load::histogram::encoded;
use std::path::Path;

/// A line of a log.
pub(super) struct Line {
    /// Such as `get/response`, percent-encoded.
    pub(super) tag: String,
    /// Begin, in nanoseconds since the begin of the log.
    pub(super) start_ns: u64,
    /// Length, in nanoseconds.
    pub(super) length_ns: u64,
    /// Values, in nanoseconds.
    pub(super) histogram: Histogram,
}

impl Line {
    /// End, in nanoseconds since the begin of the log.
    pub(super) fn end_ns(&self) -> u64 {
        self.start_ns + self.length_ns
    }
}

/// The lines of a log in order of time.
///
/// # Errors
/// `Io`; `Invalid` with the file and the line.
pub(super) fn read(file: &Path) -> Result<Vec<Line>> {
    let text = host::read_text(file).map_err(|error| Error::io("read", file, error))?;
    let is_data = |line: &&str| line.starts_with("Tag=");
    let lines = text.lines().enumerate().filter(|(_, line)| is_data(line));
    lines
        .map(|(index, line)| {
            parse(line).ok_or_else(|| {
                let problem = format!("line {} is no interval", index + 1);
                Error::invalid(problem).with_file(file)
            })?
        })
        .collect()
}

fn parse(line: &str) -> Option<Result<Line>> {
    let mut parts = line.strip_prefix("Tag=")?.splitn(5, ',');
    let tag = parts.next()?.to_owned();
    let start_ns = seconds(parts.next()?)?;
    let length_ns = seconds(parts.next()?)?;
    let histogram = encoded::decode(parts.nth(1)?);
    Some(histogram.map(|histogram| Line { tag, start_ns, length_ns, histogram }))
}

/// Nanoseconds of a number of seconds with three decimals.
fn seconds(text: &str) -> Option<u64> {
    let seconds: f64 = text.parse().ok()?;
    (seconds >= 0.0).then_some((seconds * 1e9).round() as u64)
}
