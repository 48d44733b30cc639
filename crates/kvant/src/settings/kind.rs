//! What the value of a setting looks like, and the parsers that the size and duration modules do
//! not have.

use kvant_base::duration;
use kvant_engine::SyncLevel;
use std::net::SocketAddr;
use std::path::PathBuf;

/// The shape of a value: its name in help texts and how it is written in TOML.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    /// `IP:PORT`.
    Addr,
    /// A file or directory.
    Path,
    /// Bytes, or with a unit.
    Size,
    /// A number with a unit of time.
    Duration,
    /// A whole number.
    Count,
    /// One of a few words.
    Choice(&'static [Choice]),
    /// One of a few forms, shown as given here.
    Form(&'static str),
    /// On or off; the flag alone switches it on.
    Switch,
}

/// A word that a setting accepts, or will.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Choice {
    pub(crate) word: &'static str,
    pub(crate) presence: Presence,
}

/// Whether a word can be used in this version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Presence {
    Exists,
    Planned,
}

/// A word that can be used.
pub(crate) const fn exists(word: &'static str) -> Choice {
    Choice { word, presence: Presence::Exists }
}

/// A word that a later version will know.
pub(crate) const fn planned(word: &'static str) -> Choice {
    Choice { word, presence: Presence::Planned }
}

impl Kind {
    /// What stands for the value in help texts; words that cannot be used yet are left out.
    pub(crate) fn value_name(self) -> String {
        match self {
            Kind::Addr => "IP:PORT".to_string(),
            Kind::Path => "PATH".to_string(),
            Kind::Size => "BYTES".to_string(),
            Kind::Duration => "DURATION".to_string(),
            Kind::Count => "N".to_string(),
            Kind::Choice(choices) => words(choices, Presence::Exists).join("|"),
            Kind::Form(form) => form.to_string(),
            Kind::Switch => "true|false".to_string(),
        }
    }

    /// `text` as a TOML value.
    pub(crate) fn toml_literal(self, text: &str) -> String {
        match (self, text.trim().parse::<u64>()) {
            (Kind::Switch, _) => text.to_string(),
            // Not as given: `007` is a number to us and an error in TOML.
            (Kind::Count, Ok(number)) => number.to_string(),
            _ => toml::Value::from(text).to_string(),
        }
    }
}

/// The words of `choices` that are (or are not yet) there.
pub(crate) fn words(choices: &[Choice], presence: Presence) -> Vec<&'static str> {
    choices.iter().filter(|choice| choice.presence == presence).map(|choice| choice.word).collect()
}

/// Finds `text` among `choices`; `what` names them in the refusal.
pub(crate) fn choose(what: &str, choices: &[Choice], text: &str) -> Result<&'static str, String> {
    let usable = words(choices, Presence::Exists).join(", ");
    match choices.iter().find(|choice| choice.word == text) {
        Some(Choice { word, presence: Presence::Exists }) => Ok(word),
        Some(_) => Err(format!("{what} `{text}` does not exist yet: use {usable}")),
        None => Err(format!("there is no {what} `{text}`: use {usable}")),
    }
}

/// Parses `IP:PORT`. Names are not looked up: what is listened on must not depend on a name server.
pub(crate) fn addr(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| {
        format!("`{text}` is not an address: write IP:PORT, such as 127.0.0.1:8080 or [::1]:8080")
    })
}

/// Any path but the empty one.
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
    /// What the masks of Linux hold.
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

/// Names of hosts, with commas between them.
pub(crate) fn hosts(text: &str) -> Result<Vec<String>, String> {
    let names = text.split(',').map(str::trim);
    let checked = names.map(|name| match kvant_server::allowed_host_problem(name) {
        Some(problem) => Err(problem),
        None => Ok(name.to_string()),
    });
    checked.collect()
}

/// `true` or `false`.
pub(crate) fn switch(text: &str) -> Result<bool, String> {
    text.parse().map_err(|_| format!("`{text}` is neither true nor false"))
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
