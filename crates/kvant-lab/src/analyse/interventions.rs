//! What making suspects happen changed: trials and response times of all attempts that count.
//!
//! Invariants:
//! 1. An attempt is a block; its repeat is the block's number.
//! 2. A window that was not over when the measured time was, or whose suspect did not happen, is
//!    not part of it.

use super::directory::{Directory, Measurement};
use super::evidence;
use crate::comparison::shifts;
use crate::explain::evidence::Evidence;
use crate::explain::intervention::{Effect, Sample, due, effects};
use crate::explain::{Explanation, explain};
use crate::model::Interventions;
use crate::record::{Case, Trial};
use kvant_base::Result;
use std::collections::BTreeMap;
use std::path::Path;

/// What making suspects happen changed in the run in `dir`; `None` if it did not do that.
///
/// # Errors
/// As [`super::analyse`].
pub fn interventions(dir: &Path) -> Result<Option<Interventions>> {
    let directory = Directory::read(dir)?;
    let of_cases: Vec<(&Case, Vec<Measurement>)> =
        directory.run.cases.iter().map(|case| (case, directory.measurements(case))).collect();
    Ok(of_run(&directory, &of_cases))
}

pub(super) fn of_run(
    directory: &Directory,
    of_cases: &[(&Case, Vec<Measurement>)],
) -> Option<Interventions> {
    let run = &directory.run;
    let facts = run.intervention.clone()?;
    let mut samples = Vec::new();
    let mut failures: BTreeMap<&str, (usize, String)> = BTreeMap::new();
    let mut explanations: Vec<(usize, Explanation)> = Vec::new();
    for (case, measurements) in of_cases {
        for measurement in measurements {
            let number = measurement.attempt.number;
            let read = directory.unless_damaged(number, read(directory, measurement));
            let Some((trials, evidence)) = read else { continue };
            let end_ns = measurement.steps().map(|(_, phase)| phase.end_ns).max().unwrap_or(0);
            for trial in trials {
                let window_end_ns = trial.at_ns + facts.window_ns;
                if let Some(problem) = trial.problem {
                    let of = failures.entry(trial.suspect.name()).or_insert((0, problem));
                    of.0 += 1;
                } else if window_end_ns <= end_ns {
                    samples.push(Sample {
                        case: case.id,
                        block: measurement.attempt.repeat,
                        suspect: trial.suspect,
                        is_treated: trial.is_treated,
                        latencies: due(&evidence.windows, trial.at_ns, window_end_ns),
                    });
                }
            }
            explanations.push((case.id, explain(&evidence)));
        }
    }
    let mut effects = effects(&samples, run.repeats, run.seed);
    for effect in &mut effects {
        effect.coinciding_part = coinciding_part(effect, &explanations);
    }
    Some(Interventions {
        facts,
        block_count: run.repeats,
        confidence: shifts::CONFIDENCE,
        seed: run.seed,
        effects,
        failures: failures
            .into_iter()
            .map(|(suspect, (count, problem))| (suspect.to_owned(), count, problem))
            .collect(),
    })
}

fn read(directory: &Directory, measurement: &Measurement) -> Result<(Vec<Trial>, Evidence)> {
    let file = directory.file(measurement.attempt.number, "trials.json");
    let trials = super::directory::read_optional(&file)?.unwrap_or_default();
    Ok((trials, evidence::of_attempt(directory, &measurement.attempt)?))
}

/// The mean part of the excess that coincides with the suspect, over the attempts of its case.
fn coinciding_part(effect: &Effect, explanations: &[(usize, Explanation)]) -> f64 {
    let cause = effect.cause();
    let parts: Vec<f64> = explanations
        .iter()
        .filter(|(case, _)| *case == effect.case)
        .map(|(_, explanation)| {
            let row = explanation
                .rows
                .iter()
                .find(|row| row.operation == effect.operation && row.percent == effect.percent);
            let shares = row.map_or(&[][..], |row| &row.shares);
            let of_suspect =
                shares.iter().filter(|share| share.cause == cause || share.or.contains(&cause));
            of_suspect.map(|share| share.part).sum()
        })
        .collect();
    parts.iter().sum::<f64>() / parts.len().max(1) as f64
}
