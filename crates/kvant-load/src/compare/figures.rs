//! The compared figures.

use super::comparison::{Row, Spread, TAIL_VALUES_MIN, Unit};
use crate::histogram::Histogram;
use crate::outcome::Outcome;
use crate::record::OpRecord;

/// Percentiles of all kinds together.
const PERCENTS: &[f64] = &[50.0, 90.0, 99.0, 99.9, 99.99, 100.0];
/// Percentiles of each kind, and of service times.
const FEW_PERCENTS: &[f64] = &[50.0, 99.0, 99.9, 100.0];

pub(super) fn rows(sides: &[Vec<&Outcome>; 2]) -> Vec<Row> {
    let mut rows = vec![
        row(sides, "answers", Unit::PerSecond, |outcome| Some(outcome.rate_achieved())),
        row(sides, "of the plan", Unit::Part, |outcome| {
            ratio(outcome.total.completed, outcome.total.planned)
        }),
        row(sides, "errors", Unit::Part, |outcome| {
            ratio(outcome.total.errors.total(), outcome.total.sent)
        }),
        row(sides, "timeouts", Unit::Count, |outcome| Some(outcome.total.errors.timeout as f64)),
        row(sides, "backlog", Unit::Count, |outcome| Some(outcome.backlog as f64)),
        row(sides, "generator CPU", Unit::Ns, |outcome| {
            ratio(outcome.total.cpu_ns, outcome.total.completed)
        }),
    ];
    rows.extend(latency(sides, "", "response", PERCENTS, &Outcome::response_with_unanswered));
    rows.extend(latency(sides, "", "service", FEW_PERCENTS, &Outcome::service));
    rows.extend(latency(sides, "", "send lag", &[99.0, 100.0], &|outcome| {
        outcome.total.send_lag.clone()
    }));
    let kinds = kinds(sides);
    if kinds.len() > 1 {
        for kind in &kinds {
            let mut add = |series, histogram: fn(&OpRecord) -> &Histogram| {
                rows.extend(latency(sides, kind, series, FEW_PERCENTS, &|outcome| {
                    outcome.total.op(kind).map_or_else(Histogram::new, |op| histogram(op).clone())
                }));
            };
            add("response", |op| &op.response);
            add("service", |op| &op.service);
        }
    }
    // A figure that is absent or zero in all runs is left out.
    rows.retain(|row| row.sides.iter().flatten().any(|spread| spread.max != 0.0));
    rows
}

/// The kinds with values in either side, in the order of the first.
fn kinds(sides: &[Vec<&Outcome>; 2]) -> Vec<String> {
    let mut kinds: Vec<String> = Vec::new();
    for outcome in sides.iter().flatten() {
        for op in &outcome.total.ops {
            if !op.response.is_empty() && !kinds.contains(&op.name) {
                kinds.push(op.name.clone());
            }
        }
    }
    kinds
}

fn row(
    sides: &[Vec<&Outcome>; 2],
    what: &str,
    unit: Unit,
    figure: impl Fn(&Outcome) -> Option<f64>,
) -> Row {
    let spread = |side: &Vec<&Outcome>| {
        Spread::of(side.iter().filter_map(|&outcome| figure(outcome)).collect())
    };
    Row {
        kind: String::new(),
        what: what.to_owned(),
        unit,
        sides: sides.each_ref().map(spread),
        is_thin: false,
    }
}

fn latency(
    sides: &[Vec<&Outcome>; 2],
    kind: &str,
    series: &str,
    percents: &[f64],
    histogram: &dyn Fn(&Outcome) -> Histogram,
) -> Vec<Row> {
    let histograms = sides.each_ref().map(|side| {
        let all = side.iter().map(|&outcome| histogram(outcome));
        all.filter(|histogram| !histogram.is_empty()).collect::<Vec<_>>()
    });
    let row = |&percent: &f64| Row {
        kind: kind.to_owned(),
        what: match percent {
            100.0 => format!("{series} max"),
            _ => format!("{series} p{percent}"),
        },
        unit: Unit::Ns,
        sides: histograms.each_ref().map(|side| {
            Spread::of(
                side.iter().map(|histogram| histogram.percentile_ns(percent) as f64).collect(),
            )
        }),
        // A maximum is never thin.
        is_thin: percent < 100.0
            && histograms.iter().flatten().any(|histogram| is_thin(histogram, percent)),
    };
    percents.iter().map(row).collect()
}

fn is_thin(histogram: &Histogram, percent: f64) -> bool {
    // The addend covers the rounding of the percentage.
    histogram.count() as f64 * (100.0 - percent) / 100.0 + 1e-6 < TAIL_VALUES_MIN as f64
}

fn ratio(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}
