//! Checks between the parts of a plan.

use super::cases::{CONNECTIONS, RATE, VALUE_BYTES};
use super::places::{Places, Referred};
use super::reader::{Report, listed, nearest};
use super::{MaximumOf, Phase, PhaseTask, Plan, SubjectKind, Workload};
use kvant_load::Arrival;

/// Most cases of a plan: at a few seconds each and three repeats, a day.
const CASES_MAX: usize = 5_000;

/// Reports every problem between the parts.
pub(super) fn check(plan: &Plan, places: &Places, report: &Report) {
    references(plan, places, report);
    if places.has_gaps {
        // What is missing would look like further problems.
        return;
    }
    maxima(plan, places, report);
    ramps(plan, places, report);
    axes(plan, places, report);
    cases(plan, places, report);
}

fn references(plan: &Plan, places: &Places, report: &Report) {
    let names = |referred| -> Vec<&str> {
        let of_plan: Vec<&str> = match referred {
            Referred::Subject => plan.subjects.iter().map(|part| part.name.as_str()).collect(),
            Referred::Workload => plan.workloads.iter().map(|part| part.name.as_str()).collect(),
            Referred::Phase => plan.phases.iter().map(|part| part.name.as_str()).collect(),
        };
        let declared = places.declared.iter().filter(|(of, _)| *of == referred);
        let others = declared.map(|(_, name)| name.as_str()).filter(|name| !of_plan.contains(name));
        let others: Vec<&str> = others.collect();
        [of_plan, others].concat()
    };
    for (referred, name, at) in &places.references {
        let known = names(*referred);
        if !known.contains(&name.as_str()) {
            let what = referred.name();
            let hint = match nearest(name, &known) {
                Some(likely) => format!("did you mean `{likely}`?"),
                None => format!("there are {}", listed(&known)),
            };
            report.refuse(*at, format!("there is no {what} `{name}`: {hint}"));
        }
    }
}

/// Each share has a maximum before it.
fn maxima(plan: &Plan, places: &Places, report: &Report) {
    for (index, phase) in plan.phases.iter().enumerate() {
        // A phase with problems of its own has no place.
        let Some(&at) = places.phases.get(index) else { return };
        let workloads = || plan.workloads.iter().filter(|workload| phase.is_for(workload));
        for of in phase.task.maxima() {
            let missing = |workload| missing_maximum(plan, index, phase, workload, of);
            if let Some(sentence) = workloads().find_map(missing) {
                report.refuse(at, sentence);
            }
        }
        for workload in workloads() {
            let beside =
                workload.beside.iter().filter_map(|beside| beside.rate.as_ref()?.maximum());
            beside
                .filter_map(|of| missing_maximum(plan, index, phase, workload, of))
                .for_each(|sentence| report.refuse(at, sentence));
        }
    }
}

fn missing_maximum(
    plan: &Plan,
    index: usize,
    phase: &Phase,
    workload: &Workload,
    of: &MaximumOf,
) -> Option<String> {
    let finds = |phase: &Phase, workload: &Workload| {
        matches!(phase.task, PhaseTask::FindMax | PhaseTask::Closed) && phase.is_for(workload)
    };
    let (whose, earlier) = match of {
        MaximumOf::Workload(name) if *name != workload.name => {
            let at = |name: &str| plan.workloads.iter().position(|other| other.name == name);
            let (Some(theirs), Some(ours)) = (at(name), at(&workload.name)) else {
                return Some(format!(
                    "phase `{}` has a share of the maximum of `{name}`, and there is no such workload",
                    phase.name
                ));
            };
            if theirs > ours {
                return Some(format!(
                    "phase `{}` has a share of the maximum of `{name}`, which stands after `{}`: \
                     write [workload.{name}] before it",
                    phase.name, workload.name
                ));
            }
            (&plan.workloads[theirs], &plan.phases[..])
        }
        MaximumOf::Subject(name) if !plan.subjects.iter().any(|other| other.name == *name) => {
            return Some(format!(
                "phase `{}` has a share of the maximum of subject `{name}`, and there is no such \
                 subject",
                phase.name
            ));
        }
        _ => (workload, &plan.phases[..index]),
    };
    if earlier.iter().any(|phase| finds(phase, whose)) {
        return None;
    }
    Some(format!(
        "phase `{}` has a share of a maximum that no phase before it finds for `{}`: write a phase \
         with find-max or closed first",
        phase.name, whose.name
    ))
}

/// Plans of single connections hold one rate.
fn ramps(plan: &Plan, places: &Places, report: &Report) {
    let ramps = |phase: &Phase| matches!(phase.task, PhaseTask::Ramp { .. });
    for (phase, &at) in plan.phases.iter().zip(&places.phases).filter(|(phase, _)| ramps(phase)) {
        let mut workloads = plan.workloads.iter().filter(|workload| phase.is_for(workload));
        if let Some(of) = workloads.find(|workload| workload.arrival == Arrival::Wrk2) {
            report.refuse(
                at,
                format!(
                    "phase `{}` is a ramp, and the arrivals of `{}` are those of wrk2, which hold \
                     one rate: write uniform or poisson",
                    phase.name, of.name
                ),
            );
        }
    }
}

/// Each axis concerns something.
fn axes(plan: &Plan, places: &Places, report: &Report) {
    for (axis, &at) in plan.sweep.iter().zip(&places.axes) {
        let is_any = plan.subjects.iter().any(|subject| {
            plan.workloads.iter().any(|workload| {
                plan.phases.iter().any(|phase| {
                    subject.serves(workload)
                        && phase.is_for(workload)
                        && plan.concerns(axis, subject, workload, phase)
                })
            })
        });
        if !is_any {
            let has_kvant = plan
                .subjects
                .iter()
                .any(|subject| matches!(subject.kind, SubjectKind::Kvant { .. }));
            let why = match axis.name.as_str() {
                RATE => "no phase of those holds a fixed rate",
                VALUE_BYTES => "no workload of those puts values or reads stored ones",
                CONNECTIONS => "no workload of those has connections",
                _ if has_kvant => "it is none of the Kvants'",
                _ => "it is an option of Kvant, and no subject is one",
            };
            report.refuse(at, format!("sweeping `{}` changes nothing: {why}", axis.name));
        }
    }
}

/// There are cases, for all parts, and not too many.
fn cases(plan: &Plan, places: &Places, report: &Report) {
    let combinations = [plan.cell_count(), plan.workloads.len(), plan.phases.len()]
        .into_iter()
        .fold(plan.subjects.len(), usize::saturating_mul);
    let at_sweep = places.axes.first().copied().unwrap_or(0);
    let too_many = |count: String| {
        format!(
            "the plan has {count} cases, and {CASES_MAX} is the most: sweep fewer values, or write \
             which workloads and phases a sweep is for"
        )
    };
    // Cases that differ in values that do not concern them fall together.
    if combinations > CASES_MAX * 100 {
        report.refuse(at_sweep, too_many(format!("up to {combinations}")));
        return;
    }
    let cases = plan.cases();
    if cases.len() > CASES_MAX {
        report.refuse(at_sweep, too_many(cases.len().to_string()));
    }
    for (workload, &at) in plan.workloads.iter().zip(&places.workloads) {
        let mut of_workload = cases.iter().filter(|case| case.workload == workload.name).peekable();
        if of_workload.peek().is_none() {
            let sentence = "no subject serves it, or no phase is for it";
            report.refuse(at, format!("workload `{}` is never run: {sentence}", workload.name));
        }
        if let Some(sentence) = of_workload.find_map(|case| plan.refuse_full_store(case).err()) {
            report.refuse(at, sentence);
        }
    }
    for (subject, &at) in plan.subjects.iter().zip(&places.subjects) {
        if !cases.iter().any(|case| case.subject == subject.name) {
            report.refuse(at, format!("subject `{}` has no case", subject.name));
        }
    }
}
