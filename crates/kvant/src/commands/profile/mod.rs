//! `kvant profile`: requests a recording from a server or reads one, and writes it in the format of
//! the output.
//!
//! - [`definition`]: the options for clap; [`settings`]: their values, validated.
//! - [`client`]: requests a recording from a server.
//! - [`output`]: formats and writes recordings.
//!
//! The server always sends the recording itself: names that this machine can resolve, and the page,
//! are made here, which leaves the server's processors to the server.

#[expect(clippy::disallowed_types, reason = "the client of `POST /v0/profile`")]
mod client;
pub(crate) mod definition;
pub(crate) mod output;
mod parse;
mod settings;

use super::signals::{self, EXIT_INTERRUPTED, Stop};
use crate::exit::note;
use clap::ArgMatches;
use kvant_base::{Error, duration};
use kvant_env::host;
use kvant_profiler::recording::{self, CpuSampling, Recording};
use kvant_profiler::symbols;
use settings::{RecordingRequest, Settings, Source};
use std::path::Path;
use std::time::Duration;

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
            let wanted = wanted.clone();
            let ended = signals::run(move |stop| record(&wanted, stop));
            let Some(recording) = ended.map_err(|error| error.to_string())? else {
                return Ok(EXIT_INTERRUPTED);
            };
            let recording = recording?;
            output.write(&recording).map_err(|error| error.to_string())?;
            note(&summary(&recording));
            if let Some(blind_spot) = recording.facts.cpu.as_ref().and_then(CpuSampling::blind_spot)
            {
                note(&format!("not seen: {blind_spot}"));
            }
        }
    }
    if !output.is_stdout() {
        note(&format!("written to {}", output.path.display()));
    }
    Ok(0)
}

fn record(wanted: &RecordingRequest, stop: &Stop) -> Result<Recording, String> {
    let bytes = client::request_recording(wanted, stop)?;
    let mut recording = recording::decode(&bytes)
        .map_err(|error| format!("what {} sent cannot be read: {error}", wanted.server))?;
    resolve(&mut recording);
    Ok(recording)
}

fn read(file: &Path) -> Result<Recording, String> {
    let bytes =
        host::read_bytes(file).map_err(|error| Error::io("read", file, error).to_string())?;
    let mut recording =
        recording::decode(&bytes).map_err(|error| error.with_file(file).to_string())?;
    resolve(&mut recording);
    Ok(recording)
}

fn resolve(recording: &mut Recording) {
    for problem in symbols::resolve(recording) {
        note(&format!("no names for {problem}"));
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
