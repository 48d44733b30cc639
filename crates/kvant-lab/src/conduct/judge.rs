//! Whether an attempt counts.
//!
//! 1. A subject that ended, a phase without a response, and a load without a successful response
//!    fail the attempt. Refusals are what a subject may do beyond its limit. A load beside
//!    without a response fails it too.
//! 2. Time stolen, other processes, and a pause of this program disturb it, for a second or over a
//!    phase. The load judges its own seconds; the samples of the attempt decide where it cannot.
//! 3. A generator that was late for the median disturbs it too. If it was late for the tail only,
//!    the verdict in `load.json` says for which percentiles, and the report leaves those out.
//! 4. A closed loop that the generator limits is no disturbance: it would be so again.
//! 5. A search repeats disturbed steps itself. It is disturbed if the last try of a phase that is
//!    in figures is: the closed loop, the step that ended it, the hold at 80 %.

use super::measurement::Measured;
use super::watch::{self, Taken};
use crate::record::{AttemptVerdict, Watch, WatchSample};
use kvant_load::disturbance::disturbance_of_a_figure;
use kvant_load::find_max::{FindMax, Point, Purpose};
use kvant_load::verdict::{self, Bound, Verdict};
use kvant_load::{Outcome, Rate};

/// A write that was planned and had a free connection, and still waited this long, was held up by
/// this program or its machine.
const SEND_LAG_MAX_NS: u64 = 200_000_000;
/// Limits for loads that nothing else judges; those of `kvant load`.
const STOLEN_PART_MAX: f64 = 0.02;
const STOLEN_PART_OF_SECOND_MAX: f64 = 0.05;
const OTHERS_PART_MAX: f64 = 0.15;
const PRESSURE_PART_MAX: f64 = 0.1;
const SAMPLES_A_SECOND: usize = 10;

/// What the judgement is based on.
pub(super) struct Evidence<'a> {
    pub(super) phases: &'a [Measured],
    pub(super) found: Option<&'a FindMax>,
    /// The load beside.
    pub(super) beside: Option<&'a Measured>,
    /// What paused this program, if anything did.
    pub(super) pause: Option<&'a str>,
    pub(super) watch: &'a Watch,
    /// CPUs whose time is judged.
    pub(super) cpu_count: u32,
    /// Whether the load judged the machine: phases of less than half a second and external
    /// generators cannot.
    pub(super) is_machine_judged: bool,
    /// How the subject ended, if it did.
    pub(super) subject_end: Option<String>,
    /// Whether the run is to end.
    pub(super) is_stopped: bool,
}

/// The verdict on an attempt.
pub(super) fn verdict(evidence: &Evidence<'_>) -> AttemptVerdict {
    if let Some(end) = &evidence.subject_end {
        return AttemptVerdict::Failed(format!("the subject {end}"));
    }
    let is_cut_short = match evidence.found {
        Some(found) => found.is_cut_short,
        None => evidence.phases.iter().any(|phase| phase.outcome.is_cut_short),
    };
    if evidence.is_stopped {
        return AttemptVerdict::CutShort("the run was ended".to_owned());
    }
    if is_cut_short {
        return AttemptVerdict::CutShort("the load ended itself".to_owned());
    }
    let silent = evidence.phases.iter().find(|phase| phase.outcome.total.completed == 0);
    if let Some(silent) = silent {
        let why = silent.verdict.headline.clone();
        return match silent.verdict.disturbance {
            Some(_) => AttemptVerdict::Disturbed(why),
            None => AttemptVerdict::Failed(why),
        };
    }
    if let Some(beside) = evidence.beside.filter(|beside| is_without_effect(&beside.outcome)) {
        return AttemptVerdict::Failed(format!("the load beside: {}", beside.verdict.headline));
    }
    if let Some(found) = evidence.found.filter(|found| found.saturation_rate <= 0.0) {
        let attempts = found.points.len();
        return AttemptVerdict::Failed(format!("no successful response in {attempts} phases"));
    }
    let is_refused = |phase: &Measured| phase.outcome.good_count() == 0;
    if let [first, ..] = evidence.phases
        && evidence.phases.iter().all(is_refused)
    {
        return AttemptVerdict::Failed(all_refused(&first.outcome));
    }
    match disturbance(evidence) {
        Some(why) => AttemptVerdict::Disturbed(why),
        None => AttemptVerdict::Valid,
    }
}

/// Whether no request was answered, nor is any under way: an operator's compaction may outlast the
/// phase that it is to be measured beside.
fn is_without_effect(beside: &Outcome) -> bool {
    let total = &beside.total;
    total.completed == 0 && (beside.in_flight == 0 || total.errors.total() > 0)
}

/// A phase without a successful response, in words.
fn all_refused(outcome: &Outcome) -> String {
    let statuses = outcome.total.ops.iter().flat_map(|op| &op.statuses);
    let most = statuses.max_by_key(|(_, count)| *count);
    let status = most.map(|(status, _)| format!(", most with status {status}"));
    let count = outcome.total.completed;
    format!("all {count} responses are errors{}", status.unwrap_or_default())
}

fn disturbance(evidence: &Evidence<'_>) -> Option<String> {
    if let Some(pause) = evidence.pause {
        return Some(pause.to_owned());
    }
    if !evidence.is_machine_judged
        && let Some(what) = disturbed_samples(&evidence.watch.samples, evidence.cpu_count)
    {
        return Some(what);
    }
    let of_phase = |phase: &Measured| disturbed_phase(&phase.outcome, &phase.verdict);
    // A search repeats its disturbed steps, and the load beside has their time, too.
    if let Some(found) = evidence.found {
        return disturbed_search(found);
    }
    let of_beside = || Some(format!("the load beside: {}", of_phase(evidence.beside?)?));
    evidence.phases.iter().find_map(of_phase).or_else(of_beside)
}

fn disturbed_phase(outcome: &Outcome, verdict: &Verdict) -> Option<String> {
    if let Some(disturbance) = disturbance_of_a_figure(outcome) {
        return Some(disturbance);
    }
    if outcome.phase.rate == Rate::Closed {
        return None;
    }
    let lag_ns = outcome.total.send_lag.max_ns();
    if lag_ns > SEND_LAG_MAX_NS {
        return Some(format!("the generator was late by {} ms", lag_ns / 1_000_000));
    }
    let is_late_for_median = verdict.late_percents.first().is_some_and(|first| *first <= 50.0);
    let is_all_late = !verdict.is_valid && verdict.late_percents.is_empty();
    let is_late = is_late_for_median || is_all_late;
    (is_late && verdict.bound == Bound::Generator).then(|| verdict.headline.clone())
}

/// The disturbance of the phases of a search that are figures: the last closed loop, the step that
/// ended it upwards, and the hold at 80 %.
fn disturbed_search(found: &FindMax) -> Option<String> {
    let last = |is_of: &dyn Fn(&&Point) -> bool| found.points.iter().rfind(is_of);
    let best = found.rate.unwrap_or(0.0);
    let failed = found.points.iter().filter(|point| point.rate > best && !point.judgement.holds());
    let least = failed.min_by(|a, b| a.rate.total_cmp(&b.rate));
    let saturation = last(&|point| point.purpose == Purpose::Saturation);
    let end = last(&|point| least.is_some_and(|least| point.rate == least.rate));
    let disturbance = |point: Option<&Point>| point?.disturbance.clone();
    let at_80 = || {
        let outcome = found.at_80.as_ref()?;
        let why = disturbed_phase(outcome, &verdict::judge(outcome))?;
        Some(format!("at 80 %, {why}"))
    };
    disturbance(saturation).or_else(|| disturbance(end)).or_else(at_80)
}

/// What disturbed the time of all samples, or a second of it. Of a second only stolen time counts:
/// the account of an external generator has its CPU time when it has ended, and before that others
/// seem to have used it.
fn disturbed_samples(samples: &[WatchSample], cpu_count: u32) -> Option<String> {
    let of_second = |samples: &[WatchSample]| {
        let what = stolen(&watch::taken(samples, cpu_count)?, STOLEN_PART_OF_SECOND_MAX)?;
        Some(format!("in a second, {what}"))
    };
    let mut seconds = samples.windows(SAMPLES_A_SECOND + 1).step_by(SAMPLES_A_SECOND);
    too_much(&watch::taken(samples, cpu_count)?).or_else(|| seconds.find_map(of_second))
}

/// What was taken, in words, if it was too much.
pub(super) fn too_much(taken: &Taken) -> Option<String> {
    stolen(taken, STOLEN_PART_MAX).or_else(|| others(taken))
}

fn stolen(taken: &Taken, part_max: f64) -> Option<String> {
    let percent = (taken.stolen_part * 100.0).round();
    (taken.stolen_part > part_max)
        .then(|| format!("the hypervisor took {percent} % of the CPU time"))
}

fn others(taken: &Taken) -> Option<String> {
    let percent = (taken.others_part * 100.0).round();
    let waits = taken.pressure_part.is_none_or(|part| part > PRESSURE_PART_MAX);
    (taken.others_part > OTHERS_PART_MAX && waits)
        .then(|| format!("other processes took {percent} % of the CPU time"))
}

#[cfg(test)]
mod tests;
