//! Warnings and explanations of a comparison.

use super::comparison::{Comparison, SAME_RATE_PART, TAIL_VALUES_MIN, is_same, rate_text};
use crate::config::Rate;
use crate::outcome::Outcome;
use crate::report::json::{ConfigFacts, PhaseResult, ResultFile};
use crate::verdict::{self, Bound};

/// If less of the plan was answered, latency was that of a growing queue.
const KEPT_PART_MIN: f64 = 0.99;
/// A longer run has a higher maximum: lengths that differ by more are not comparable.
const LENGTH_RATIO_MAX: f64 = 1.5;

/// Every reason to doubt the comparison, a sentence each.
pub(super) fn of(files: [&ResultFile; 2], names: [&str; 2]) -> Vec<String> {
    let mut warnings = Vec::new();
    warnings.extend(differences(&files[0].config, &files[1].config));
    warnings.extend(hosts(files));
    for (file, name) in files.into_iter().zip(names) {
        for (index, phase) in file.phases.iter().enumerate() {
            let outcome = &phase.outcome;
            let run = format!("{name}, run {} ({})", index + 1, rate_text(outcome.phase.rate));
            let problems = validity(phase).into_iter().chain(kept(outcome));
            warnings.extend(problems.map(|problem| format!("{run}: {problem}")));
            if outcome.is_cut_short {
                warnings.push(format!("{run}: it was ended before its time."));
            }
        }
    }
    warnings.extend(rates(files.map(|file| file.phases.as_slice()), names));
    warnings
}

/// Explanations, a sentence each.
pub(super) fn notes(comparison: &Comparison, sides: [&[PhaseResult]; 2]) -> Vec<String> {
    let mut notes = Vec::new();
    if comparison.rates.is_empty() {
        notes.push("Nothing is compared: A and B have no rate in common.".to_owned());
        return notes;
    }
    let is_single = |counts: &[usize; 2]| counts.contains(&1);
    if comparison.rates.iter().any(|rate| is_single(&rate.run_counts)) {
        notes.push(
            "With one run of a rate, a difference may be chance: repeats of the same program differ as well. Run each \
             several times, in turns, before you conclude anything."
                .to_owned(),
        );
    }
    if comparison.rates.iter().any(|rate| !is_single(&rate.run_counts)) {
        notes.push(
            "Of several runs, the median is compared, with the lowest and highest behind it; \"apart\": every run of one \
             lies beyond every run of the other."
                .to_owned(),
        );
    }
    let mut rows = comparison.rates.iter().flat_map(|rate| &rate.rows);
    if rows.any(|row| row.is_thin) {
        notes.push(format!("~ rests on fewer than {TAIL_VALUES_MIN} values in a run."));
    }
    if sides.into_iter().flatten().any(|phase| !phase.outcome.unanswered.is_empty()) {
        notes.push(
            "Response times of all kinds together count what was not answered at the end with the time that it had waited: \
             the least that they can be. Those of a kind do not."
                .to_owned(),
        );
    }
    notes
}

/// The name of a setting, and the setting as text.
type Facet = (&'static str, fn(&ConfigFacts) -> String);

fn differences(a: &ConfigFacts, b: &ConfigFacts) -> Vec<String> {
    let facets: [Facet; 9] = [
        ("requests", |config| config.requests.clone()),
        ("URLs", |config| config.urls.join(" ")),
        ("connections", |config| config.connection_count.to_string()),
        ("threads", |config| config.thread_count.to_string()),
        ("arrival", |config| config.arrival.clone()),
        ("timeout", |config| format!("{} ms", config.timeout_ns / 1_000_000)),
        ("statuses that are no errors", |config| format!("{:?}", config.ok_statuses)),
        ("measurement of batches", |config| {
            if config.batch_latency { "the last answer" } else { "each answer" }.to_owned()
        }),
        ("schedule", |config| if config.wrk2_exact { "wrk2's own" } else { "ours" }.to_owned()),
    ];
    let difference = |(what, of): &Facet| {
        let (a, b) = (of(a), of(b));
        (a != b).then(|| format!("Different {what}: A {a}, B {b}."))
    };
    facets.iter().filter_map(difference).collect()
}

fn hosts(files: [&ResultFile; 2]) -> Option<String> {
    let [a, b] = files.map(|file| {
        let host = &file.host;
        let text = |text: &Option<String>| text.clone().unwrap_or_else(|| "?".to_owned());
        format!(
            "{}, {} x {}, {}",
            text(&host.name),
            host.cpu_count,
            text(&host.cpu_model),
            text(&host.kernel)
        )
    });
    (a != b).then(|| format!("Different machines: A {a}; B {b}."))
}

fn validity(phase: &PhaseResult) -> Option<String> {
    let verdict = phase.verdict.clone().unwrap_or_else(|| verdict::judge(&phase.outcome));
    let why = &verdict.headline;
    match verdict.bound {
        _ if !verdict.is_valid => Some(format!("it is not valid: {why}.")),
        Bound::Generator => Some(format!("the generator was the limit: {why}.")),
        Bound::Server | Bound::Neither => None,
    }
}

fn kept(outcome: &Outcome) -> Option<String> {
    if outcome.phase.rate == Rate::Closed || outcome.total.planned == 0 {
        return None;
    }
    let part = outcome.total.completed as f64 / outcome.total.planned as f64;
    let sign = match verdict::queued_ns(outcome) {
        _ if part < KEPT_PART_MIN => format!("{:.1} % of the plan was answered", 100.0 * part),
        Some(_) => "one request of ten waited until a connection was free".to_owned(),
        None => return None,
    };
    Some(format!(
        "{sign}: near or beyond saturation, latency is the length of the queue, and differences of it say little about the \
         program."
    ))
}

fn rates([a, b]: [&[PhaseResult]; 2], names: [&str; 2]) -> Vec<String> {
    let mut warnings = Vec::new();
    for PhaseResult { outcome, .. } in a {
        let other = first_with_rate(b, outcome.phase.rate);
        warnings.extend(other.and_then(|other| lengths(outcome, other)));
    }
    for (mine, others, name) in [(a, b, names[0]), (b, a, names[1])] {
        let rates = mine.iter().map(|phase| phase.outcome.phase.rate);
        let alone = rates.filter(|rate| first_with_rate(others, *rate).is_none());
        let mut alone: Vec<String> = alone.map(rate_text).collect();
        alone.dedup();
        if !alone.is_empty() {
            warnings.push(format!("Only {name} has {}.", alone.join(", ")));
        }
    }
    warnings.dedup();
    warnings
}

fn first_with_rate(side: &[PhaseResult], rate: Rate) -> Option<&Outcome> {
    side.iter().map(|phase| &phase.outcome).find(|outcome| is_same(outcome.phase.rate, rate))
}

fn lengths(a: &Outcome, b: &Outcome) -> Option<String> {
    let [a_s, b_s] = [a, b].map(|outcome| outcome.measured_ns as f64 / 1e9);
    let is_near = a_s.max(b_s) <= LENGTH_RATIO_MAX * a_s.min(b_s) + SAME_RATE_PART;
    let rate = rate_text(a.phase.rate);
    (!is_near).then(|| {
        format!("Different lengths at {rate}: A {a_s:.1} s, B {b_s:.1} s; the longer one meets rarer events.")
    })
}
