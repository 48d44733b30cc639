//! `kvant explain`: reads the history of a running server and says what was slow, and why.
//!
//! - [`definition`]: the command line; [`parse`]: its values.

pub(crate) mod definition;
mod parse;

use super::reader::Reader;
use crate::exit::{note, print};
use clap::ArgMatches;
use kvant_base::{Error, ErrorKind, Result};
use kvant_env::host;
use kvant_lab::conduct::Asked;
use kvant_lab::explain::{self, Evidence, Explanation, history};
use kvant_lab::report;
use std::path::{Path, PathBuf};
use std::time::Duration;

const SECONDS_OF_DAY: u64 = 86_400;
const NS_OF_SECOND: u64 = 1_000_000_000;
/// The time of `--at`, and what is shown before and after it.
const MINUTE_NS: u64 = 60 * NS_OF_SECOND;

struct Settings {
    url: String,
    last: Option<Duration>,
    /// Seconds since midnight, UTC.
    at_s: Option<u64>,
    page: Option<PathBuf>,
    is_json: bool,
}

/// Runs the command; returns the exit code.
pub(crate) fn explain(args: &ArgMatches) -> u8 {
    let mut reader = Reader::new(args);
    let settings = Settings {
        url: reader.value("url"),
        last: reader.get("last"),
        at_s: reader.get("at"),
        page: reader.path("output"),
        is_json: reader.flag("json"),
    };
    let settings = match reader.finish(settings) {
        Ok(settings) => settings,
        Err(problems) => return crate::refuse("argument", &problems),
    };
    match run(&settings) {
        Ok(()) => 0,
        Err(error) => {
            crate::complain(&error.to_string());
            crate::EXIT_FAILED
        }
    }
}

fn run(settings: &Settings) -> Result<()> {
    let path = match settings.last {
        Some(last) => format!("/v0/history?last={}", kvant_base::duration::format(last)),
        None => "/v0/history".to_owned(),
    };
    let json = Asked::new(&settings.url)?.ask("GET", &path)?;
    let mut evidence = history::evidence(&json, &settings.url)?;
    if let Some(at_s) = settings.at_s {
        let begin_ns = begin_ns(&evidence, at_s)?;
        evidence = evidence.between(begin_ns.saturating_sub(MINUTE_NS), begin_ns + 2 * MINUTE_NS);
    }
    let explanation = explain::explain(&evidence);
    if settings.is_json {
        let json = serde_json::to_string_pretty(&explanation)
            .map_err(|error| Error::new(ErrorKind::Invalid, error.to_string()))?;
        print(json + "\n")?;
    } else {
        print(explain::text(&explanation))?;
    }
    settings.page.as_deref().map_or(Ok(()), |page| write_page(page, &explanation))
}

/// The last time before the end of the evidence that the clock showed a time of day.
fn begin_ns(evidence: &Evidence, at_s: u64) -> Result<u64> {
    let ends = evidence.windows.last().zip(evidence.wall_origin_ns);
    let (end_wall_ns, origin_ns) = ends
        .and_then(|(last, origin_ns)| {
            Some((last.end_ns().checked_add_signed(origin_ns)?, origin_ns))
        })
        .ok_or_else(|| Error::invalid("the history is empty"))?;
    let midnight_s = end_wall_ns / NS_OF_SECOND / SECONDS_OF_DAY * SECONDS_OF_DAY;
    let today_ns = (midnight_s + at_s) * NS_OF_SECOND;
    let wall_ns = match today_ns <= end_wall_ns {
        true => today_ns,
        false => today_ns - SECONDS_OF_DAY * NS_OF_SECOND,
    };
    // A time before the machine's start has none of the monotonic clock.
    let begin_ns = wall_ns.checked_add_signed(origin_ns.saturating_neg());
    let first_ns = evidence.windows.first().map_or(0, |first| first.start_ns);
    begin_ns
        .filter(|begin_ns| begin_ns + MINUTE_NS > first_ns)
        .ok_or_else(|| Error::invalid("the server's history does not reach back to that time"))
}

/// Writes the page of an explanation.
///
/// # Errors
/// `Io` if the file cannot be written.
pub(crate) fn write_page(page: &Path, explanation: &Explanation) -> Result<()> {
    let markup = report::explanation(explanation);
    host::write_file(page, markup.as_bytes()).map_err(|error| Error::io("write", page, error))?;
    note(&format!("written to {}", page.display()));
    Ok(())
}
