//! Reads interval logs: ours, and those of other programs that measure in nanoseconds.

use crate::histogram::Histogram;
use crate::report::encoded;
use kvant_base::{Error, Result};
use percent_encoding::percent_decode_str;
use std::collections::BTreeMap;
use std::io::{BufRead, Read};
use std::path::Path;

/// Most bytes in a line: a histogram of ours takes at most a few hundred kilobytes.
const LINE_BYTES_MAX: u64 = 32 << 20;

/// A log, as it was read.
#[derive(Clone, Debug, Default)]
pub struct Log {
    /// `StartTime`, in seconds since 1970, if the log has it.
    pub start_time_s: Option<f64>,
    /// `BaseTime`, in seconds since 1970, if the log has it: what the begins of intervals count
    /// from.
    pub base_time_s: Option<f64>,
    /// The intervals in the order of the log.
    pub intervals: Vec<LogInterval>,
}

/// One line of a log.
#[derive(Clone, Debug)]
pub struct LogInterval {
    /// The tag as it was before it was made safe for the log; empty when there is none.
    pub tag: String,
    /// Begin, in seconds since the log's base.
    pub begin_s: f64,
    /// Length in seconds.
    pub length_s: f64,
    /// What was recorded.
    pub histogram: Histogram,
}

impl Log {
    /// What each tag's lines add up to.
    pub fn merged(&self) -> BTreeMap<String, Histogram> {
        let mut merged: BTreeMap<String, Histogram> = BTreeMap::new();
        for interval in &self.intervals {
            merged.entry(interval.tag.clone()).or_default().add(&interval.histogram);
        }
        merged
    }
}

/// Reads a log to its end. `file` is what errors name.
///
/// # Errors
/// `Io` when reading fails. `Invalid`, with the line's number, where a line is none of this format.
pub fn read(mut from: impl BufRead, file: &Path) -> Result<Log> {
    let mut log = Log::default();
    let mut line = Vec::new();
    for number in 1_u64.. {
        line.clear();
        let length = from
            .by_ref()
            .take(LINE_BYTES_MAX)
            .read_until(b'\n', &mut line)
            .map_err(|error| Error::io("read", file, error))?;
        if length == 0 {
            break;
        }
        let problem =
            |problem: &str| Error::invalid(format!("line {number}: {problem}")).with_file(file);
        if length as u64 == LINE_BYTES_MAX && line.last() != Some(&b'\n') {
            return Err(problem("longer than a histogram can be"));
        }
        let text = std::str::from_utf8(&line).map_err(|_| problem("not UTF-8"))?;
        read_line(text.trim_end(), &mut log).map_err(|message| problem(&message))?;
    }
    Ok(log)
}

fn read_line(line: &str, log: &mut Log) -> std::result::Result<(), String> {
    if let Some(comment) = line.strip_prefix('#') {
        if let Some(text) = comment.strip_prefix("[StartTime: ") {
            log.start_time_s = Some(leading_number(text)?);
        } else if let Some(text) = comment.strip_prefix("[BaseTime: ") {
            log.base_time_s = Some(leading_number(text)?);
        }
        return Ok(());
    }
    if line.is_empty() || line.starts_with('"') {
        return Ok(());
    }
    let (tag, rest) = match line.strip_prefix("Tag=") {
        Some(tagged) => tagged.split_once(',').ok_or("a tag without an interval")?,
        None => ("", line),
    };
    let mut fields = rest.splitn(4, ',');
    let mut next = || fields.next().ok_or("an interval has begin, length, maximum and histogram");
    let begin_s = number(next()?)?;
    let length_s = number(next()?)?;
    number(next()?)?;
    let histogram = encoded::decode(next()?).map_err(|error| error.message().to_owned())?;
    let tag = percent_decode_str(tag).decode_utf8().map_err(|_| "a tag is not UTF-8")?.into_owned();
    log.intervals.push(LogInterval { tag, begin_s, length_s, histogram });
    Ok(())
}

fn leading_number(text: &str) -> std::result::Result<f64, String> {
    number(text.split([' ', ']']).next().unwrap_or_default())
}

fn number(text: &str) -> std::result::Result<f64, String> {
    match text.trim().parse::<f64>() {
        Ok(number) if number.is_finite() => Ok(number),
        _ => Err(format!("{text:?} is not a number")),
    }
}
