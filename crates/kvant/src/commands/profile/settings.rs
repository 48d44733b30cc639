//! What `kvant profile` was told, judged: all that is wrong is reported at once.

use super::definition::{ENGINES, FORMATS, KINDS, URL};
use super::output::{Format, Output};
use crate::commands::reader::Reader;
use clap::ArgMatches;
use kvant_base::wait::WaitKind;
use kvant_load::units;
use kvant_profiler::recording::Kind;
use std::path::PathBuf;
use std::time::Duration;

const DURATION_MIN: Duration = Duration::from_millis(100);
const DURATION_MAX: Duration = Duration::from_secs(3600);
const DURATION: Duration = Duration::from_secs(30);
/// The options of a recording that is made.
const RECORDING_ONLY: [&str; 5] = ["url", "event", "duration", "rate", "engine"];

/// What is to be done.
#[derive(Debug, PartialEq)]
pub(super) struct Settings {
    pub(super) source: Source,
    pub(super) output: Output,
}

/// Where recordings come from.
#[derive(Debug, PartialEq)]
pub(super) enum Source {
    /// A server makes it.
    Server(Wanted),
    /// It is there already.
    File(PathBuf),
    /// Two are compared.
    Difference { base: PathBuf, other: PathBuf },
}

/// A recording that a server is asked for.
#[derive(Debug, PartialEq)]
pub(super) struct Wanted {
    /// Host and port.
    pub(super) server: String,
    pub(super) events: Vec<String>,
    pub(super) duration: Duration,
    pub(super) rate_hz: Option<u32>,
    pub(super) engine: Option<String>,
}

impl Settings {
    /// Reads and judges the arguments.
    ///
    /// # Errors
    /// Everything that is wrong with them, a sentence each.
    pub(super) fn read(args: &ArgMatches) -> Result<Settings, Vec<String>> {
        let mut reader = Reader::new(args);
        let wanted = Wanted {
            server: reader.value("url", String::new(), server),
            events: reader.value("event", Vec::new(), events),
            duration: reader.value("duration", DURATION, time),
            rate_hz: reader.optional("rate", rate_hz),
            engine: reader.optional("engine", engine),
        };
        let source = match (reader.path("file"), reader.path("diff")) {
            (None, None) => Source::Server(wanted.or_defaults()),
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

impl Wanted {
    fn or_defaults(mut self) -> Wanted {
        if self.server.is_empty() {
            self.server = server(URL).expect("the default is a URL");
        }
        if self.events.is_empty() {
            self.events = ["cpu", "alloc", "lock"].map(str::to_owned).to_vec();
        }
        self
    }
}

/// Where to, in which format.
fn output(reader: &mut Reader<'_>, source: &Source) -> Output {
    let path = reader.path("output").unwrap_or_else(|| match source {
        Source::Server(_) => PathBuf::from("profile.html"),
        Source::File(file) => file.with_extension("html"),
        Source::Difference { .. } => PathBuf::from("difference.html"),
    });
    let kind = reader.optional("kind", kind);
    let word = reader.optional("format", |text| match FORMATS.contains(&text) {
        true => Ok(text.to_owned()),
        false => Err(format!("`{text}` is none of html, kprof, pprof and collapsed")),
    });
    let is_given = reader.has("format");
    let word = word.or_else(|| Output::word_of_name(&path).map(str::to_owned));
    let format = match word.as_deref() {
        Some("collapsed") => {
            let only = only_kind(source);
            if !reader.has("kind") && only.is_none() {
                reader.refuse(
                    "kind",
                    "is missing: collapsed stacks are made of one kind of samples, such as --kind cpu",
                );
            }
            Format::Collapsed(kind.or(only).unwrap_or(Kind::Cpu))
        }
        Some("kprof") => Format::Kprof,
        Some("pprof") => Format::Pprof,
        Some(_) => Format::Html,
        None => {
            if !is_given {
                let sentence = "the name does not tell the format: end it with .html, .kprof, .pb.gz or .collapsed, or \
                                give --format";
                reader.refuse("output", sentence);
            }
            Format::Html
        }
    };
    if kind.is_some() && word.is_some() && !matches!(format, Format::Collapsed(_)) {
        reader.refuse("kind", "is for collapsed stacks: the other formats hold all kinds");
    }
    if matches!(source, Source::Difference { .. }) && format != Format::Html {
        reader.refuse("diff", "makes a page: the output must be HTML");
    }
    Output { path, format }
}

/// The kind of samples where there is no choice.
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

fn server(url: &str) -> Result<String, String> {
    let form = || format!("`{url}` is not the address of a server, such as {URL}");
    if url.starts_with("https://") {
        return Err(format!(
            "`{url}`: profiles are asked for without encryption: use http:// on the server's machine"
        ));
    }
    let address = url.strip_prefix("http://").unwrap_or(url);
    let address = address.strip_suffix('/').unwrap_or(address);
    let is_address = !address.is_empty() && !address.contains(['/', '?', '#', '@', ' ']);
    // Colons of an IPv6 address are within brackets.
    let after_host = address.rfind(']').map_or(address, |end| &address[end + 1..]);
    match after_host.split_once(':') {
        _ if !is_address => Err(form()),
        None => Ok(format!("{address}:80")),
        Some((_, port)) if port.parse::<u16>().is_ok() => Ok(address.to_owned()),
        Some(_) => Err(form()),
    }
}

fn events(text: &str) -> Result<Vec<String>, String> {
    let event = |word: &str| match word {
        "cpu" | "alloc" | "lock" => Ok(word.to_owned()),
        _ => Err(format!("`{word}` is none of cpu, alloc and lock")),
    };
    text.split(',').map(event).collect()
}

fn time(text: &str) -> Result<Duration, String> {
    match units::parse_time(text)? {
        time if (DURATION_MIN..=DURATION_MAX).contains(&time) => Ok(time),
        _ => Err(format!("`{text}` is not between 100ms and 60m")),
    }
}

fn rate_hz(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(rate_hz @ 1..=1000) => Ok(rate_hz),
        _ => Err(format!("`{text}` is not a whole number from 1 to 1000")),
    }
}

fn engine(text: &str) -> Result<String, String> {
    match ENGINES.contains(&text) {
        true => Ok(text.to_owned()),
        false => Err(format!("`{text}` is neither timer nor perf")),
    }
}

fn kind(text: &str) -> Result<Kind, String> {
    let found = Kind::ALL.into_iter().find(|kind| kind.name() == text);
    found.ok_or_else(|| format!("`{text}` is none of {}", KINDS.join(", ")))
}

#[cfg(test)]
mod tests;
