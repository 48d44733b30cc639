//! `kvant profile`: requests a recording from a server or reads one, and writes it in the format of
//! the output.
//!
//! - [`definition`]: the options for clap; [`settings`]: their values, validated.
//! - [`client`]: requests a recording from a server.
//! - [`output`]: formats and writes recordings.
//!
//! The server always sends the recording itself: names that this machine can resolve, and the page,
//! are made here, which leaves the server's processors to the server.

mod client;
pub(crate) mod definition;
pub(crate) mod output;
mod parse;
mod settings;

use clap::ArgMatches;
use client::Received;
use kvant_base::{Error, duration};
use kvant_env::host;
use kvant_profiler::recording::{self, CpuSampling, Recording};
use kvant_profiler::symbols;
use settings::{RecordingRequest, Settings, Source};
use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;

/// What shells report for a process that SIGINT terminated.
const EXIT_INTERRUPTED: u8 = 130;

/// Runs the command; returns the exit code.
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
    match &settings.source {
        Source::Difference { base, other } => {
            let (base, other) = (read(base)?, read(other)?);
            output.write_difference(&base, &other).map_err(|error| error.to_string())?;
        }
        Source::File(file) => output.write(&read(file)?).map_err(|error| error.to_string())?,
        Source::Server(wanted) => {
            let Some(recording) = record(wanted)? else {
                return Ok(EXIT_INTERRUPTED);
            };
            output.write(&recording).map_err(|error| error.to_string())?;
            print_note(&summary(&recording));
            if let Some(blind_spot) = recording.facts.cpu.as_ref().and_then(CpuSampling::blind_spot)
            {
                print_note(&format!("not seen: {blind_spot}"));
            }
        }
    }
    if !output.is_stdout() {
        print_note(&format!("written to {}", output.path.display()));
    }
    Ok(0)
}

/// Requests a recording from the server; `None` after a second signal.
fn record(wanted: &RecordingRequest) -> Result<Option<Recording>, String> {
    let on_start = || {
        let time = duration::format(wanted.duration);
        print_note(&format!("{} records for {time}; SIGINT ends it early", wanted.server));
    };
    let bytes = match client::request_recording(wanted, &on_start)? {
        Received::Recording(bytes) => bytes,
        Received::Interrupted => return Ok(None),
    };
    let mut recording = recording::decode(&bytes)
        .map_err(|error| format!("what {} sent cannot be read: {error}", wanted.server))?;
    resolve(&mut recording);
    Ok(Some(recording))
}

/// Reads a recording from a file.
fn read(file: &Path) -> Result<Recording, String> {
    let bytes =
        host::read_bytes(file).map_err(|error| Error::io("read", file, error).to_string())?;
    let mut recording =
        recording::decode(&bytes).map_err(|error| error.with_file(file).to_string())?;
    resolve(&mut recording);
    Ok(recording)
}

/// Resolves symbols that are not resolved yet.
fn resolve(recording: &mut Recording) {
    for problem in symbols::resolve(recording).problems {
        print_note(&format!("no names for {problem}"));
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

/// Prints a note on standard error. The command succeeds even if that fails.
fn print_note(text: &str) {
    let written = writeln!(io::stderr(), "{text}");
    drop(written);
}
