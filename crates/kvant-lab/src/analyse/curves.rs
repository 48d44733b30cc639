//! Throughput-latency curves, and the universal scalability law over connections.

mod usl;

use super::directory::{Measurement, offered};
use super::statistics::measured;
use crate::model::{Curve, CurvePoint, Text};
use crate::record::{Case, Run};
use kvant_load::Rate;
use kvant_load::report::json::{PhaseResult, ResultFile};

/// Name of the axis over which the law is fitted.
const CONNECTIONS: &str = "connections";

/// The curve of each subject, cell and workload that has points. `measured` has the measurements of
/// each case.
pub(super) fn curves(run: &Run, of_cases: &[(&Case, Vec<Measurement>)]) -> Vec<Curve> {
    let mut curves: Vec<Curve> = Vec::new();
    for (case, measurements) in of_cases {
        let points: Vec<CurvePoint> = measurements.iter().flat_map(points).collect();
        if points.is_empty() {
            continue;
        }
        let same = |curve: &&mut Curve| {
            curve.subject == case.subject
                && curve.cell == case.cell
                && curve.workload == case.workload
        };
        match curves.iter_mut().find(same) {
            Some(curve) => curve.points.extend(points),
            None => curves.push(Curve {
                subject: case.subject.clone(),
                cell: case.cell.clone(),
                workload: case.workload.clone(),
                points,
                usl: None,
                usl_text: Text::default(),
            }),
        }
    }
    for curve in &mut curves {
        curve.points.sort_by(|a, b| a.offered_per_s.total_cmp(&b.offered_per_s));
    }
    fit(run, &mut curves);
    curves
}

fn points(measurement: &Measurement) -> impl Iterator<Item = CurvePoint> + '_ {
    let load = &measurement.load;
    let attempt = measurement.attempt.number;
    let is_flat = |phase: &PhaseResult| {
        !matches!(phase.outcome.phase.rate, Rate::Ramp { .. }) && phase.outcome.total.completed > 0
    };
    let is_point =
        move |index: usize, phase: &PhaseResult| is_flat(phase) && !is_disturbed(load, index);
    load.phases.iter().enumerate().filter(move |(index, phase)| is_point(*index, phase)).map(
        move |(index, phase)| CurvePoint {
            offered_per_s: offered(phase.outcome.phase.rate),
            achieved_per_s: phase.outcome.rate_good(),
            p50_ns: phase.response_with_unanswered.percentile_ns(50.0),
            p99_ns: phase.response_with_unanswered.percentile_ns(99.0),
            p999_ns: phase.response_with_unanswered.percentile_ns(99.9),
            max_ns: phase.response_with_unanswered.max_ns(),
            holds: judged(load, index),
            attempt,
        },
    )
}

/// Whether a phase of a search was disturbed and failed: its latencies are not the subject's. One
/// that held nevertheless counts.
fn is_disturbed(load: &ResultFile, index: usize) -> bool {
    let point = load.find_max.as_ref().and_then(|search| search.points.get(index));
    point.is_some_and(|point| !point.is_met && point.disturbance.is_some())
}

/// Whether a phase of a search held.
fn judged(load: &ResultFile, index: usize) -> Option<bool> {
    let point = load.find_max.as_ref()?.points.get(index)?;
    (point.rate_per_s > 0.0).then_some(point.is_met)
}

/// Fits the law to the closed loops of a sweep over connections: the throughput of each number.
fn fit(run: &Run, curves: &mut [Curve]) {
    let Some(axis) = run.sweep.iter().position(|axis| axis.name == CONNECTIONS) else {
        for curve in curves {
            curve.usl_text = Text {
                en: "The universal scalability law needs a sweep over connections.".into(),
                ru: "Для универсального закона масштабируемости нужен перебор числа соединений."
                    .into(),
            };
        }
        return;
    };
    for index in 0..curves.len() {
        let curve = &curves[index];
        let others = |cell: &[String]| {
            cell.iter().enumerate().all(|(at, value)| at == axis || *value == curve.cell[at])
        };
        let same = curves.iter().filter(|other| {
            other.subject == curve.subject
                && other.workload == curve.workload
                && others(&other.cell)
        });
        let throughput: Vec<(f64, f64)> = same
            .filter_map(|other| {
                let closed = other.points.iter().filter(|point| point.offered_per_s == 0.0);
                // The law has no rate of 0.
                let rate = measured(closed.map(|point| point.achieved_per_s))
                    .filter(|rate| rate.median > 0.0)?;
                Some((other.cell[axis].parse().ok()?, rate.median))
            })
            .collect();
        let (law, text) = usl::fit(&throughput);
        curves[index].usl = law;
        curves[index].usl_text = text;
    }
}
