//! What faster stages would bring, from the attempts of a run that slowed all others down.
//!
//! In an attempt each phase has another slow-down, in an order that chance decides
//! ([`crate::comparison::speed_ups`]). In a time that is measured by the slow-down all other stages
//! cost what they did; so rates are multiplied by it, and times divided. Of a block, a figure and a
//! slow-down there is one number: the logarithm of the figure by that of the phase in which nothing
//! was slowed down. Intervals of all of them hold together in 99 of 100 experiments
//! ([`crate::comparison::shifts`]).
//!
//! Invariants:
//! 1. An attempt that counts is a block of its case; its repeat is the block's number.
//! 2. There is one call of [`shifts::simultaneous`] for everything that is claimed.

use super::directory::{Directory, Measurement, read_optional};
use super::statistics;
use crate::comparison::shifts;
use crate::model::{Change, GainFigure, Gains, WhatIf};
use crate::record::{Case, PhaseKind, SpedUp, WhatIfFacts};
use kvant_base::Result;
use std::cmp::Ordering;
use std::collections::BTreeMap;

/// Responses beyond a percentile that a phase needs.
const BEYOND_MIN: f64 = 5.0;

/// A figure of a phase, in the time that is measured by the slow-down.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Sample {
    /// [`Case::id`].
    pub(super) case: usize,
    /// From 1.
    pub(super) block: u32,
    /// Per cent of its time that the stage of the case was spared.
    pub(super) percent: u32,
    pub(super) figure: GainFigure,
    pub(super) value: f64,
}

pub(super) fn of_run(
    directory: &Directory,
    of_cases: &[(&Case, Vec<Measurement>)],
) -> Option<WhatIf> {
    let run = &directory.run;
    let facts = run.what_if.clone()?;
    let mut samples = Vec::new();
    let mut failures: BTreeMap<&str, (usize, String)> = BTreeMap::new();
    for (case, measurements) in of_cases {
        let Some(stage) = case.sped_up else { continue };
        for measurement in measurements {
            let number = measurement.attempt.number;
            let read: Result<Option<Vec<SpedUp>>> =
                read_optional(&directory.file(number, "what-if.json"));
            let Some(phases) = directory.unless_damaged(number, read).flatten() else { continue };
            if let Some(problem) = phases.iter().find_map(|phase| phase.problem.clone()) {
                failures.entry(stage.name()).or_insert((0, problem)).0 += 1;
                continue;
            }
            samples.extend(of_attempt(case, measurement, &phases));
        }
    }
    Some(WhatIf {
        gains: gains(&samples, &run.cases, &facts, run.repeats, run.seed),
        facts,
        block_count: run.repeats,
        confidence: shifts::CONFIDENCE,
        seed: run.seed,
        failures: failures
            .into_iter()
            .map(|(stage, (count, problem))| (stage.to_owned(), count, problem))
            .collect(),
    })
}

fn of_attempt(case: &Case, measurement: &Measurement, phases: &[SpedUp]) -> Vec<Sample> {
    let mut samples = Vec::new();
    for (sped_up, (_, phase)) in phases.iter().zip(measurement.steps()) {
        let response = &phase.result.response_with_unanswered;
        let time = |percent: f64| {
            let beyond = response.count() as f64 * (100.0 - percent) / 100.0;
            let time_ns = phase.percentile_ns(percent).filter(|_| beyond >= BEYOND_MIN)?;
            Some(time_ns.max(1.0) / sped_up.factor)
        };
        let rate_per_s = phase.result.outcome.rate_good() * sped_up.factor;
        let is_closed = case.kind == PhaseKind::Closed && rate_per_s > 0.0;
        let figures = [
            (GainFigure::Rate, is_closed.then_some(rate_per_s)),
            (GainFigure::P50, time(50.0)),
            (GainFigure::P99, time(99.0)),
        ];
        samples.extend(figures.into_iter().filter_map(|(figure, value)| {
            let (block, percent) = (measurement.attempt.repeat, sped_up.percent);
            Some(Sample { case: case.id, block, percent, figure, value: value? })
        }));
    }
    samples
}

/// What each stage would bring. Blocks are counted from 1 to `block_count`.
pub(super) fn gains(
    samples: &[Sample],
    cases: &[Case],
    facts: &WhatIfFacts,
    block_count: u32,
    seed: u64,
) -> Vec<Gains> {
    let key = |one: &Sample| ((one.case, one.figure, one.percent, one.block), one.value);
    let values: BTreeMap<(usize, GainFigure, u32, u32), f64> = samples.iter().map(key).collect();
    let value = |case: usize, figure: GainFigure, percent: u32, block: u32| {
        values.get(&(case, figure, percent, block)).copied()
    };
    let mut rows: Vec<Gains> = Vec::new();
    let mut logarithms: Vec<Vec<Option<f64>>> = Vec::new();
    for case in cases {
        let Some(stage) = case.sped_up else { continue };
        for figure in GainFigure::ALL {
            let mut known: Vec<f64> =
                (1..=block_count).filter_map(|block| value(case.id, figure, 0, block)).collect();
            known.sort_by(f64::total_cmp);
            let Some(as_it_is) = statistics::median(&known) else { continue };
            rows.push(Gains { case: case.id, stage, figure, as_it_is, changes: Vec::new() });
            for percent in &facts.percents {
                let of_block = |block| {
                    let as_it_is = value(case.id, figure, 0, block)?;
                    Some((value(case.id, figure, *percent, block)? / as_it_is).ln())
                };
                logarithms.push((1..=block_count).map(of_block).collect());
            }
        }
    }
    let found = shifts::simultaneous(&logarithms, seed);
    let changes: Vec<Change> = logarithms
        .iter()
        .zip(found)
        .zip(facts.percents.iter().cycle())
        .map(|((numbers, shift), percent)| Change {
            percent: *percent,
            block_count: numbers.iter().flatten().count(),
            ratio: shifts::estimate(numbers).map(f64::exp),
            interval: shift.map(|shift| (shift.low.exp(), shift.high.exp())),
            detectable_part: shift.map(|shift| shift.detectable.exp_m1()),
        })
        .collect();
    let of_rows = changes.chunks(facts.percents.len().max(1));
    rows.iter_mut().zip(of_rows).for_each(|(row, changes)| row.changes = changes.to_vec());
    rows.sort_by(|a, b| order(a, b, cases));
    rows
}

/// By subject, workload, cell and phase, then by figure, then by benefit.
fn order(a: &Gains, b: &Gains, cases: &[Case]) -> Ordering {
    let place = |row: &Gains| cases[row.case].place();
    let benefit = || b.greatest_benefit().total_cmp(&a.greatest_benefit());
    place(a).cmp(&place(b)).then(a.figure.cmp(&b.figure)).then_with(benefit)
}

#[cfg(test)]
mod tests;
