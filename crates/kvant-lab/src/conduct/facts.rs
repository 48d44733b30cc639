//! The facts of a run as `run.json` has them.

use super::context::absolute;
use super::data;
use super::load::requests_text;
use super::options::Options;
use super::stage::Stage;
use super::subject::command_text;
use crate::plan::{Plan, Requests, Subject, SubjectKind};
use crate::record::{
    Axis, Case, DataFacts, FORMAT, Run, RunState, SubjectFacts, VERSION, WorkloadFacts,
};
use kvant_base::checksum::crc32c_masked;
use kvant_base::timestamp;
use kvant_env::host;
use kvant_load::report::json::HostFacts;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::UNIX_EPOCH;

/// A run that begins.
pub(super) fn run(plan: &Plan, cases: Vec<Case>, options: &Options, now_wall_ms: u64) -> Run {
    let subject = |subject: &Subject| SubjectFacts {
        name: subject.name.clone(),
        kind: match &subject.kind {
            SubjectKind::Kvant { .. } => "kvant",
            SubjectKind::Command { .. } => "command",
            SubjectKind::Url(_) => "url",
        }
        .to_owned(),
        command: command_text(subject, &options.program),
        version: version(subject, plan, options),
        left_out: None,
        killed_count: 0,
    };
    Run {
        format: FORMAT.to_owned(),
        version: VERSION,
        program_version: env!("CARGO_PKG_VERSION").to_owned(),
        plan: plan.name.clone(),
        title: plan.title.clone(),
        plan_checksum: checksum(&plan.text),
        started_wall_ms: now_wall_ms,
        ended_wall_ms: None,
        state: RunState::Running,
        shortened: plan.shortened.clone(),
        seed: plan.seed,
        host: HostFacts::of_this_machine(),
        server_cpus: plan.server_cpus.clone(),
        generator_cpus: plan.generator_cpus.clone(),
        objectives: plan.objectives.iter().map(|goal| goal.text().to_owned()).collect(),
        repeats: plan.repeats,
        subjects: plan.subjects.iter().map(subject).collect(),
        data: plan.data.as_ref().map(|planned| DataFacts {
            text: data::text(planned),
            key_count: planned.workload.key_count,
            ..DataFacts::default()
        }),
        workloads: plan
            .workloads
            .iter()
            .map(|workload| WorkloadFacts {
                name: workload.name.clone(),
                requests: requests_text(&workload.requests),
                connection_count: workload.connection_count,
                thread_count: workload.thread_count,
            })
            .collect(),
        sweep: plan
            .sweep
            .iter()
            .map(|axis| Axis { name: axis.name.clone(), values: axis.values.clone() })
            .collect(),
        cases,
        known: plan.known.clone(),
        comparison: plan.comparison.clone(),
        intervention: plan.intervention.clone(),
        what_if: plan.what_if.clone(),
        identity: identity(plan, options),
        fsyncs: Vec::new(),
    }
}

/// What attempts of one run have in common, by name: programs, scripts and the machine.
pub(super) fn identity(plan: &Plan, options: &Options) -> BTreeMap<String, String> {
    let machine = HostFacts::of_this_machine();
    let text = |text: Option<String>| text.unwrap_or_else(|| "unknown".to_owned());
    let mut identity = BTreeMap::from([
        ("program".to_owned(), file_identity(&options.program)),
        ("version of the lab".to_owned(), env!("CARGO_PKG_VERSION").to_owned()),
        ("machine".to_owned(), text(machine.name)),
        ("machine id".to_owned(), text(host::read_text(Path::new("/etc/machine-id")).ok())),
        ("kernel".to_owned(), text(machine.kernel)),
        ("CPU".to_owned(), format!("{} x {}", machine.cpu_count, text(machine.cpu_model))),
    ]);
    for subject in &plan.subjects {
        if let SubjectKind::Kvant { program: Some(program), .. } = &subject.kind {
            let name = format!("program of {}", subject.name);
            let program = plan.dir.join(program);
            identity.insert(name, file_identity(&absolute(&program).unwrap_or(program)));
        }
    }
    let besides = plan.workloads.iter().filter_map(|workload| workload.beside.as_ref());
    for workload in plan.workloads.iter().chain(besides.map(|beside| &beside.workload)) {
        if let Requests::Script { file, .. } = &workload.requests {
            let text = host::read_text(&plan.dir.join(file));
            let content = text.map_or("missing".to_owned(), |text| checksum(&text));
            identity.insert(format!("script {}", file.display()), content);
        }
    }
    identity
}

/// What differs between two identities, in words.
pub(super) fn differences(
    before: &BTreeMap<String, String>,
    now: &BTreeMap<String, String>,
) -> Vec<String> {
    let names: BTreeSet<&String> = before.keys().chain(now.keys()).collect();
    let unknown = "unknown".to_owned();
    let of = |name: &String| {
        let (before, now) = (before.get(name), now.get(name));
        let (before, now) = (before.unwrap_or(&unknown).trim(), now.unwrap_or(&unknown).trim());
        (before != now).then(|| format!("{name}: it was {before}, it is {now}"))
    };
    names.into_iter().filter_map(of).collect()
}

/// A file, its length and the time of its last change.
fn file_identity(file: &Path) -> String {
    let path = file.display();
    let Ok(metadata) = std::fs::metadata(file) else { return format!("{path}, missing") };
    let changed = metadata.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    let changed_ms = changed.map_or(0, |time| time.as_millis().try_into().unwrap_or(u64::MAX));
    format!("{path}, {} bytes, changed {}", metadata.len(), timestamp::format(changed_ms))
}

/// Adds what the stage has learned of subjects and their data.
pub(super) fn learn(run: &mut Run, stage: &mut Stage) {
    for subject in &mut run.subjects {
        if subject.version.is_none() {
            subject.version = stage.software.get(&subject.name).cloned();
        }
        subject.killed_count += stage.killed.remove(&subject.name).unwrap_or(0);
    }
    if let Some(data) = &mut run.data {
        for (subject, filled) in &stage.filled {
            data.fill_s.entry(subject.clone()).or_insert(filled.time.as_secs_f64());
            if data.fingerprint.is_empty() {
                data.fingerprint.clone_from(&filled.fingerprint);
            }
        }
        data.mismatches.append(&mut stage.mismatches);
    }
}

/// The checksum of a plan's text.
pub(super) fn checksum(text: &str) -> String {
    format!("{:08x}", crc32c_masked(&[text.as_bytes()]))
}

/// What a Kvant says of its version; other programs are asked when they run.
fn version(subject: &Subject, plan: &Plan, options: &Options) -> Option<String> {
    let SubjectKind::Kvant { program, .. } = &subject.kind else { return None };
    // A path without a directory would be searched for in `PATH`.
    let in_plan_dir = program.as_ref().map(|program| absolute(&plan.dir.join(program)));
    let program = in_plan_dir.transpose().ok()?.unwrap_or_else(|| options.program.clone());
    let mut command = Command::new(program);
    let output = command.arg("--version").stdin(Stdio::null()).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    (output.status.success() && !text.is_empty()).then_some(text)
}
