//! What an attempt runs: phases with rates, or a search.

use super::maxima::{Maxima, OfCase};
use crate::comparison::speed_ups;
use crate::plan::{Beside, MaximumOf, PhaseTask, PlannedRate, Resolved};
use crate::record::SpedUp;
use kvant_load::{Phase, Rate};
use std::time::Duration;

/// Load at half of the maximum after a factor beyond it: how the subject recovers.
const RECOVERY: Duration = Duration::from_secs(3);
const RECOVERY_PART: f64 = 0.5;

/// A case, what it runs, and what earlier attempts found.
pub(super) struct Order<'a> {
    pub(super) of_case: OfCase<'a>,
    pub(super) resolved: &'a Resolved,
    pub(super) maxima: &'a Maxima,
}

/// What is run.
#[derive(Clone, Debug)]
pub(super) enum Task {
    /// Phases one after the other, with their labels.
    Phases(Vec<(String, Phase)>),
    /// A search.
    FindMax {
        /// Load before each step.
        settle: Duration,
        /// The measured time of a step.
        measure: Duration,
    },
}

/// The task of a case, with the rates that earlier attempts decide; otherwise why it cannot be run.
pub(super) fn task(order: &Order<'_>) -> Result<Task, String> {
    let planned = &order.resolved.phase;
    let rate = |planned| order.maxima.rate(planned, &order.of_case);
    let phase = |rate, warmup, duration| Phase { rate, warmup, duration, request_count_max: None };
    let measured = |rate| phase(rate, planned.warmup, planned.duration);
    let one = |rate| match planned.sped_up {
        None => Ok(Task::Phases(vec![(String::new(), measured(rate))])),
        Some(_) => {
            let phase = |phase: SpedUp| (phase.label(), measured(slower(rate, phase.factor)));
            Ok(Task::Phases(sped_up(order).into_iter().map(phase).collect()))
        }
    };
    match &planned.task {
        PhaseTask::Hold(held) => one(Rate::Constant(rate(held)?)),
        PhaseTask::Closed => one(Rate::Closed),
        PhaseTask::Ramp { from, to } => one(Rate::Ramp { from: rate(from)?, to: rate(to)? }),
        PhaseTask::FindMax => {
            Ok(Task::FindMax { settle: planned.warmup, measure: planned.duration })
        }
        PhaseTask::Steps(rates) => {
            let step = |(index, planned_rate)| {
                // Without a pause: only the first has a warm-up.
                let warmup = if index == 0 { planned.warmup } else { Duration::ZERO };
                let rate = Rate::Constant(rate(planned_rate)?);
                Ok((format!("step {}", index + 1), phase(rate, warmup, planned.duration)))
            };
            Ok(Task::Phases(rates.iter().enumerate().map(step).collect::<Result<_, String>>()?))
        }
        PhaseTask::Factors(factors) => {
            let maximum = order.maxima.maximum(&MaximumOf::Own, &order.of_case)?;
            let mut phases = Vec::new();
            for factor in factors {
                let rate = Rate::Constant(maximum * factor);
                let is_beyond = *factor > 1.0;
                // Beyond the limit, the backlog of a warm-up would be all that is sent.
                let warmup = if is_beyond { Duration::ZERO } else { planned.warmup };
                phases.push((format!("factor {factor}"), phase(rate, warmup, planned.duration)));
                if is_beyond {
                    let half = Rate::Constant(maximum * RECOVERY_PART);
                    let recovery = phase(half, Duration::ZERO, RECOVERY);
                    phases.push((format!("after factor {factor}"), recovery));
                }
            }
            Ok(Task::Phases(phases))
        }
    }
}

/// The phases of an attempt that speeds a stage up, in their order; none of other attempts.
pub(super) fn sped_up(order: &Order<'_>) -> Vec<SpedUp> {
    let OfCase { plan, case, repeat, .. } = &order.of_case;
    let Some(facts) = plan.what_if.as_ref().filter(|_| case.sped_up.is_some()) else {
        return Vec::new();
    };
    let percents = speed_ups::order(plan.seed, *repeat, case.id, &facts.percents);
    percents.into_iter().map(SpedUp::by).collect()
}

/// A rate in a time that is slower by a factor.
fn slower(rate: Rate, factor: f64) -> Rate {
    match rate {
        Rate::Closed => Rate::Closed,
        Rate::Constant(per_s) => Rate::Constant(per_s / factor),
        Rate::Ramp { from, to } => Rate::Ramp { from: from / factor, to: to / factor },
    }
}

/// The load beside that of a case, with a fixed rate if it has one; otherwise why it cannot be run.
pub(super) fn beside(order: &Order<'_>, planned: &Beside) -> Result<Beside, String> {
    let rate = planned.rate.as_ref().map(|rate| order.maxima.rate(rate, &order.of_case));
    Ok(Beside { rate: rate.transpose()?.map(PlannedRate::Fixed), ..planned.clone() })
}

impl Task {
    /// The planned rate, if there is one.
    pub(super) fn rate_per_s(&self) -> Option<f64> {
        match self {
            Task::Phases(phases) => match &phases[..] {
                [(_, Phase { rate: Rate::Constant(per_s), .. })] => Some(*per_s),
                _ => None,
            },
            Task::FindMax { .. } => None,
        }
    }

    pub(super) fn is_closed(&self) -> bool {
        let Task::Phases(phases) = self else { return false };
        phases.iter().any(|(_, phase)| phase.rate == Rate::Closed)
    }

    /// Its length with all warm-ups, if it is known.
    pub(super) fn length(&self) -> Option<Duration> {
        let Task::Phases(phases) = self else { return None };
        Some(phases.iter().map(|(_, phase)| phase.warmup + phase.duration).sum())
    }
}
