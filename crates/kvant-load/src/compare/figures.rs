//! The figures that are compared.

use super::{Row, Spread, TAIL_VALUES_MIN, Unit};
use crate::histogram::Histogram;
use crate::outcome::Outcome;

/// Of all kinds together.
const PERCENTILES: &[(&str, f64)] = &[
    ("p50", 50.0),
    ("p90", 90.0),
    ("p99", 99.0),
    ("p99.9", 99.9),
    ("p99.99", 99.99),
    ("max", 100.0),
];
/// Of each kind, and of what explains the response time.
const FEW_PERCENTILES: &[(&str, f64)] =
    &[("p50", 50.0), ("p99", 99.0), ("p99.9", 99.9), ("max", 100.0)];

/// The rows of the phases of one rate.
pub(super) fn rows(sides: &[Vec<&Outcome>; 2]) -> Vec<Row> {
    let mut rows = vec![
        row(sides, "answers", Unit::PerSecond, |outcome| Some(outcome.rate_achieved())),
        row(sides, "of the plan", Unit::Part, |outcome| {
            part(outcome.total.completed, outcome.total.planned)
        }),
        row(sides, "errors", Unit::Part, |outcome| part(error_count(outcome), outcome.total.sent)),
        row(sides, "timeouts", Unit::Count, |outcome| Some(outcome.total.errors.timeout as f64)),
        row(sides, "backlog", Unit::Count, |outcome| Some(outcome.backlog as f64)),
        row(sides, "generator CPU", Unit::Ns, |outcome| {
            let answers = outcome.total.completed;
            (answers > 0).then(|| outcome.total.cpu_ns as f64 / answers as f64)
        }),
    ];
    rows.extend(latency(sides, "", "response", PERCENTILES, &Outcome::response_with_unanswered));
    rows.extend(latency(sides, "", "service", FEW_PERCENTILES, &Outcome::service));
    rows.extend(latency(sides, "", "send lag", &[("p99", 99.0), ("max", 100.0)], &|outcome| {
        outcome.total.send_lag.clone()
    }));
    let kinds = kinds(sides);
    if kinds.len() > 1 {
        for kind in &kinds {
            rows.extend(latency(sides, kind, "response", FEW_PERCENTILES, &|outcome| {
                of_kind(outcome, kind, |op| &op.response)
            }));
            rows.extend(latency(sides, kind, "service", FEW_PERCENTILES, &|outcome| {
                of_kind(outcome, kind, |op| &op.service)
            }));
        }
    }
    // A figure that no run has, or that is zero in all, says nothing.
    rows.retain(|row| row.sides.iter().flatten().any(|spread| spread.max != 0.0));
    rows
}

/// The kinds that either side has values of, in the order of the first.
fn kinds(sides: &[Vec<&Outcome>; 2]) -> Vec<String> {
    let mut kinds: Vec<String> = Vec::new();
    for outcome in sides.iter().flatten() {
        for (name, op) in outcome.op_names.iter().zip(&outcome.total.ops) {
            if !op.response.is_empty() && !kinds.contains(name) {
                kinds.push(name.clone());
            }
        }
    }
    kinds
}

fn of_kind(
    outcome: &Outcome,
    kind: &str,
    histogram: impl Fn(&crate::record::OpRecord) -> &Histogram,
) -> Histogram {
    let index = outcome.op_names.iter().position(|name| name == kind);
    match index.and_then(|index| outcome.total.ops.get(index)) {
        Some(op) => histogram(op).clone(),
        None => Histogram::new(),
    }
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
    percentiles: &[(&str, f64)],
    histogram: &dyn Fn(&Outcome) -> Histogram,
) -> Vec<Row> {
    let histograms = sides.each_ref().map(|side| {
        let all = side.iter().map(|&outcome| histogram(outcome));
        all.filter(|histogram| !histogram.is_empty()).collect::<Vec<_>>()
    });
    let row = |&(name, percent): &(&str, f64)| Row {
        kind: kind.to_owned(),
        what: format!("{series} {name}"),
        unit: Unit::Ns,
        sides: histograms.each_ref().map(|side| {
            Spread::of(
                side.iter().map(|histogram| histogram.percentile_ns(percent) as f64).collect(),
            )
        }),
        // A maximum is what it is.
        is_thin: percent < 100.0
            && histograms.iter().flatten().any(|histogram| is_thin(histogram, percent)),
    };
    percentiles.iter().map(row).collect()
}

fn is_thin(histogram: &Histogram, percent: f64) -> bool {
    // A little more than the exact part, as the percentage is not an exact number.
    histogram.count() as f64 * (100.0 - percent) / 100.0 + 1e-6 < TAIL_VALUES_MIN as f64
}

fn error_count(outcome: &Outcome) -> u64 {
    let errors = &outcome.total.errors;
    errors.connect + errors.read + errors.write + errors.status + errors.timeout
}

fn part(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}
