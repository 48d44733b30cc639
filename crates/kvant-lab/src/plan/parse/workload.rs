//! `[workload.NAME]`: requests.

use super::rate::rate_or_0;
use super::values::{Defaults, connection_count, number, part, positive_time, thread_count};
use crate::plan::reader::{Name, Table, Value};
use crate::plan::{Beside, PlannedRate, Requests, Workload};
use kvant_load::config::SPIN_ALWAYS;
use kvant_load::workload::{KeyBytes, KeyDist, Kind, Mix, ValueBytes, WorkloadConfig};
use kvant_load::{Arrival, StatusSet, request, units};
use std::path::PathBuf;
use std::time::Duration;

/// Keys of a workload.
pub(in crate::plan) const KEYS: &[&str] = &[
    "kind",
    "mix",
    "keys",
    "key-dist",
    "key-bytes",
    "value-bytes",
    "hit-ratio",
    "range-records",
    "seed",
    "script",
    "args",
    "method",
    "path",
    "body",
    "command",
    "count-after",
    "count-is",
    "connections",
    "threads",
    "arrival",
    "ok",
    "timeout",
    "spin",
    "beside",
    "changes-data",
    "empty",
];

/// Keys of the load beside a workload.
pub(in crate::plan) const BESIDE_KEYS: &[&str] = &[
    "kind",
    "mix",
    "keys",
    "key-dist",
    "key-bytes",
    "value-bytes",
    "hit-ratio",
    "range-records",
    "seed",
    "script",
    "args",
    "method",
    "path",
    "body",
    "connections",
    "threads",
    "arrival",
    "ok",
    "timeout",
    "rate",
    "idle",
    "slow-heads",
];

/// Keys of requests in place of a workload's.
pub(in crate::plan) const REQUEST_KEYS: &[&str] = &[
    "kind",
    "mix",
    "keys",
    "key-dist",
    "key-bytes",
    "value-bytes",
    "hit-ratio",
    "range-records",
    "seed",
    "script",
    "args",
    "method",
    "path",
    "body",
    "command",
    "count-after",
    "count-is",
];

/// Deadline of a request, as in `kvant load`.
const TIMEOUT: Duration = Duration::from_secs(2);
/// As in `kvant load`: about the time of a wake-up.
const SPIN: Duration = Duration::from_micros(20);

/// The native workload with default settings.
pub(super) fn of_kind(name: &str, kind: Kind, defaults: &Defaults) -> Workload {
    let config = WorkloadConfig { mix: Mix::only(kind), ..defaults.workload.clone() };
    Workload {
        name: name.to_owned(),
        connection_count: defaults.connection_count,
        thread_count: defaults.thread_count.min(defaults.connection_count),
        arrival: Arrival::Uniform,
        seed: defaults.workload.seed,
        ok_statuses: config.expected_statuses(),
        changes_data: changes_data(&Requests::Native(config.clone())),
        requests: Requests::Native(config),
        timeout: TIMEOUT,
        spin: SPIN,
        beside: None,
        starts_empty: false,
    }
}

/// Reads `[workload.NAME]`, or `NAME = "get"`.
pub(super) fn workload(name: Name<'_>, value: &Value<'_>, defaults: &Defaults) -> Option<Workload> {
    if value.as_text().is_some() {
        let kind = value.parse(name.text, Kind::parse)?;
        return Some(of_kind(name.text, kind, defaults));
    }
    let table = value.table(&format!("workload `{}`", name.text), KEYS)?;
    let mut workload = loads(&table, name, defaults)?;
    workload.spin = table.parse("spin", spin).unwrap_or(SPIN);
    if let Some(value) = table.value("beside") {
        workload.beside = beside(&value, name, defaults).map(Box::new);
    }
    let changes = |beside: &Beside| changes_data(&beside.workload.requests);
    let changes_data =
        changes_data(&workload.requests) || workload.beside.as_deref().is_some_and(changes);
    workload.changes_data = table.switch("changes-data").unwrap_or(changes_data);
    workload.starts_empty = table.flag("empty");
    table.finish();
    Some(workload)
}

/// Reads `beside = { ... }`.
fn beside(value: &Value<'_>, of: Name<'_>, defaults: &Defaults) -> Option<Beside> {
    let table = value.table(&format!("the load beside `{}`", of.text), BESIDE_KEYS)?;
    let name = Name { text: "beside", at: value.at };
    let is_idle = table.flag("idle");
    let rate = table.parse("rate", rate_or_0);
    if is_idle && rate.is_some() {
        table.refuse("an idle crowd has no rate: leave `idle` or `rate` out");
    }
    let slow_heads = if is_idle { table.parse("slow-heads", connection_count) } else { None };
    let workload = loads(&table, name, defaults)?;
    let slow_head_count = slow_heads.unwrap_or(0);
    if slow_head_count > workload.connection_count {
        table.refuse(format!(
            "{slow_head_count} slow heads need as many connections, and there are {}",
            workload.connection_count
        ));
    }
    table.finish();
    let rate = (!is_idle).then(|| rate.unwrap_or(PlannedRate::Fixed(0.0)));
    Some(Beside { workload, rate, slow_head_count })
}

/// The part that workloads and the load beside them have in common.
fn loads(table: &Table<'_>, name: Name<'_>, defaults: &Defaults) -> Option<Workload> {
    let requests = requests(table, name, defaults);
    let connections = table.parse("connections", connection_count);
    let threads = table.parse("threads", thread_count);
    let connection_count = connections.unwrap_or(defaults.connection_count);
    let thread_count = threads.unwrap_or(defaults.thread_count.min(connection_count));
    if thread_count > connection_count {
        let at = table.value("threads").map_or(table.at, |value| value.at);
        let connections = units::counted(connection_count as u64, "connection", "connections");
        table.refuse_at(at, format!("{thread_count} threads for {connections}: each needs one"));
    }
    let ok = StatusSet::new(table.list("ok", status).unwrap_or_default());
    let arrival = table.parse("arrival", arrival).unwrap_or(Arrival::Uniform);
    let timeout = table.parse("timeout", positive_time).unwrap_or(TIMEOUT);
    let requests = requests?;
    let expected = match &requests {
        Requests::Native(config) => config.expected_statuses(),
        _ => StatusSet::default(),
    };
    Some(Workload {
        name: name.text.to_owned(),
        requests,
        connection_count,
        thread_count,
        arrival,
        seed: defaults.workload.seed,
        ok_statuses: ok.union(&expected),
        timeout,
        spin: SPIN,
        beside: None,
        changes_data: false,
        starts_empty: false,
    })
}

/// What makes the requests.
pub(super) fn requests(table: &Table<'_>, name: Name<'_>, defaults: &Defaults) -> Option<Requests> {
    let ways = ["kind", "script", "path", "command"];
    let given: Vec<&str> = ways.into_iter().filter(|way| table.has(way)).collect();
    match given[..] {
        [] | ["kind"] => native(table, name, defaults).map(Requests::Native),
        ["script"] => Some(Requests::Script {
            file: PathBuf::from(table.text("script")?),
            args: table.texts("args"),
        }),
        ["path"] => {
            let body = table.text("body").map(String::into_bytes);
            let method = table.parse("method", method);
            let default = if body.is_some() { "POST" } else { "GET" };
            Some(Requests::Fixed {
                method: method.unwrap_or_else(|| default.to_owned()),
                path: table.parse("path", path)?,
                body,
            })
        }
        ["command"] => command(table),
        [first, second, ..] => {
            table.refuse_at(
                name.at,
                format!(
                    "`{}` has both `{first}` and `{second}`, which make requests: leave one of \
                     them out",
                    name.text
                ),
            );
            None
        }
        [_] => None,
    }
}

fn command(table: &Table<'_>) -> Option<Requests> {
    let command = table.command("command");
    let count_after = table.text("count-after");
    if count_after.is_none() {
        table.refuse(
            "the text in front of the number of responses in the command's output is missing: \
             write count-after",
        );
    }
    let is_rate = table.parse("count-is", |text| match text {
        "total" => Ok(false),
        "per-second" => Ok(true),
        _ => Err(format!("`{text}` is neither total nor per-second")),
    });
    Some(Requests::Command {
        command: command?,
        count_after: count_after?,
        is_rate: is_rate.unwrap_or(false),
    })
}

fn native(table: &Table<'_>, name: Name<'_>, defaults: &Defaults) -> Option<WorkloadConfig> {
    let given_mix = table.parse("mix", Mix::parse);
    let kind = match table.value("kind") {
        Some(kind) => {
            kind.parse("kind", |text| Mix::of_workload(text, None).map(|_| text.to_owned()))?
        }
        None if given_mix.is_some() => "mixed".to_owned(),
        None => kind_in_name(table, name)?,
    };
    let mix = match Mix::of_workload(&kind, given_mix) {
        Ok(mix) => mix,
        Err(problem) => {
            table.refuse_at(name.at, format!("`{}`: {problem}", name.text));
            return None;
        }
    };
    let default = WorkloadConfig { mix, ..defaults.workload.clone() };
    let config = WorkloadConfig {
        key_count: table.parse("keys", units::parse_count).unwrap_or(default.key_count),
        key_dist: table.parse("key-dist", KeyDist::parse).unwrap_or(default.key_dist),
        key_bytes: table.parse("key-bytes", KeyBytes::parse).unwrap_or(default.key_bytes),
        value_bytes: table.parse("value-bytes", ValueBytes::parse).unwrap_or(default.value_bytes),
        ttl_s: None,
        hit_ratio: table.parse("hit-ratio", part).unwrap_or(default.hit_ratio),
        range_records: table
            .parse("range-records", units::parse_count)
            .unwrap_or(default.range_records),
        seed: table.parse("seed", number).unwrap_or(default.seed),
        ..default
    };
    for problem in config.problems() {
        table.refuse_at(name.at, format!("`{}`: {problem}", name.text));
    }
    Some(config)
}

/// The kind that is the first word of a name, such as `get-existing`.
fn kind_in_name(table: &Table<'_>, name: Name<'_>) -> Option<String> {
    let word = name.text.split('-').next().unwrap_or_default();
    if Mix::of_workload(word, None).is_ok() {
        return Some(word.to_owned());
    }
    table.refuse_at(
        name.at,
        format!("`{}` requests nothing: write kind, mix, script, path or command", name.text),
    );
    None
}

/// Whether requests change the data. A script or a program may.
fn changes_data(requests: &Requests) -> bool {
    match requests {
        Requests::Native(config) => config.mix.has(Kind::Put) || config.mix.has(Kind::Delete),
        Requests::Fixed { method, .. } => !["GET", "HEAD", "OPTIONS"].contains(&method.as_str()),
        Requests::Script { .. } | Requests::Command { .. } => true,
    }
}

/// A path of a URL.
pub(super) fn path(text: &str) -> Result<String, String> {
    match text.starts_with('/') && !text.contains(char::is_whitespace) {
        true => Ok(text.to_owned()),
        false => Err(format!("`{text}` is no path: write / and what follows, such as /v0/status")),
    }
}

fn spin(text: &str) -> Result<Duration, String> {
    if text == "always" { Ok(SPIN_ALWAYS) } else { units::parse_time(text) }
}

fn method(text: &str) -> Result<String, String> {
    let checked = request::check_method(text).map(|()| text.to_owned());
    checked.map_err(|error| error.message().to_owned())
}

fn status(text: &str) -> Result<u16, String> {
    match text.parse() {
        Ok(status @ 100..=999) => Ok(status),
        _ => Err(format!("`{text}` is not an HTTP status, such as 404")),
    }
}

fn arrival(text: &str) -> Result<Arrival, String> {
    let known = Arrival::ALL.into_iter().find(|arrival| arrival.name() == text);
    known.ok_or_else(|| format!("`{text}` is none of uniform, poisson and wrk2"))
}
