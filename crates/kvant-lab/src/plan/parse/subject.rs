//! `[subject.NAME]`: a server.

use super::values::{Defaults, positive_time};
use super::workload::{self, REQUEST_KEYS};
use crate::plan::places::{Places, Referred};
use crate::plan::reader::{Name, Table, Value, words};
use crate::plan::{Requests, Subject, SubjectKind};
use kvant_load::{Target, units};
use std::path::PathBuf;
use std::time::Duration;

/// Keys of a subject.
pub(in crate::plan) const KEYS: &[&str] = &[
    "serve",
    "program",
    "command",
    "prepare",
    "environment",
    "install",
    "url",
    "ready",
    "ready-max",
    "workloads",
    "fixed-response",
    "fill",
    "warmup-min",
    "profile",
    "requests",
];

const READY_MAX: Duration = Duration::from_secs(60);
/// Path that says whether another server is ready.
pub(super) const READY_OTHER: &str = "/v0/status";

/// A Kvant with default options.
pub(super) fn kvant(name: &str) -> Subject {
    Subject {
        name: name.to_owned(),
        kind: SubjectKind::Kvant { program: None, options: Vec::new() },
        ready: "/health".to_owned(),
        ready_max: READY_MAX,
        workloads: Vec::new(),
        has_fixed_response: false,
        fill_command: Vec::new(),
        warmup_min: Duration::ZERO,
        is_profiled: false,
        requests: Vec::new(),
    }
}

/// Reads `[subject.NAME]`.
pub(super) fn subject(
    name: Name<'_>,
    value: &Value<'_>,
    defaults: &Defaults,
    places: &mut Places,
) -> Option<Subject> {
    let what = format!("subject `{}`", name.text);
    let table = value.table(&what, KEYS)?;
    let kind = kind(&table, &what, name)?;
    let is_kvant = matches!(kind, SubjectKind::Kvant { .. });
    let ready = match &kind {
        SubjectKind::Kvant { .. } => None,
        _ => table.parse("ready", path_or_nothing).or_else(|| Some(READY_OTHER.to_owned())),
    };
    let subject = Subject {
        kind,
        ready: ready.unwrap_or_else(|| "/health".to_owned()),
        ready_max: table.parse("ready-max", positive_time).unwrap_or(READY_MAX),
        workloads: places.names(&table, "workloads", Referred::Workload),
        has_fixed_response: !is_kvant && table.flag("fixed-response"),
        fill_command: if is_kvant { None } else { table.command("fill") }.unwrap_or_default(),
        warmup_min: table.parse("warmup-min", units::parse_time).unwrap_or(Duration::ZERO),
        is_profiled: table.flag("profile"),
        requests: if is_kvant { Vec::new() } else { requests(&table, defaults, places) },
        ..kvant(name.text)
    };
    table.finish();
    Some(subject)
}

fn kind(table: &Table<'_>, what: &str, name: Name<'_>) -> Option<SubjectKind> {
    let is_kvant = table.has("serve") || table.has("program");
    match (is_kvant, table.has("command"), table.has("url")) {
        (_, false, false) => Some(SubjectKind::Kvant {
            program: table.text("program").map(PathBuf::from),
            options: named_texts(table, "serve"),
        }),
        (false, true, false) => Some(SubjectKind::Command {
            prepare: commands(table, "prepare"),
            command: table.command("command")?,
            environment: named_texts(table, "environment"),
            install: table.text("install"),
        }),
        (false, false, true) => table.parse("url", url).map(SubjectKind::Url),
        _ => {
            table.refuse_at(
                name.at,
                format!("{what} is started in two ways: write only one of serve, command and url"),
            );
            None
        }
    }
}

/// Keys and texts of a table, such as options.
fn named_texts(table: &Table<'_>, key: &str) -> Vec<(String, String)> {
    let Some(value) = table.value(key) else { return Vec::new() };
    let text = |(name, value): &(Name<'_>, Value<'_>)| {
        let text = value.parse(name.text, |text| Ok::<_, String>(text.to_owned()))?;
        Some((name.text.to_owned(), text))
    };
    value.named(&format!("`{key}`")).iter().filter_map(text).collect()
}

/// A command, or an array of commands.
fn commands(table: &Table<'_>, key: &str) -> Vec<Vec<String>> {
    let Some(value) = table.value(key) else { return Vec::new() };
    value.elements().iter().filter_map(|element| words(element, key)).collect()
}

fn requests(
    table: &Table<'_>,
    defaults: &Defaults,
    places: &mut Places,
) -> Vec<(String, Requests)> {
    let Some(value) = table.value("requests") else { return Vec::new() };
    let requests = |(name, value): (Name<'_>, Value<'_>)| {
        places.references.push((Referred::Workload, name.text.to_owned(), name.at));
        let what = format!("the requests of `{}`", name.text);
        let table = value.table(&what, REQUEST_KEYS)?;
        let requests = workload::requests(&table, name, defaults);
        table.finish();
        Some((name.text.to_owned(), requests?))
    };
    value.named("`requests`").into_iter().filter_map(requests).collect()
}

fn path_or_nothing(text: &str) -> Result<String, String> {
    match text {
        "" => Ok(String::new()),
        path => super::workload::path(path),
    }
}

pub(super) fn url(text: &str) -> Result<String, String> {
    Target::parse(text).map(|_| text.to_owned()).map_err(|error| error.to_string())
}
