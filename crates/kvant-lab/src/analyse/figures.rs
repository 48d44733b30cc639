//! Figures of each case: what its valid attempts measured.

use super::account::{greatest, spent, switches};
use super::directory::{Measurement, PhaseOf, is_mostly_subjects, offered};
use super::statistics::measured;
use crate::model::{Figures, Measured, OpFigures, Spectrum};
use crate::record::{Attempt, AttemptVerdict, Case, PhaseKind, StatsSample, WatchSample};
use kvant_load::Histogram;
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

/// A subject that was watched for less than this after the load did nothing later that counts.
const LATER_NS_MIN: u64 = 500_000_000;

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
    let count = |is: fn(&AttemptVerdict) -> bool| {
        attempts.iter().filter(|one| one.case == case.id && is(&one.verdict)).count()
    };
    let disturbed = count(|verdict| matches!(verdict, AttemptVerdict::Disturbed(_)));
    let failed = count(|verdict| matches!(verdict, AttemptVerdict::Failed(_)));
    let (mut figures, mut spectra) = (Vec::new(), Vec::new());
    for (step, phases) in &steps {
        let of_step = of_step(case, step, phases);
        figures.extend(of_step.map(|of_step| Figures { disturbed, failed, ..of_step }));
        spectra.extend(spectrum(case, step, "response", phases, |phase| {
            &phase.result.response_with_unanswered
        }));
        spectra.extend(spectrum(case, step, "service", phases, |phase| &phase.result.service));
    }
    (figures, spectra)
}

/// `None` without any response.
fn of_step(case: &Case, step: &str, phases: &[Step<'_>]) -> Option<Figures> {
    let each = |of: &dyn Fn(&Measurement, &PhaseOf<'_>) -> Option<f64>| {
        measured(phases.iter().filter_map(|(measurement, phase)| of(measurement, phase)))
    };
    let every = |of: &dyn Fn(&PhaseOf<'_>) -> f64| each(&|_, phase| Some(of(phase)));
    let per_request = |counter| {
        each(&|measurement, phase| per_response(measurement, phase, phase.end_ns, counter))
    };
    let planned = every(&|phase| offered(phase.result.outcome.phase.rate))?.median;
    Some(Figures {
        case: case.id,
        step: step.to_owned(),
        attempts: phases.iter().map(|(measurement, _)| measurement.attempt.number).collect(),
        disturbed: 0,
        failed: 0,
        planned_per_s: (planned > 0.0).then_some(planned),
        achieved_per_s: every(&|phase| phase.result.rate_achieved_per_s)?,
        errors_part: every(&errors_part)?,
        response_ns: response(phases),
        service_p99_ns: every(&|phase| phase.result.service.percentile_ns(99.0) as f64)?,
        service_succeeded_p99_ns: every(&|phase| {
            let failed = phase.result.outcome.total.service_failed();
            phase.result.service.without(&failed).percentile_ns(99.0) as f64
        })?,
        service_failed_p99_ns: each(&|_, phase| {
            let failed = phase.result.outcome.total.service_failed();
            (!failed.is_empty()).then(|| failed.percentile_ns(99.0) as f64)
        }),
        send_lag_p99_ns: every(&|phase| {
            phase.result.outcome.total.send_lag.percentile_ns(99.0) as f64
        })?,
        cpu_per_request_ns: each(&cpu_per_request_ns),
        cpu_with_later_work_ns: each(&cpu_with_later_work_ns),
        generator_cpu_per_request_ns: each(&|measurement, phase| {
            generator_cpu_ns(case, measurement, phase)
        }),
        rss_max_bytes: each(&|measurement, phase| {
            let rss = |sample: &WatchSample| sample.server_rss_bytes;
            Some(greatest(&measurement.watch, phase.start_ns, phase.end_ns, rss)? as f64)
        }),
        disk_written_per_request_bytes: each(&written_per_request_bytes),
        write_amplification: each(&write_amplification),
        switches_per_request: per_request(switches),
        goodput_per_s: every(&|phase| phase.result.outcome.rate_good())?,
        ops: ops(phases),
    })
}

/// Part of the requests of a phase that failed.
pub(super) fn errors_part(phase: &PhaseOf<'_>) -> f64 {
    let total = &phase.result.outcome.total;
    total.errors.total() as f64 / total.planned.max(1) as f64
}

/// A counter of the kernel's account from the begin of a phase to `end_ns`, per successful response
/// within the phase.
fn per_response(
    measurement: &Measurement,
    phase: &PhaseOf<'_>,
    end_ns: u64,
    counter: fn(&WatchSample) -> Option<u64>,
) -> Option<f64> {
    let count = measurement.responses.within(phase.start_ns, phase.end_ns)?;
    Some(spent(&measurement.watch, phase.start_ns, end_ns, counter)? / count)
}

/// CPU time of the subject per response of one phase.
pub(super) fn cpu_per_request_ns(measurement: &Measurement, phase: &PhaseOf<'_>) -> Option<f64> {
    per_response(measurement, phase, phase.end_ns, |sample| sample.server_cpu_ns)
}

/// Bytes that the subject wrote to the disk per response of one phase.
pub(super) fn written_per_request_bytes(
    measurement: &Measurement,
    phase: &PhaseOf<'_>,
) -> Option<f64> {
    per_response(measurement, phase, phase.end_ns, |sample| sample.server_written_bytes)
}

/// The same with what the subject did after the last phase, as far as it was watched.
fn cpu_with_later_work_ns(measurement: &Measurement, phase: &PhaseOf<'_>) -> Option<f64> {
    let end_ns = measurement.watch.samples.last()?.at_ns;
    let is_watched = end_ns >= phase.end_ns + LATER_NS_MIN;
    if !is_watched || measurement.next_start_ns(phase).is_some() {
        return None;
    }
    per_response(measurement, phase, end_ns, |sample| sample.server_cpu_ns)
}

/// CPU time of the generator per response of its own: of its threads, or of an external program,
/// whose account the kernel adds when it has ended.
fn generator_cpu_ns(case: &Case, measurement: &Measurement, phase: &PhaseOf<'_>) -> Option<f64> {
    let total = &phase.result.outcome.total;
    let cpu_ns = match case.kind {
        PhaseKind::Command => {
            let end_ns = measurement.watch.samples.last()?.at_ns;
            let cpu = |sample: &WatchSample| Some(sample.generator_cpu_ns);
            spent(&measurement.watch, phase.start_ns, end_ns, cpu)?
        }
        _ => total.cpu_ns as f64,
    };
    (total.completed > 0 && cpu_ns > 0.0).then(|| cpu_ns / total.completed as f64)
}

/// Statistics by name; those that are the generator's in every repeat are left out.
fn response(phases: &[Step<'_>]) -> Vec<(String, Measured)> {
    let named = |name: &str, of: &dyn Fn(&PhaseOf<'_>) -> Option<f64>| {
        Some((name.to_owned(), measured(phases.iter().filter_map(|(_, phase)| of(phase)))?))
    };
    let is_shown = |percent| is_mostly_subjects(phases.iter().map(|(_, phase)| phase), percent);
    let percentiles = PERCENTILES
        .iter()
        .filter(|(_, percent)| is_shown(*percent))
        .filter_map(|&(name, percent)| named(name, &|phase| phase.response_ns(percent)));
    let of_all = |phase: &PhaseOf<'_>, of: fn(&Histogram) -> f64| {
        let response = &phase.result.response_with_unanswered;
        (!response.is_empty()).then(|| of(response))
    };
    named("mean", &|phase| of_all(phase, Histogram::mean_ns))
        .into_iter()
        .chain(percentiles)
        // The greatest value is the generator's if the highest percentile is.
        .chain(named("max", &|phase| {
            is_shown(100.0).then(|| of_all(phase, |all| all.max_ns() as f64)).flatten()
        }))
        .collect()
}

/// Bytes written by the log, flushes and compactions by bytes of keys and values, from the begin of
/// a phase to that of the next, or to the last sample; `None` if nothing was put.
fn write_amplification(measurement: &Measurement, phase: &PhaseOf<'_>) -> Option<f64> {
    let stats = &measurement.stats;
    let end_ns = measurement.next_start_ns(phase).unwrap_or(u64::MAX);
    let last_until = |at_ns: u64| stats.iter().rfind(|sample| sample.at_ns <= at_ns);
    let first = last_until(phase.start_ns).or(stats.first())?;
    let last = last_until(end_ns)?;
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
