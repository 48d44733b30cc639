//! The settings of `kvant profile`: all problems are reported together.

use super::output::Output;
use crate::commands::reader::Reader;
use clap::ArgMatches;
use kvant_base::wait::WaitKind;
use kvant_profiler::recording::Kind;
use kvant_profiler::render::Format;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Options that need a server.
const RECORDING_ONLY: [&str; 5] = ["url", "event", "duration", "rate", "engine"];

#[derive(Debug, PartialEq)]
pub(super) struct Settings {
    pub(super) source: Source,
    pub(super) output: Output,
}

#[derive(Debug, PartialEq)]
pub(super) enum Source {
    /// A server records it.
    Server(RecordingRequest),
    File(PathBuf),
    Difference {
        base: PathBuf,
        other: PathBuf,
    },
}

/// The recording that a server is to make.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct RecordingRequest {
    /// Host and port.
    pub(super) server: String,
    pub(super) events: Vec<String>,
    pub(super) duration: Duration,
    pub(super) rate_hz: Option<u32>,
    pub(super) engine: Option<String>,
}

impl Settings {
    /// The settings that the arguments give, or all their problems, a sentence each.
    pub(super) fn read(args: &ArgMatches) -> Result<Settings, Vec<String>> {
        let mut reader = Reader::new(args);
        let wanted = RecordingRequest {
            server: reader.value("url"),
            events: reader
                .get("event")
                .unwrap_or_else(|| ["cpu", "alloc", "lock"].map(str::to_owned).to_vec()),
            duration: reader.value("duration"),
            rate_hz: reader.get("rate"),
            engine: reader.get("engine"),
        };
        let source = match (reader.path("file"), reader.path("diff")) {
            (None, None) => Source::Server(wanted),
            (Some(file), None) => Source::File(file),
            (Some(other), Some(base)) => Source::Difference { base, other },
            (None, Some(base)) => {
                reader.refuse("diff", "compares two recordings: name the other one as well");
                Source::File(base)
            }
        };
        if !matches!(source, Source::Server(_)) {
            reader.refuse_given(
                &RECORDING_ONLY,
                "is for a recording to be made: leave it or the file out",
            );
        }
        let output = output(&mut reader, &source);
        reader.finish(Settings { source, output })
    }
}

fn output(reader: &mut Reader<'_>, source: &Source) -> Output {
    let kind = reader.get("kind");
    let given: Option<Format> = reader.get("format");
    let path = reader.path("output").unwrap_or_else(|| {
        let name = match source {
            Source::Server(_) => Path::new("profile"),
            Source::File(file) => file,
            Source::Difference { .. } => Path::new("difference"),
        };
        name.with_extension(given.map_or("html", Format::ending))
    });
    if matches!(source, Source::File(file) if *file == path) {
        reader.refuse("format", "is that of the file: say where to write with --output");
    }
    let named = given.or_else(|| Output::format_of_name(&path));
    let format = match named {
        Some(Format::Collapsed(_)) => {
            let only = only_kind(source);
            if !reader.has("kind") && only.is_none() {
                reader.refuse(
                    "kind",
                    "is missing: collapsed stacks are made of one kind of samples, such as --kind cpu",
                );
            }
            Format::Collapsed(kind.or(only).unwrap_or(Kind::Cpu))
        }
        Some(format) => format,
        None => {
            if !reader.has("format") {
                let sentence = "the name does not tell the format: end it with .html, .kprof, .pb.gz or .collapsed, or \
                                give --format";
                reader.refuse("output", sentence);
            }
            Format::Html
        }
    };
    if kind.is_some() && named.is_some() && !matches!(format, Format::Collapsed(_)) {
        reader.refuse("kind", "is for collapsed stacks: the other formats hold all kinds");
    }
    if matches!(source, Source::Difference { .. }) && format != Format::Html {
        reader.refuse("diff", "makes a page: the output must be HTML");
    }
    Output { path, format }
}

/// The kind of samples, if only one is recorded.
fn only_kind(source: &Source) -> Option<Kind> {
    let Source::Server(wanted) = source else {
        return None;
    };
    match &wanted.events[..] {
        [event] => match &event[..] {
            "cpu" => Some(Kind::Cpu),
            "alloc" => Some(Kind::Alloc),
            _ => Some(Kind::Wait(WaitKind::Contention)),
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests;
