//! `kvant profile`: has a server record itself, reads recordings, and writes what people and other
//! tools look at.
//!
//! - [`definition`]: options, as clap has them; [`settings`]: values taken out of it and judged.
//! - [`client`]: the recording that a server makes.
//! - [`output`]: what is written.
//!
//! The server is always asked for the recording itself: names, where this machine has them, and the
//! page are made here, so that the server's processors are the server's.

mod client;
pub(crate) mod definition;
pub(crate) mod output;
mod parse;
mod settings;

use clap::ArgMatches;
use client::Answer;
use kvant_base::{Error, duration};
use kvant_env::host;
use kvant_profiler::recording::{self, CpuSampling, Recording};
use kvant_profiler::symbols;
use settings::{Settings, Source, Wanted};
use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;

/// What a shell reports for a process that SIGINT ended.
const EXIT_INTERRUPTED: u8 = 130;

/// Runs the command; the result is the exit code.
pub(crate) fn profile(args: &ArgMatches) -> u8 {
    let settings = match Settings::read(args) {
        Ok(settings) => settings,
        Err(problems) => return crate::refuse("argument", &problems),
    };
    run(&settings).unwrap_or_else(|error| {
        crate::complain(&error);
        crate::EXIT_FAILED
    })
}

fn run(settings: &Settings) -> Result<u8, String> {
    let output = &settings.output;
    let sentence = |error: Error| error.to_string();
    match &settings.source {
        Source::Difference { base, other } => {
            let (base, other) = (read(base)?, read(other)?);
            output.write_difference(&base, &other).map_err(sentence)?;
        }
        Source::File(file) => output.write(&read(file)?).map_err(sentence)?,
        Source::Server(wanted) => {
            let Some(recording) = record(wanted)? else {
                return Ok(EXIT_INTERRUPTED);
            };
            output.write(&recording).map_err(sentence)?;
            tell(&summary(&recording));
            if let Some(blind_spot) = recording.facts.cpu.as_ref().and_then(CpuSampling::blind_spot)
            {
                tell(&format!("not seen: {blind_spot}"));
            }
        }
    }
    if !output.is_stdout() {
        tell(&format!("written to {}", output.path.display()));
    }
    Ok(0)
}

/// A recording that the server makes; `None` when a second signal came.
fn record(wanted: &Wanted) -> Result<Option<Recording>, String> {
    let begins = || {
        let time = duration::format(wanted.duration);
        tell(&format!("{} records for {time}; SIGINT ends it early", wanted.server));
    };
    let bytes = match client::ask(wanted, &begins)? {
        Answer::Recording(bytes) => bytes,
        Answer::GivenUp => return Ok(None),
    };
    let mut recording = recording::decode(&bytes)
        .map_err(|error| format!("what {} sent cannot be read: {error}", wanted.server))?;
    name(&mut recording);
    Ok(Some(recording))
}

/// Reads a file.
fn read(file: &Path) -> Result<Recording, String> {
    let bytes =
        host::read_bytes(file).map_err(|error| Error::io("read", file, error).to_string())?;
    let mut recording =
        recording::decode(&bytes).map_err(|error| error.with_file(file).to_string())?;
    name(&mut recording);
    Ok(recording)
}

/// Names what has no name yet.
fn name(recording: &mut Recording) {
    for problem in symbols::resolve(recording).problems {
        tell(&format!("no names for {problem}"));
    }
}

fn summary(recording: &Recording) -> String {
    let facts = &recording.facts;
    let lost = match facts.dropped_count {
        0 => String::new(),
        count => format!(", {count} were lost"),
    };
    format!(
        "{} samples in {}{lost}",
        recording.samples.len(),
        duration::format(Duration::from_millis(facts.duration_ns / 1_000_000)),
    )
}

/// Says on standard error how things stand. A courtesy: where it cannot be said, the work goes on.
fn tell(text: &str) {
    let written = writeln!(io::stderr(), "{text}");
    drop(written);
}
