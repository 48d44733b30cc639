//! The facts of a run as `run.json` has them.

use super::data;
use super::load::requests_text;
use super::options::Options;
use super::stage::Stage;
use super::subject::command_text;
use crate::plan::{Plan, Subject, SubjectKind};
use crate::record::{
    Axis, Case, DataFacts, FORMAT, Run, RunState, SubjectFacts, VERSION, WorkloadFacts,
};
use kvant_base::checksum::crc32c_masked;
use kvant_load::report::json::HostFacts;
use std::process::{Command, Stdio};

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
        version: version(subject, options),
        left_out: None,
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
    }
}

/// Adds what the stage has learned of subjects and their data.
pub(super) fn learn(run: &mut Run, stage: &Stage) {
    for subject in &mut run.subjects {
        if subject.version.is_none() {
            subject.version = stage.software.get(&subject.name).cloned();
        }
    }
    if let Some(data) = &mut run.data {
        for (subject, filled) in &stage.filled {
            data.fill_s.entry(subject.clone()).or_insert(filled.time.as_secs_f64());
            if data.fingerprint.is_empty() {
                data.fingerprint.clone_from(&filled.fingerprint);
            }
        }
    }
}

/// The checksum of a plan's text.
pub(super) fn checksum(text: &str) -> String {
    format!("{:08x}", crc32c_masked(&[text.as_bytes()]))
}

/// What a Kvant says of its version; other programs are asked when they run.
fn version(subject: &Subject, options: &Options) -> Option<String> {
    let SubjectKind::Kvant { program, .. } = &subject.kind else { return None };
    let program = program.as_ref().unwrap_or(&options.program);
    let mut command = Command::new(program);
    let output = command.arg("--version").stdin(Stdio::null()).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    (output.status.success() && !text.is_empty()).then_some(text)
}
