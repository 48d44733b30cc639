//! The parameters of a profile: the query, and the header `Accept`.

use crate::http::Problem;
use crate::http::query::{self, bad_parameter, bad_query};
use http::header::{GetAll, HeaderValue};
use kvant_base::duration;
use kvant_base::wait::WaitKind;
use kvant_profiler::collect::Engine;
use kvant_profiler::recording::Kind;
use kvant_profiler::render::Format;
use kvant_profiler::symbols::Identities;
use std::time::Duration;

/// Bounds of a recording's duration, and the default.
const DURATION_MIN: Duration = Duration::from_millis(100);
const DURATION_MAX: Duration = Duration::from_secs(3600);
const DURATION_DEFAULT: Duration = Duration::from_secs(30);
/// Samples per second of CPU time. The kernel bounds them too.
const RATE_HZ_MAX: u32 = 1000;

const PARAMETERS: &[&str] = &["event", "duration", "format", "rate", "engine", "kind", "known"];

#[derive(Debug, PartialEq)]
pub(super) struct ProfileRequest {
    pub(super) events: ProfiledEvents,
    /// The rate of CPU samples; `None`: the best for the system.
    pub(super) rate_hz: Option<u32>,
    pub(super) engine: Engine,
    pub(super) duration: Duration,
    pub(super) format: Format,
    /// The binaries whose symbols the client resolves itself.
    pub(super) known: Identities,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ProfiledEvents {
    pub(super) cpu: bool,
    pub(super) alloc: bool,
    pub(super) lock: bool,
}

impl ProfileRequest {
    /// Reads the query. `Accept` selects the format if the query does not name one.
    pub(super) fn read(
        query: Option<&str>,
        accept: GetAll<'_, HeaderValue>,
    ) -> Result<ProfileRequest, Problem> {
        query::only(query, PARAMETERS)?;
        let text = |name| query::text(query, name);
        let events =
            text("event")?.map_or(Ok(ProfiledEvents::ALL), |text| ProfiledEvents::read(&text))?;
        let rate_hz = text("rate")?.map(|text| rate_hz(&text)).transpose()?;
        if rate_hz.is_some() && !events.cpu {
            return Err(bad_query("`rate` is that of CPU samples, and `event` has no cpu".into()));
        }
        let engine = match text("engine")?.as_deref() {
            None => Engine::default(),
            Some(_) if !events.cpu => {
                return Err(bad_query("`engine` takes CPU samples, and `event` has no cpu".into()));
            }
            Some("timer") => Engine::Timer,
            Some("perf") => Engine::Perf,
            Some(word) => return Err(bad_parameter("engine", word, "timer or perf")),
        };
        let duration = text("duration")?.map_or(Ok(DURATION_DEFAULT), |text| time(&text))?;
        let word = match text("format")? {
            Some(word) => word,
            None => accepted(accept).to_owned(),
        };
        let kind = text("kind")?;
        let format = match (&word[..], kind) {
            ("collapsed", kind) => Format::Collapsed(events.one_kind(kind.as_deref())?),
            (_, Some(_)) => {
                return Err(bad_query("`kind` is for format=collapsed, which has one kind".into()));
            }
            (word, None) => Format::parse(word, Kind::Cpu).ok_or_else(|| {
                bad_parameter("format", word, "one of html, kprof, pprof, collapsed")
            })?,
        };
        Ok(ProfileRequest {
            events,
            rate_hz,
            engine,
            duration,
            format,
            known: Identities::of_text(&text("known")?.unwrap_or_default()),
        })
    }
}

impl ProfiledEvents {
    const ALL: ProfiledEvents = ProfiledEvents { cpu: true, alloc: true, lock: true };

    fn read(text: &str) -> Result<ProfiledEvents, Problem> {
        let mut events = ProfiledEvents::default();
        for word in text.split(',') {
            match word {
                "cpu" => events.cpu = true,
                "alloc" => events.alloc = true,
                "lock" => events.lock = true,
                word => return Err(bad_parameter("event", word, "one of cpu, alloc, lock")),
            }
        }
        Ok(events)
    }

    fn has(self, kind: Kind) -> bool {
        match kind {
            Kind::Cpu => self.cpu,
            Kind::Alloc => self.alloc,
            Kind::Wait(_) | Kind::Holder => self.lock,
        }
    }

    /// The kind with this name; without a name, the kind of the only event.
    fn one_kind(self, name: Option<&str>) -> Result<Kind, Problem> {
        let Some(name) = name else {
            return match self {
                ProfiledEvents { cpu: true, alloc: false, lock: false } => Ok(Kind::Cpu),
                ProfiledEvents { cpu: false, alloc: true, lock: false } => Ok(Kind::Alloc),
                ProfiledEvents { cpu: false, alloc: false, lock: true } => Ok(Kind::Wait(WaitKind::Contention)),
                _ => Err(bad_query(
                    "format=collapsed has one kind of samples: name one event, such as event=cpu, or the `kind`".into(),
                )),
            };
        };
        let found = Kind::ALL.into_iter().find(|kind| kind.name() == name);
        let kind = found.ok_or_else(|| {
            bad_parameter(
                "kind",
                name,
                "one of cpu, alloc, contention, idle, backpressure, io, scheduler, holder",
            )
        })?;
        if !self.has(kind) {
            return Err(bad_query(format!(
                "`kind` is {name}, which none of the events in `event` records"
            )));
        }
        Ok(kind)
    }
}

/// The format that `Accept` headers select; the page if they name none of these.
fn accepted(accept: GetAll<'_, HeaderValue>) -> &'static str {
    let ranges =
        accept.iter().filter_map(|value| value.to_str().ok()).flat_map(|value| value.split(','));
    let mut media_types = ranges.map(|range| range.split(';').next().unwrap_or("").trim());
    let ours = |media_type: &str| match &media_type.to_ascii_lowercase()[..] {
        "text/html" => Some("html"),
        "application/vnd.kvant.profile" => Some("kprof"),
        "application/gzip" => Some("pprof"),
        "text/plain" => Some("collapsed"),
        _ => None,
    };
    media_types.find_map(ours).unwrap_or("html")
}

fn rate_hz(text: &str) -> Result<u32, Problem> {
    match text.parse() {
        Ok(rate_hz @ 1..=RATE_HZ_MAX) if text.bytes().all(|byte| byte.is_ascii_digit()) => {
            Ok(rate_hz)
        }
        _ => Err(bad_parameter("rate", text, "a whole number of samples a second from 1 to 1000")),
    }
}

fn time(text: &str) -> Result<Duration, Problem> {
    match duration::parse(text) {
        Ok(time) if (DURATION_MIN..=DURATION_MAX).contains(&time) => Ok(time),
        _ => Err(bad_parameter("duration", text, "a time from 100ms to 60m, such as 30s")),
    }
}

#[cfg(test)]
mod tests;
