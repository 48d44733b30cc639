//! Kinds of values, and the parsers that the size and duration modules do not have.

use kvant_base::duration;
use kvant_engine::SyncLevel;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// The shape of a value: its name in help texts and how it is written in TOML.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    /// `IP:PORT`.
    Addr,
    Path,
    /// Bytes, or with a unit.
    Size,
    /// A number with a unit of time.
    Duration,
    Count,
    /// One of a few words.
    Choice(fn() -> Vec<&'static str>),
    /// One of a few forms, as help texts show them.
    Form(&'static str),
    /// On or off; the flag alone switches it on.
    Switch,
}

impl Kind {
    /// The placeholder of the value in help texts.
    pub(crate) fn value_name(self) -> String {
        match self {
            Kind::Addr => "IP:PORT".to_string(),
            Kind::Path => "PATH".to_string(),
            Kind::Size => "BYTES".to_string(),
            Kind::Duration => "DURATION".to_string(),
            Kind::Count => "N".to_string(),
            Kind::Choice(words) => words().join("|"),
            Kind::Form(form) => form.to_string(),
            Kind::Switch => "true|false".to_string(),
        }
    }

    /// `text` as a TOML value.
    pub(crate) fn toml_literal(self, text: &str) -> String {
        match (self, text.trim().parse::<u64>()) {
            (Kind::Switch, _) => text.to_string(),
            // Normalized: `007` is a number here and an error in TOML.
            (Kind::Count, Ok(number)) => number.to_string(),
            _ => toml::Value::from(text).to_string(),
        }
    }
}

pub(crate) fn words<T>(choices: &[(&'static str, T)]) -> Vec<&'static str> {
    choices.iter().map(|(word, _)| *word).collect()
}

/// The value of `text` among `choices`; `what` names them in the error.
pub(crate) fn choose<T: Copy>(
    what: &str,
    choices: &[(&'static str, T)],
    text: &str,
) -> Result<T, String> {
    let choice = choices.iter().find(|(word, _)| *word == text);
    choice
        .map(|(_, value)| *value)
        .ok_or_else(|| format!("there is no {what} `{text}`: use {}", words(choices).join(", ")))
}

/// Parses `IP:PORT`. Names are not looked up: the listener must not depend on a name server.
pub(crate) fn addr(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| {
        format!("`{text}` is not an address: write IP:PORT, such as 127.0.0.1:8080 or [::1]:8080")
    })
}

/// A path that is not empty.
pub(crate) fn path(text: &str) -> Result<PathBuf, String> {
    if text.is_empty() { Err("the path is empty".to_string()) } else { Ok(PathBuf::from(text)) }
}

/// A whole number within `1..=max`.
pub(crate) fn count(text: &str, max: usize) -> Result<usize, String> {
    let number = text.trim().parse().ok().filter(|number| (1..=max).contains(number));
    number.ok_or_else(|| format!("`{text}` is not a whole number from 1 to {max}"))
}

/// CPUs: numbers and ranges of numbers, in the order given.
pub(crate) fn cpus(text: &str) -> Result<Vec<usize>, String> {
    /// The largest number in a CPU mask of Linux.
    const CPU_MAX: usize = 1023;
    let number = |text: &str| text.trim().parse().ok().filter(|&cpu| cpu <= CPU_MAX);
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (number(first)?, number(last)?);
        (first <= last).then_some(first..=last)
    };
    let ranges: Option<Vec<_>> = text.split(',').map(range).collect();
    let ranges = ranges.ok_or_else(|| {
        format!("`{text}` is not a list of CPUs: write numbers and ranges from 0 to {CPU_MAX}, such as 0,2-3")
    })?;
    Ok(ranges.into_iter().flatten().collect())
}

pub(crate) fn hosts(text: &str) -> Result<Vec<String>, String> {
    let names = text.split(',').map(str::trim);
    let checked = names
        .map(|name| kvant_server::allowed_host_problem(name).map_or(Ok(name.to_string()), Err));
    checked.collect()
}

/// `true` or `false`.
pub(crate) fn switch(text: &str) -> Result<bool, String> {
    text.parse().map_err(|_| format!("`{text}` is neither true nor false"))
}

pub(crate) fn positive_duration(text: &str) -> Result<Duration, String> {
    let parsed = duration::parse(text)?;
    if parsed.is_zero() { Err("must be longer than zero".to_string()) } else { Ok(parsed) }
}

/// A duration, or `0`, which needs no unit.
pub(crate) fn duration_or_zero(text: &str) -> Result<Duration, String> {
    if text.trim() == "0" { Ok(Duration::ZERO) } else { duration::parse(text) }
}

/// `os`, `interval=DURATION` or `always`.
pub(crate) fn sync(text: &str) -> Result<SyncLevel, String> {
    if let Some(interval) = text.strip_prefix("interval=") {
        let interval = duration::parse(interval)?;
        return match interval.is_zero() {
            true => Err("a sync interval of zero: use `always`".to_string()),
            false => Ok(SyncLevel::Interval(interval)),
        };
    }
    match text {
        "os" => Ok(SyncLevel::Os),
        "always" => Ok(SyncLevel::Always),
        _ => Err(format!(
            "`{text}` is not a sync level: write os, interval=1s (any duration) or always"
        )),
    }
}
