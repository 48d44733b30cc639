//! The verdict of an experiment that asked what faster stages would bring, in words.

use super::sentences::text;
use crate::model::{Change, GainFigure, Gains, Report, Text, WhatIf, percent};
use std::collections::BTreeSet;

/// Gains that the verdict names.
const NAMED_MAX: usize = 3;

/// The greatest gains, which stages bring none, and how far to trust it.
pub(super) fn verdict(report: &Report, found: &WhatIf, trust: Text) -> Vec<Text> {
    // Of each place and figure the stage with the greatest benefit.
    let mut named: Vec<(&Gains, &Change)> = Vec::new();
    for gains in &found.gains {
        let is_same = |(other, _): &(&Gains, &Change)| {
            let place = |gains: &Gains| report.case(gains.case).place();
            other.figure == gains.figure && place(other) == place(gains)
        };
        if !named.iter().any(is_same)
            && gains.figure != GainFigure::P50
            && let Some(change) = shown(gains)
        {
            named.push((gains, change));
        }
    }
    let mut sentences: Vec<Text> =
        named.iter().take(NAMED_MAX).map(|(gains, change)| gain(report, gains, change)).collect();
    let helps = |gains: &&Gains| gains.changes.iter().any(|change| gains.is_shown(change));
    let helpful: BTreeSet<&str> =
        found.gains.iter().filter(helps).map(|gains| gains.stage.name()).collect();
    let measured: BTreeSet<&str> = found.gains.iter().map(|gains| gains.stage.name()).collect();
    let others: Vec<&str> = measured.difference(&helpful).copied().collect();
    if !others.is_empty() {
        let names = others.join("`, `");
        sentences.push(text(
            format!("No benefit is shown of speeding up: `{names}`."),
            format!("Польза от ускорения не показана: `{names}`."),
        ));
    }
    for (stage, count, problem) in &found.failures {
        sentences.push(text(
            format!("{count} attempts about `{stage}` measured nothing: {problem}."),
            format!("Попытки об этапе `{stage}`, ничего не измерившие: {count}: {problem}."),
        ));
    }
    sentences.push(trust);
    sentences
}

/// The change to name: that in the middle, else the greatest, if its benefit is shown.
fn shown(gains: &Gains) -> Option<&Change> {
    let middle = gains.changes.get(gains.changes.len() / 2);
    middle.into_iter().chain(gains.changes.last()).find(|change| gains.is_shown(change))
}

fn gain(report: &Report, gains: &Gains, change: &Change) -> Text {
    let case = report.case(gains.case);
    let place = format!("{} {}", case.workload, case.planned_phase());
    let (stage, spared) = (gains.stage.name(), change.percent);
    let (low, high) = change.interval.unwrap_or_default();
    let by = |ratio: f64| percent((ratio - 1.0).abs());
    let (change, mut ends) = (by(change.ratio.unwrap_or(1.0)), [by(low), by(high)]);
    let (figure, verb, ru_figure, ru_verb) = match gains.figure {
        GainFigure::Rate => ("the highest rate", "raise", "наибольшую скорость", "повысило бы"),
        GainFigure::P50 | GainFigure::P99 => {
            ends.reverse();
            (gains.figure.name(), "lower", gains.figure.name(), "снизило бы")
        }
    };
    let [least, most] = ends;
    text(
        format!(
            "{place}: speeding up `{stage}` by {spared} % would {verb} {figure} by {change} % \
             ({least} to {most})."
        ),
        format!(
            "{place}: ускорение этапа `{stage}` на {spared} % {ru_verb} {ru_figure} на {change} % \
             ({least} .. {most})."
        ),
    )
}
