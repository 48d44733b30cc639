//! Whether other processes or the hypervisor disturbed a phase: how much CPU time they took, and
//! above which amount the figures are no longer the server's.

use crate::machine::MachineUse;
use crate::outcome::Outcome;

/// Share of a phase that the hypervisor may take. One request of a hundred decides a 99th
/// percentile: a share of this size may be all of it. A calm machine had 0.06 % in an hour.
const STOLEN_PART_MAX: f64 = 0.02;
/// Likewise of one second, which has few ticks (the calm machine had 2 seconds over 5 %).
const STOLEN_PART_OF_SECOND_MAX: f64 = 0.05;
/// Share that other processes may take, if tasks have to wait as well: the use of CPUs that no
/// other task needs does not disturb.
const OTHERS_PART_MAX: f64 = 0.15;
/// Part of the time in which some task may wait for a CPU.
pub(crate) const PRESSURE_PART_MAX: f64 = 0.1;
/// Part of a phase that disturbed seconds may take.
const DISTURBED_TIME_PART_MAX: f64 = 0.1;
/// The same of a phase that is a figure.
const DISTURBED_TIME_PART_OF_FIGURE_MAX: f64 = 0.01;

/// What disturbed a phase, in words that follow "disturbed:"; `None` if the machine was calm, or
/// its CPU use is unknown.
pub(crate) fn disturbance(outcome: &Outcome) -> Option<String> {
    let total = outcome.machine?;
    if is_disturbed(&total, STOLEN_PART_MAX) {
        return Some(taken(&total));
    }
    let (disturbed, part) = disturbed_seconds(outcome)?;
    (part > DISTURBED_TIME_PART_MAX).then_some(disturbed)
}

/// What disturbed a phase, if one disturbed second suffices: it may be why a phase failed, or be
/// all of a high percentile.
pub fn disturbance_of_any_second(outcome: &Outcome) -> Option<String> {
    disturbance(outcome).or_else(|| Some(disturbed_seconds(outcome)?.0))
}

/// What disturbed a phase that is a figure: more than one second of a hundred. So it is any second
/// of a phase of less than 100 s, of which it may be all of a high percentile.
pub fn disturbance_of_a_figure(outcome: &Outcome) -> Option<String> {
    let of_seconds = || {
        let (disturbed, part) = disturbed_seconds(outcome)?;
        (part > DISTURBED_TIME_PART_OF_FIGURE_MAX).then_some(disturbed)
    };
    disturbance(outcome).or_else(of_seconds)
}

fn is_disturbed(period: &MachineUse, stolen_part_max: f64) -> bool {
    let waits = period.pressure_part.is_none_or(|part| part > PRESSURE_PART_MAX);
    let is_crowded = period.others_part > OTHERS_PART_MAX && !period.others_include_server && waits;
    period.stolen_part > stolen_part_max || is_crowded
}

/// The disturbed seconds in words, and their part of the time; `None` if there are none.
fn disturbed_seconds(outcome: &Outcome) -> Option<(String, f64)> {
    let all = outcome.seconds.iter().filter_map(|second| second.machine.as_ref());
    let disturbed = all.clone().filter(|second| is_disturbed(second, STOLEN_PART_OF_SECOND_MAX));
    let worst = disturbed.clone().max_by(|a, b| {
        let taken_part = |second: &MachineUse| second.stolen_part + second.others_part;
        taken_part(a).total_cmp(&taken_part(b))
    })?;
    let text = format!(
        "in {} of {} seconds; in the worst {}",
        disturbed.clone().count(),
        outcome.seconds.len(),
        taken(worst)
    );
    let time_ns: u64 = all.map(|second| second.time_ns).sum();
    let disturbed_ns: u64 = disturbed.map(|second| second.time_ns).sum();
    Some((text, disturbed_ns as f64 / time_ns as f64))
}

/// How much CPU time the hypervisor and other processes took, in words.
fn taken(period: &MachineUse) -> String {
    let whole_percent = |part: f64| (part * 100.0).round() as u64;
    match (whole_percent(period.stolen_part), whole_percent(period.others_part)) {
        (stolen, 0) => format!("the hypervisor took {stolen} % of the CPU time"),
        (0, others) => format!("other processes took {others} % of the CPU time"),
        (stolen, others) => {
            format!("the hypervisor took {stolen} % of the CPU time, other processes {others} %")
        }
    }
}

#[cfg(test)]
mod tests;
