//! Reads interval logs that the generator wrote: see [`kvant_load::report::hlog`].

use kvant_base::{Error, Result};
use kvant_env::host;
use kvant_load::Histogram;
use kvant_load::histogram::encoded;
use percent_encoding::percent_decode_str;
use std::path::Path;

/// What the tags of response times end with; before it is the kind of requests.
pub(super) const RESPONSE: &str = "/response";
/// What the tags of service times end with, likewise.
pub(super) const SERVICE: &str = "/service";
/// The tag of the generator's lateness.
pub(super) const SEND_LAG: &str = "send-lag";

/// The response times of an interval and a kind of requests.
pub(super) struct Line {
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

/// Passes on the lines with response times in order of time. A decoded line takes some hundred
/// kilobytes, so a log is never in memory as a whole.
///
/// # Errors
/// `Io`; `Invalid` with the file and the line.
pub(super) fn each_response(file: &Path, each: &mut dyn FnMut(&Line)) -> Result<()> {
    each_line(file, &|tag| tag.ends_with(RESPONSE), &mut |_, line| each(line))
}

/// Passes on the lines with a tag that `is_wanted`, likewise.
///
/// # Errors
/// As [`each_response`].
pub(super) fn each_line(
    file: &Path,
    is_wanted: &dyn Fn(&str) -> bool,
    each: &mut dyn FnMut(&str, &Line),
) -> Result<()> {
    let text = host::read_text(file).map_err(|error| Error::io("read", file, error))?;
    let lines = text.lines().enumerate().filter(|(_, line)| line.starts_with("Tag="));
    for (index, line) in lines {
        let invalid = |problem: &str| {
            Error::invalid(format!("line {}: {problem}", index + 1)).with_file(file)
        };
        let Some((tag, start_ns, length_ns, encoded)) = parse(line) else {
            return Err(invalid("is no interval"));
        };
        let tag = percent_decode_str(tag).decode_utf8_lossy();
        if is_wanted(&tag) {
            let histogram =
                encoded::decode(encoded).map_err(|error| invalid(&error.to_string()))?;
            each(&tag, &Line { start_ns, length_ns, histogram });
        }
    }
    Ok(())
}

/// Tag, begin, length, encoded histogram.
fn parse(line: &str) -> Option<(&str, u64, u64, &str)> {
    let mut parts = line.strip_prefix("Tag=")?.splitn(5, ',');
    Some((parts.next()?, seconds(parts.next()?)?, seconds(parts.next()?)?, parts.nth(1)?))
}

/// Nanoseconds of a number of seconds with three decimals.
fn seconds(text: &str) -> Option<u64> {
    let seconds: f64 = text.parse().ok()?;
    (seconds >= 0.0).then_some((seconds * 1e9).round() as u64)
}
