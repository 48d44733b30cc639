//! Whether an attempt counts.
//!
//! 1. A subject that ended, and a load without a response, fail the attempt.
//! 2. Time stolen, other processes, and a pause of this program disturb it. The load judges its own
//!    seconds; the samples of the whole attempt decide where it cannot.
//! 3. A generator that was late for the median disturbs it too. If it was late for the tail only,
//!    the verdict in `load.json` says for which percentiles, and the report leaves those out.
//! 4. A closed loop that the generator limits is no disturbance: it would be so again.
//! 5. A search repeats disturbed steps itself. It is disturbed if the step that ended it is.

use super::measurement::Measured;
use super::watch::{self, Taken};
use crate::record::{AttemptVerdict, Watch};
use kvant_load::Rate;
use kvant_load::find_max::FindMax;
use kvant_load::verdict::Bound;

/// A write that was planned and had a free connection, and still waited this long, was held up by
/// this program or its machine.
const SEND_LAG_MAX_NS: u64 = 200_000_000;
/// Limits for loads that nothing else judges; those of `kvant load`.
const STOLEN_PART_MAX: f64 = 0.02;
const OTHERS_PART_MAX: f64 = 0.15;
const PRESSURE_PART_MAX: f64 = 0.1;

/// What the judgement is based on.
pub(super) struct Evidence<'a> {
    pub(super) phases: &'a [Measured],
    pub(super) found: Option<&'a FindMax>,
    /// What paused this program, if anything did.
    pub(super) pause: Option<&'a str>,
    pub(super) watch: &'a Watch,
    /// CPUs of the machine.
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
    if let Some(found) = evidence.found.filter(|found| found.saturation_rate <= 0.0) {
        let attempts = found.points.len();
        return AttemptVerdict::Failed(format!("no response in {attempts} phases"));
    }
    match disturbance(evidence) {
        Some(why) => AttemptVerdict::Disturbed(why),
        None => AttemptVerdict::Valid,
    }
}

fn disturbance(evidence: &Evidence<'_>) -> Option<String> {
    if let Some(pause) = evidence.pause {
        return Some(pause.to_owned());
    }
    if !evidence.is_machine_judged
        && let Some(taken) = watch::taken(&evidence.watch.samples, evidence.cpu_count)
        && let Some(what) = too_much(&taken)
    {
        return Some(what);
    }
    if let Some(found) = evidence.found {
        return disturbed_search(found);
    }
    let of_phase = |phase: &Measured| {
        let Measured { outcome, verdict } = phase;
        if let Some(disturbance) = &verdict.disturbance {
            return Some(disturbance.clone());
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
    };
    evidence.phases.iter().find_map(of_phase)
}

/// The disturbance of the step that ended a search upwards.
fn disturbed_search(found: &FindMax) -> Option<String> {
    let best = found.rate.unwrap_or(0.0);
    let failed = found.points.iter().filter(|point| point.rate > best && !point.judgement.holds());
    let least = failed.min_by(|a, b| a.rate.total_cmp(&b.rate))?.rate;
    let last = found.points.iter().rfind(|point| point.rate == least)?;
    last.disturbance.clone()
}

/// What was taken, in words, if it was too much.
pub(super) fn too_much(taken: &Taken) -> Option<String> {
    let percent = |part: f64| (part * 100.0).round();
    if taken.stolen_part > STOLEN_PART_MAX {
        let stolen = percent(taken.stolen_part);
        return Some(format!("the hypervisor took {stolen} % of the CPU time"));
    }
    let waits = taken.pressure_part.is_none_or(|part| part > PRESSURE_PART_MAX);
    (taken.others_part > OTHERS_PART_MAX && waits)
        .then(|| format!("other processes took {} % of the CPU time", percent(taken.others_part)))
}

#[cfg(test)]
mod tests;
