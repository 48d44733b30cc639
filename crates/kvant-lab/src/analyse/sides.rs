//! The comparison of two sides: figures of each attempt, ratios of blocks, intervals, assertions.
//!
//! Invariants:
//! 1. All intervals of a comparison hold together: there is one call of
//!    [`intervals::simultaneous`] for all figures of all cases.
//! 2. A block counts for a figure if all four of its attempts have it.
//! 3. Latencies are compared only of attempts at one planned rate, and not of closed loops, whose
//!    latencies follow from their rates.
//! 4. No rate is claimed of searches if one that counts found none.

use super::directory::{Directory, Measurement, PhaseOf, of_median_p99, offered};
use super::figures;
use super::layers;
use super::statistics::median;
use crate::comparison::assertion::{Figure, RatioAssertion};
use crate::comparison::{intervals, order};
use crate::model::{Asserted, Compared, FlamePair, LayerRow, Sides};
use crate::record::{Case, PhaseKind, Run, SIDES};
use kvant_profiler::recording::Facts;
use std::collections::BTreeMap;

/// A cost of a row, a successful response.
type OfRow = fn(&LayerRow) -> f64;

/// Values of the response time beyond a percentile, below which it is not compared.
const TAIL_VALUES_MIN: f64 = 10.0;
/// Planned rates that differ by more are two rates.
const RATE_PART_MAX: f64 = 0.005;
/// A layer with less of the sum on both sides is not compared: each one makes all intervals wider.
const LAYER_PART_MIN: f64 = 0.02;

/// A figure of a case: step, layer, figure.
type Key = (usize, String, Figure);

/// One side of a case: by repeat, what was measured.
type OfRepeats = BTreeMap<u32, OfAttempt>;

#[derive(Default)]
struct OfAttempt {
    steps: Vec<String>,
    /// Planned rate of each step.
    planned_per_s: Vec<f64>,
    /// Part of the requests of each step that failed.
    errors_parts: Vec<f64>,
    values: BTreeMap<Key, f64>,
}

/// The comparison; `None` if the run is none.
pub(super) fn sides(
    directory: &Directory,
    of_cases: &[(&Case, Vec<Measurement>)],
) -> Option<Sides> {
    let run = &directory.run;
    let facts = run.comparison.as_ref()?;
    let (mut figures, mut ratios, mut flames) = (Vec::new(), Vec::new(), Vec::new());
    let of_side =
        |side: &'static str| move |(case, _): &&(&Case, Vec<Measurement>)| case.subject == side;
    for a in of_cases.iter().filter(of_side(SIDES[0])) {
        let is_pair = |b: &&(&Case, _)| b.0.is_same_but_for_subject(a.0);
        let Some(b) = of_cases.iter().filter(of_side(SIDES[1])).find(is_pair) else { continue };
        for (figure, of_blocks) in compared(directory, a, b) {
            figures.push(figure);
            ratios.push(of_blocks);
        }
        flames.extend(flame_pair(directory, a, b, flames.len()));
    }
    let claimed: Vec<Vec<Option<f64>>> = figures
        .iter()
        .zip(&ratios)
        .map(|(figure, of_blocks): (&Compared, _)| match figure.figure.is_claimed() {
            true => of_blocks.clone(),
            false => vec![None; of_blocks.len()],
        })
        .collect();
    let found = intervals::simultaneous(&claimed, run.seed);
    figures.iter_mut().zip(found).for_each(|(figure, found)| figure.set_interval(found));
    Some(Sides {
        a: facts.a.clone(),
        b: facts.b.clone(),
        block_count: order::blocks(run.repeats).count(),
        confidence: intervals::CONFIDENCE,
        seed: run.seed,
        assertions: asserted(run, &figures),
        figures,
        flames,
    })
}

/// The figures of a case with the logarithms of the ratios of its blocks.
fn compared(
    directory: &Directory,
    (a_case, a): &(&Case, Vec<Measurement>),
    (_, b): &(&Case, Vec<Measurement>),
) -> Vec<(Compared, Vec<Option<f64>>)> {
    let sides: [OfRepeats; 2] = [a, b].map(|side| {
        let of = |one: &Measurement| (one.attempt.repeat, of_attempt(directory, a_case, one));
        side.iter().map(of).collect()
    });
    let mut keys: Vec<Key> = Vec::new();
    for key in sides.iter().flat_map(|side| side.values()).flat_map(|one| one.values.keys()) {
        if !keys.contains(key) && is_worth_it(&sides, key) && !is_mostly_hidden(&sides, key) {
            keys.push(key.clone());
        }
    }
    // The whole server first.
    keys.sort_by(|a, b| (a.0, !a.1.is_empty(), &a.1, a.2).cmp(&(b.0, !b.1.is_empty(), &b.1, b.2)));
    let of_key = |key: Key| {
        let value = |side: &OfRepeats, repeat: u32| side.get(&repeat)?.values.get(&key).copied();
        let block = |[first, second]: [u32; 2]| {
            let is_alike = [first, second].iter().all(|repeat| is_one_rate(&sides, *repeat, key.0));
            if is_latency(key.2) && !is_alike {
                return None;
            }
            let [a, b] = [&sides[0], &sides[1]]
                .map(|side| Some([value(side, first)?, value(side, second)?]));
            intervals::log_ratio(a?, b?)
        };
        // The other blocks are those in which that side coped.
        let has_failed = |side: &OfRepeats| values(side, &key).len() < side.len();
        let is_partial = a_case.kind == PhaseKind::FindMax && sides.iter().any(has_failed);
        let ratios: Vec<Option<f64>> = order::blocks(directory.run.repeats)
            .map(|repeats| block(repeats).filter(|_| !is_partial))
            .collect();
        let [a, b] = [0, 1].map(|side| median(&sorted(values(&sides[side], &key))));
        let step = sides.iter().flat_map(|side| side.values()).find_map(|one| one.steps.get(key.0));
        let figure = Compared {
            workload: a_case.workload.clone(),
            phase: a_case.phase.clone(),
            cell: a_case.cell.clone(),
            step: step.cloned().unwrap_or_default(),
            layer: key.1,
            figure: key.2,
            a,
            b,
            ratio: intervals::mean_ratio(&ratios),
            block_count: ratios.iter().flatten().count(),
            errors_parts: match is_latency(key.2) {
                true => [0, 1].map(|side| errors_part(&sides[side], key.0)),
                false => [0.0; 2],
            },
            interval: None,
            detectable_part: None,
        };
        (figure, ratios)
    };
    keys.into_iter().map(of_key).collect()
}

fn is_latency(figure: Figure) -> bool {
    matches!(figure, Figure::P50 | Figure::P90 | Figure::P99 | Figure::P999 | Figure::Max)
}

/// Part of the requests of a step that failed, on average.
fn errors_part(side: &OfRepeats, step: usize) -> f64 {
    let parts: Vec<f64> =
        side.values().filter_map(|one| one.errors_parts.get(step).copied()).collect();
    parts.iter().sum::<f64>() / parts.len().max(1) as f64
}

/// Whether both sides were held at one rate in a repeat.
fn is_one_rate(sides: &[OfRepeats; 2], repeat: u32, step: usize) -> bool {
    let planned =
        |side: &OfRepeats| side.get(&repeat).and_then(|one| one.planned_per_s.get(step)).copied();
    let [Some(a), Some(b)] = sides.each_ref().map(planned) else { return false };
    (a - b).abs() <= RATE_PART_MAX * a.max(b)
}

/// Whether a percentile is the generator's in half of a side's attempts or more: the others are
/// those in which that side was slow.
fn is_mostly_hidden(sides: &[OfRepeats; 2], key: &Key) -> bool {
    let is_half = |side: &OfRepeats| 2 * values(side, key).len() <= side.len();
    is_latency(key.2) && sides.iter().any(is_half)
}

/// Whether a layer has a part of its figure that is worth a claim, on either side.
fn is_worth_it(sides: &[OfRepeats; 2], key: &Key) -> bool {
    let whole = (key.0, String::new(), key.2);
    let sum = |side: &OfRepeats, key: &Key| values(side, key).iter().sum::<f64>();
    key.1.is_empty()
        || sides.iter().any(|side| sum(side, key) >= LAYER_PART_MIN * sum(side, &whole))
}

fn values(side: &OfRepeats, key: &Key) -> Vec<f64> {
    side.values().filter_map(|one| one.values.get(key).copied()).collect()
}

fn sorted(mut values: Vec<f64>) -> Vec<f64> {
    values.sort_by(f64::total_cmp);
    values
}

/// The figures of an attempt.
fn of_attempt(directory: &Directory, case: &Case, measurement: &Measurement) -> OfAttempt {
    let mut of_attempt = OfAttempt::default();
    let mut add = |step: usize, layer: &str, figure: Figure, value: Option<f64>| {
        of_attempt.values.extend(value.map(|value| ((step, layer.to_owned(), figure), value)));
    };
    if case.kind == PhaseKind::FindMax {
        // The rate at 80 % of its own maximum differs between the sides.
        let found = measurement.load.find_max.as_ref();
        add(0, "", Figure::Rate, found.and_then(|found| found.rate_max_per_s));
        return of_attempt;
    }
    for (step, (_, phase)) in measurement.steps().enumerate() {
        if !matches!(case.kind, PhaseKind::Closed | PhaseKind::Command) {
            for figure in [Figure::P50, Figure::P90, Figure::P99, Figure::P999] {
                add(step, "", figure, percentile_ns(&phase, figure));
            }
            let greatest = phase.result.response_with_unanswered.max_ns() as f64;
            add(step, "", Figure::Max, phase.percentile_ns(100.0).map(|_| greatest));
        }
        add(step, "", Figure::Rate, Some(phase.result.outcome.rate_good()));
        add(step, "", Figure::Cpu, figures::cpu_per_request_ns(measurement, &phase));
        add(step, "", Figure::Written, figures::written_per_request_bytes(measurement, &phase));
    }
    let number = measurement.attempt.number;
    let recording = directory.unless_damaged(number, directory.recording(number)).flatten();
    for (step, layers) in recording
        .iter()
        .flat_map(|recording| layers::layers(case, measurement, recording).enumerate())
    {
        let costs: [(Figure, OfRow); 3] = [
            (Figure::Cpu, |row| row.cpu_ns),
            (Figure::Allocated, |row| row.allocated_bytes),
            (Figure::Waited, |row| row.waits_ns.iter().map(|(_, ns)| ns).sum()),
        ];
        for (figure, of_row) in costs {
            // The kernel knows the CPU time of the whole.
            if figure != Figure::Cpu {
                add(step, "", figure, Some(layers.rows.iter().map(of_row).sum()));
            }
            for row in &layers.rows {
                let name = layer_name(row);
                add(step, &name, figure, Some(of_row(row)).filter(|value| *value > 0.0));
            }
        }
    }
    for (step, phase) in measurement.steps() {
        of_attempt.steps.push(step);
        of_attempt.planned_per_s.push(offered(phase.result.outcome.phase.rate));
        of_attempt.errors_parts.push(figures::errors_part(&phase));
    }
    of_attempt
}

/// A percentile, unless few values are beyond it.
fn percentile_ns(phase: &PhaseOf<'_>, figure: Figure) -> Option<f64> {
    let percent = figures::PERCENTILES.iter().find(|(name, _)| *name == figure.name())?.1;
    let beyond = phase.result.response_with_unanswered.count() as f64 * (1.0 - percent / 100.0);
    phase.percentile_ns(percent).filter(|_| beyond >= TAIL_VALUES_MIN)
}

/// Such as `put wal`.
fn layer_name(row: &LayerRow) -> String {
    match (row.activity.as_str(), row.stage.as_str()) {
        ("none", "none") => "outside of requests".to_owned(),
        ("none", stage) => stage.to_owned(),
        (activity, "none" | "") => activity.to_owned(),
        (activity, stage) => format!("{activity} {stage}"),
    }
}

/// The recordings of the attempts with the median p99 of each side.
fn flame_pair(
    directory: &Directory,
    a: &(&Case, Vec<Measurement>),
    b: &(&Case, Vec<Measurement>),
    index: usize,
) -> Option<FlamePair> {
    let of_side = |(_, measurements): &(&Case, Vec<Measurement>)| {
        let measurement = of_median_p99(measurements)?;
        let number = measurement.attempt.number;
        let recording = directory.unless_damaged(number, directory.recording(number)).flatten()?;
        let file = format!("{}/profile.kprof", Directory::dir_of(number));
        Some((file, rate_per_s(measurement, &recording.facts)))
    };
    let ((a_file, a_per_s), (b_file, b_per_s)) = (of_side(a)?, of_side(b)?);
    let cell = a.0.cell.iter().filter(|value| !value.is_empty()).map(String::as_str);
    let words = [a.0.workload.as_str(), &a.0.phase].into_iter().chain(cell);
    Some(FlamePair {
        case: words.collect::<Vec<_>>().join(" "),
        a: a_file,
        b: b_file,
        rates_per_s: a_per_s.zip(b_per_s).map(<[f64; 2]>::from),
        page: format!("difference-{}.html", index + 1),
    })
}

/// Successful responses per second of a recording.
fn rate_per_s(measurement: &Measurement, facts: &Facts) -> Option<f64> {
    let begin_ns = measurement.attempt.monotonic_ns(facts.started_wall_ns).max(0) as u64;
    let count = measurement.responses.within(begin_ns, begin_ns + facts.duration_ns)?;
    Some(count * 1e9 / facts.duration_ns.max(1) as f64)
}

/// Each assertion with each figure that it is about.
fn asserted(run: &Run, figures: &[Compared]) -> Vec<Asserted> {
    let texts = run.comparison.iter().flat_map(|facts| &facts.assertions);
    let mut all = Vec::new();
    for text in texts {
        let undecided = Asserted { text: text.clone(), ..Asserted::default() };
        // One that a later program wrote is about nothing that this one knows.
        let Ok(assertion) = RatioAssertion::parse(text) else {
            all.push(undecided);
            continue;
        };
        let decided = |one: &Compared| Asserted {
            case: one.case(),
            ratio: one.ratio,
            interval: one.interval,
            decision: assertion.check(one.known_interval()),
            ..undecided.clone()
        };
        let is_about = |one: &&Compared| {
            one.layer.is_empty() && assertion.is_about(&one.workload, &one.phase, one.figure)
        };
        let before = all.len();
        let found = figures.iter().filter(is_about);
        all.extend(found.map(decided));
        if all.len() == before {
            all.push(undecided);
        }
    }
    all
}
