//! Figures of each case: what its valid attempts measured.

use super::account::{greatest, spent, switches};
use super::directory::{Measurement, PhaseOf, offered};
use super::statistics::measured;
use crate::model::{Figures, Measured, OpFigures, Spectrum};
use crate::record::{Attempt, AttemptVerdict, Case, StatsSample, WatchSample};
use kvant_load::Histogram;
use kvant_load::report::json::PhaseResult;
use std::collections::BTreeMap;

/// Percentiles of the response time, by name.
pub(super) const PERCENTILES: [(&str, f64); 7] = [
    ("p50", 50.0),
    ("p75", 75.0),
    ("p90", 90.0),
    ("p99", 99.0),
    ("p99.9", 99.9),
    ("p99.99", 99.99),
    ("p99.999", 99.999),
];

/// A phase of one step, of one repeat.
type Step<'a> = (&'a Measurement, PhaseOf<'a>);

/// Figures and spectra of a case, one for each of its steps.
pub(super) fn figures(
    case: &Case,
    attempts: &[Attempt],
    measurements: &[Measurement],
) -> (Vec<Figures>, Vec<Spectrum>) {
    let mut steps: Vec<(String, Vec<Step<'_>>)> = Vec::new();
    for measurement in measurements {
        for (name, phase) in measurement.steps() {
            match steps.iter_mut().find(|(known, _)| *known == name) {
                Some((_, of_step)) => of_step.push((measurement, phase)),
                None => steps.push((name, vec![(measurement, phase)])),
            }
        }
    }
    let is_dropped =
        |attempt: &&Attempt| attempt.case == case.id && attempt.verdict != AttemptVerdict::Valid;
    let disturbed = attempts.iter().filter(is_dropped).count();
    let (mut figures, mut spectra) = (Vec::new(), Vec::new());
    for (step, phases) in &steps {
        figures.extend(of_step(case, step, phases, disturbed));
        spectra.extend(spectrum(case, step, "response", phases, |phase| {
            &phase.result.response_with_unanswered
        }));
        spectra.extend(spectrum(case, step, "service", phases, |phase| &phase.result.service));
    }
    (figures, spectra)
}

/// `None` without any response.
fn of_step(case: &Case, step: &str, phases: &[Step<'_>], disturbed: usize) -> Option<Figures> {
    let each = |of: &dyn Fn(&Measurement, &PhaseOf<'_>) -> Option<f64>| {
        measured(phases.iter().filter_map(|(measurement, phase)| of(measurement, phase)))
    };
    let every = |of: &dyn Fn(&PhaseOf<'_>) -> f64| each(&|_, phase| Some(of(phase)));
    let per_request = |counter| {
        each(&|measurement, phase| {
            let count = answered(measurement, phase);
            Some(spent(&measurement.watch, phase.start_ns, phase.end_ns, counter)? / count?)
        })
    };
    let planned = offered(phases.first()?.1.result.outcome.phase.rate);
    Some(Figures {
        case: case.id,
        step: step.to_owned(),
        attempts: phases.iter().map(|(measurement, _)| measurement.attempt.number).collect(),
        disturbed,
        planned_per_s: (planned > 0.0).then_some(planned),
        achieved_per_s: every(&|phase| phase.result.rate_achieved_per_s)?,
        errors_part: every(&|phase| {
            let total = &phase.result.outcome.total;
            total.errors.total() as f64 / total.planned.max(1) as f64
        })?,
        response_ns: response(phases),
        service_p99_ns: every(&|phase| phase.result.service.percentile_ns(99.0) as f64)?,
        send_lag_p99_ns: every(&|phase| {
            phase.result.outcome.total.send_lag.percentile_ns(99.0) as f64
        })?,
        cpu_per_request_ns: each(&cpu_per_request_ns),
        cpu_with_later_work_ns: each(&|measurement, phase| {
            let end_ns = measurement.watch.samples.last()?.at_ns;
            let is_last = measurement.load.phases.last().is_some_and(|last| {
                last.outcome.start_wall_ms == phase.result.outcome.start_wall_ms
            });
            let count = answered(measurement, phase)?;
            let cpu = |sample: &WatchSample| sample.server_cpu_ns;
            let all = spent(&measurement.watch, phase.start_ns, end_ns, cpu)? / count;
            is_last.then_some(all)
        }),
        rss_max_bytes: each(&|measurement, phase| {
            let rss = |sample: &WatchSample| sample.server_rss_bytes;
            Some(greatest(&measurement.watch, phase.start_ns, phase.end_ns, rss)? as f64)
        }),
        disk_written_per_request_bytes: per_request(|sample| sample.server_written_bytes),
        write_amplification: each(&|measurement, _| write_amplification(&measurement.stats)),
        switches_per_request: per_request(switches),
        goodput_per_s: each(&|measurement, phase| {
            let seconds = phase.result.outcome.measured_ns as f64 / 1e9;
            let good = good_count(&measurement.load.config.ok_statuses, phase.result);
            (seconds > 0.0).then(|| good as f64 / seconds)
        })?,
        ops: ops(phases),
    })
}

/// CPU time of the subject per response of one phase.
pub(super) fn cpu_per_request_ns(measurement: &Measurement, phase: &PhaseOf<'_>) -> Option<f64> {
    let cpu = |sample: &WatchSample| sample.server_cpu_ns;
    let count = answered(measurement, phase)?;
    Some(spent(&measurement.watch, phase.start_ns, phase.end_ns, cpu)? / count)
}

/// Statistics by name; those that are the generator's in every repeat are left out.
fn response(phases: &[Step<'_>]) -> Vec<(String, Measured)> {
    let named = |name: &str, of: &dyn Fn(&PhaseOf<'_>) -> Option<f64>| {
        Some((name.to_owned(), measured(phases.iter().filter_map(|(_, phase)| of(phase)))?))
    };
    let percentiles = PERCENTILES
        .iter()
        .filter_map(|&(name, percent)| named(name, &|phase| phase.percentile_ns(percent)));
    let of_all = |phase: &PhaseOf<'_>, of: fn(&Histogram) -> f64| {
        let response = &phase.result.response_with_unanswered;
        (!response.is_empty()).then(|| of(response))
    };
    named("mean", &|phase| of_all(phase, Histogram::mean_ns))
        .into_iter()
        .chain(percentiles)
        .chain(named("max", &|phase| of_all(phase, |all| all.max_ns() as f64)))
        .collect()
}

/// Responses of the load and of the one beside it: the subject worked for both. `None` if there
/// were none.
fn answered(measurement: &Measurement, phase: &PhaseOf<'_>) -> Option<f64> {
    let beside = measurement.beside.iter().flat_map(|load| &load.phases);
    let beside: u64 = beside.map(|phase| phase.outcome.total.completed).sum();
    let count = phase.result.outcome.total.completed + beside;
    (count > 0).then_some(count as f64)
}

/// Responses that did what was asked: 2xx, and statuses that count as success.
fn good_count(ok_statuses: &[u16], phase: &PhaseResult) -> u64 {
    let statuses = phase.outcome.total.ops.iter().flat_map(|op| &op.statuses);
    let is_good = |status: u16| (200..300).contains(&status) || ok_statuses.contains(&status);
    statuses.filter(|(status, _)| is_good(*status)).map(|(_, count)| count).sum()
}

/// Bytes written by the log, flushes and compactions by bytes of keys and values, between the first
/// and the last sample; `None` if nothing was put.
pub(super) fn write_amplification(stats: &[StatsSample]) -> Option<f64> {
    let (first, last) = (stats.first()?, stats.last()?);
    let grown = |pointer: &str| {
        let value = |sample: &StatsSample| sample.stats.pointer(pointer)?.as_u64();
        value(last)?.checked_sub(value(first)?)
    };
    let user = grown("/engine/writes/user_bytes")?;
    let written = grown("/engine/wal/written_bytes")?
        + grown("/engine/flushes/written_bytes")?
        + grown("/engine/compactions/written_bytes")?;
    (user > 0).then(|| written as f64 / user as f64)
}

fn ops(phases: &[Step<'_>]) -> Vec<OpFigures> {
    let mut names: Vec<&str> = Vec::new();
    for op in phases.iter().flat_map(|(_, phase)| &phase.result.outcome.total.ops) {
        if !names.contains(&op.name.as_str()) {
            names.push(&op.name);
        }
    }
    let figures = |name: &str| {
        let of_name = || {
            phases.iter().filter_map(move |(_, phase)| {
                let op = phase.result.outcome.total.op(name)?;
                Some((op, phase.result.outcome.measured_ns as f64 / 1e9))
            })
        };
        let mut statuses: BTreeMap<u16, u64> = BTreeMap::new();
        for (op, _) in of_name() {
            op.statuses.iter().for_each(|&(status, n)| *statuses.entry(status).or_default() += n);
        }
        Some(OpFigures {
            name: name.to_owned(),
            achieved_per_s: measured(of_name().map(|(op, s)| op.response.count() as f64 / s))?,
            p50_ns: measured(of_name().map(|(op, _)| op.response.percentile_ns(50.0) as f64))?,
            p99_ns: measured(of_name().map(|(op, _)| op.response.percentile_ns(99.0) as f64))?,
            p999_ns: measured(of_name().map(|(op, _)| op.response.percentile_ns(99.9) as f64))?,
            statuses: statuses.into_iter().collect(),
        })
    };
    names.into_iter().filter_map(figures).collect()
}

/// The percentile spectrum of all repeats together; `None` without values.
fn spectrum(
    case: &Case,
    step: &str,
    what: &str,
    phases: &[Step<'_>],
    of: for<'a> fn(&'a PhaseOf<'_>) -> &'a Histogram,
) -> Option<Spectrum> {
    let mut all = Histogram::new();
    phases.iter().for_each(|(_, phase)| all.add(of(phase)));
    let count = all.count();
    // The last row is at infinity; the maximum stands where one of `count` values is above.
    let inverse = |inverse: f64| if inverse.is_finite() { inverse } else { count as f64 };
    let points = all.spectrum().map(|row| (inverse(row.inverse()), row.value_ns)).collect();
    (count > 0).then(|| Spectrum {
        case: case.id,
        step: step.to_owned(),
        what: what.to_owned(),
        points,
        count,
    })
}
