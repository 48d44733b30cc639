//! The verdict of an experiment that made suspects happen, in words.

use super::sentences::text;
use crate::explain::intervention::{Effect, Finding};
use crate::model::{Interventions, Report, Text, finding_text};

/// Effects that the verdict names.
const NAMED_MAX: usize = 3;
/// The percentile that a suspect is cleared of in the verdict.
const CLEARED_PERCENT: f64 = 99.0;

/// The causes with their greatest effects, what is none, and how far to trust it.
pub(super) fn verdict(report: &Report, found: &Interventions, trust: Text) -> Vec<Text> {
    let mut sentences = Vec::new();
    let mut effects: Vec<&Effect> = found.effects.iter().collect();
    effects.sort_by(|a, b| {
        let change = |effect: &Effect| effect.change_ns.unwrap_or(0.0).abs();
        change(b).total_cmp(&change(a))
    });
    // Of each suspect and case the greatest effect.
    let mut named: Vec<&Effect> = Vec::new();
    for effect in &effects {
        let is_shown = matches!(effect.finding(), Finding::Cause | Finding::Relief);
        let is_same =
            |other: &&Effect| (other.case, other.suspect) == (effect.case, effect.suspect);
        if is_shown && !named.iter().any(is_same) {
            named.push(effect);
        }
    }
    for effect in named.iter().take(NAMED_MAX) {
        let (place, claim) = (place(report, effect), finding_text(effect));
        sentences.push(text(
            format!("{place}, {} without it: {}.", effect.control_text(), claim.en),
            format!("{place}, без события {}: {}.", effect.control_text(), claim.ru),
        ));
    }
    let is_cleared = |suspect| {
        let of: Vec<&Effect> =
            found.effects.iter().filter(|effect| effect.suspect == suspect).collect();
        let is_none =
            |effect: &&Effect| matches!(effect.finding(), Finding::NoEffect | Finding::Correlation);
        let of_tail = of.iter().any(|one| one.percent == CLEARED_PERCENT && is_none(one));
        of_tail && !named.iter().any(|effect| effect.suspect == suspect)
    };
    let cleared: Vec<&str> = found
        .facts
        .suspects
        .iter()
        .filter(|suspect| is_cleared(**suspect))
        .map(|suspect| suspect.name())
        .collect();
    if !cleared.is_empty() {
        let names = cleared.join(", ");
        sentences.push(text(
            format!("No effect of making it happen is shown of: {names}."),
            format!("Влияние вызванных событий не показано: {names}."),
        ));
    }
    for (suspect, count, problem) in &found.failures {
        sentences.push(text(
            format!("{suspect} did not happen {count} times when it should: {problem}."),
            format!("{suspect}: событие не произошло, раз: {count}: {problem}."),
        ));
    }
    sentences.push(trust);
    sentences
}

/// Such as `flush, get p99 in mixed held`.
fn place(report: &Report, effect: &Effect) -> String {
    let case = report.case(effect.case);
    format!(
        "{}, {} p{} in {} {}",
        effect.suspect.name(),
        effect.operation,
        effect.percent,
        case.workload,
        case.phase
    )
}
