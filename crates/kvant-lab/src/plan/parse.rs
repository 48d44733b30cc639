//! TOML to [`Plan`]: the top of the file. Each part has a file of its own.
//!
//! Invariant: parsing goes on after a problem, so that all problems are reported together. The plan
//! is used only if there is none.

mod data;
mod known;
mod phase;
mod rate;
mod subject;
mod sweep;
mod values;
mod workload;

use super::check;
use super::places::{Places, Referred};
use super::problem::{Problem, Problems};
use super::reader::{Name, Report, Table, Value, document};
use super::{Phase, Plan, Subject, SubjectKind, Workload};
use kvant_env::host;
use kvant_load::assertion::Assertion;
use kvant_load::units;
use kvant_load::workload::{Kind, Mix, WorkloadConfig};
use std::path::Path;
use values::{
    Defaults, connection_count, cpu_list, number, objective, positive_time, repeats, thread_count,
};

/// Keys at the top of a plan.
pub(super) const KEYS: &[&str] = &[
    "title",
    "seed",
    "repeats",
    "objectives",
    "server-cpus",
    "generator-cpus",
    "connections",
    "threads",
    "duration",
    "warmup",
    "subject",
    "data",
    "workload",
    "phase",
    "sweep",
    "known",
];

/// The tables of a plan and their keys, with the names of their definitions in
/// `docs/lab-plan.schema.json`.
#[cfg(test)]
pub(super) const TABLES: &[(&str, &[&str])] = &[
    ("plan", KEYS),
    ("subject", subject::KEYS),
    ("otherRequests", workload::REQUEST_KEYS),
    ("data", data::KEYS),
    ("workload", workload::KEYS),
    ("beside", workload::BESIDE_KEYS),
    ("phase", phase::KEYS),
    ("sweep", sweep::KEYS),
    ("known", known::KEYS),
];
/// Names of figures in `[[known]]`.
#[cfg(test)]
pub(super) const FIGURES: &[&str] = known::FIGURES;

/// Longest name of a subject, workload or phase, in characters.
const NAME_CHARS_MAX: usize = 60;

impl Plan {
    /// Reads a plan.
    ///
    /// # Errors
    /// Every problem of the file.
    pub fn read(path: &Path) -> Result<Plan, Problems> {
        let text = host::read_text(path).map_err(|error| Problems {
            path: path.to_owned(),
            problems: vec![Problem { place: None, sentence: format!("cannot be read: {error}") }],
        })?;
        Plan::parse(&text, path)
    }

    /// Parses the text of a plan. `path` gives its name and the directory of relative paths.
    ///
    /// # Errors
    /// Every problem of the text.
    pub fn parse(text: &str, path: &Path) -> Result<Plan, Problems> {
        let report = Report::default();
        let plan = parse(text, path, &report);
        let problems = report.into_problems(text);
        match plan {
            Some(plan) if problems.is_empty() => Ok(plan),
            _ => Err(Problems { path: path.to_owned(), problems }),
        }
    }
}

/// A Kvant with default options.
pub(super) fn kvant(name: &str) -> Subject {
    subject::kvant(name)
}

/// A server that runs already.
///
/// # Errors
/// What is wrong with the URL.
pub(super) fn running(name: &str, url: &str) -> Result<Subject, String> {
    let kind = SubjectKind::Url(subject::url(url)?);
    Ok(Subject { kind, ready: subject::READY_OTHER.to_owned(), ..subject::kvant(name) })
}

/// The plan, or `None` if the text is no TOML. It must not be used if there are problems.
fn parse(text: &str, path: &Path, report: &Report) -> Option<Plan> {
    let document = document(text, report)?;
    let table = Table::new(report, document.get_ref(), 0, "a plan", KEYS);
    let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let mut places = Places::default();
    let seed = table.parse("seed", number).unwrap_or(1);
    let mut defaults = Defaults {
        connection_count: table.parse("connections", connection_count).unwrap_or(64),
        thread_count: table.parse("threads", thread_count).unwrap_or(1),
        duration: table.parse("duration", positive_time),
        warmup: table.parse("warmup", units::parse_time),
        workload: WorkloadConfig { seed, ..WorkloadConfig::new(Mix::only(Kind::Put)) },
    };
    let data = data::data(&table, &mut defaults);
    let workloads = workloads(&table, &defaults, &mut places);
    let plan = Plan {
        title: table.text("title").unwrap_or_else(|| name.clone()),
        name,
        text: text.to_owned(),
        dir: path.parent().unwrap_or(Path::new("")).to_owned(),
        seed,
        repeats: table.parse("repeats", repeats).unwrap_or(3),
        objectives: table
            .list("objectives", objective)
            .or_else(|| Some(vec![Assertion::parse("p99<5ms").ok()?]))
            .unwrap_or_default(),
        server_cpus: cpus(&table, "server-cpus"),
        generator_cpus: cpus(&table, "generator-cpus"),
        subjects: subjects(&table, &defaults, &mut places),
        data: data.or_needed(&workloads, &defaults),
        workloads,
        phases: phases(&table, &defaults, &mut places),
        sweep: sweep::sweep(&table, &mut places),
        known: known::known(&table, &mut places),
        shortened: Vec::new(),
        comparison: None,
        intervention: None,
        what_if: None,
    };
    table.finish();
    check::check(&plan, &places, report);
    Some(plan)
}

fn subjects(table: &Table<'_>, defaults: &Defaults, places: &mut Places) -> Vec<Subject> {
    let named = named(table, Referred::Subject, places);
    if named.is_empty() && !table.has("subject") {
        places.subjects.push(table.at);
        return vec![subject::kvant("kvant")];
    }
    let mut subjects = Vec::new();
    for (name, value) in named {
        let subject = subject::subject(name, &value, defaults, places);
        places.has_gaps |= subject.is_none();
        places.subjects.extend(subject.is_some().then_some(name.at));
        subjects.extend(subject);
    }
    subjects
}

fn workloads(table: &Table<'_>, defaults: &Defaults, places: &mut Places) -> Vec<Workload> {
    let named = named(table, Referred::Workload, places);
    if named.is_empty() && !table.has("workload") {
        places.workloads.push(table.at);
        return vec![workload::of_kind("get", Kind::Get, defaults)];
    }
    let mut workloads = Vec::new();
    for (name, value) in named {
        let workload = workload::workload(name, &value, defaults);
        places.has_gaps |= workload.is_none();
        places.workloads.extend(workload.is_some().then_some(name.at));
        workloads.extend(workload);
    }
    workloads
}

fn phases(table: &Table<'_>, defaults: &Defaults, places: &mut Places) -> Vec<Phase> {
    let named = named(table, Referred::Phase, places);
    if named.is_empty() && !table.has("phase") {
        places.phases.extend([table.at; 2]);
        return phase::max_and_80(defaults);
    }
    let mut phases = Vec::new();
    for (name, value) in named {
        let phase = phase::phase(name, &value, defaults, places);
        places.has_gaps |= phase.is_none();
        phases.extend(phase);
    }
    phases
}

/// The tables `[KEY.NAME]` with checked names.
fn named<'a>(
    table: &Table<'a>,
    referred: Referred,
    places: &mut Places,
) -> Vec<(Name<'a>, Value<'a>)> {
    let what = referred.name();
    let Some(value) = table.value(what) else {
        return Vec::new();
    };
    let named = value.named(&format!("`{what}`"));
    if named.is_empty() {
        value.refuse(format!("there is no {what}: write [{what}.NAME]"));
        places.has_gaps = true;
    }
    places.declared.extend(named.iter().map(|(name, _)| (referred, name.text.to_owned())));
    for (name, value) in &named {
        let is_plain = |c: char| c.is_alphanumeric() || "-_.+".contains(c);
        let length = name.text.chars().count();
        if !(1..=NAME_CHARS_MAX).contains(&length) || !name.text.chars().all(is_plain) {
            value.refuse_at(
                name.at,
                format!(
                    "`{}` is no name of a {what}: write up to {NAME_CHARS_MAX} letters, digits, \
                     `-`, `_`, `.` and `+`",
                    name.text
                ),
            );
        }
    }
    named
}

/// A list of CPUs in taskset's form, such as `0,2-3`, or an array of numbers.
fn cpus(table: &Table<'_>, key: &str) -> Vec<u32> {
    let Some(value) = table.value(key) else { return Vec::new() };
    let lists = value.elements();
    let lists = lists.iter().filter_map(|element| element.parse(key, cpu_list));
    let mut cpus: Vec<u32> = lists.flatten().collect();
    let count = cpus.len();
    cpus.sort_unstable();
    cpus.dedup();
    if cpus.len() < count {
        value.refuse(format!("`{key}` names a CPU more than once"));
    }
    cpus
}
