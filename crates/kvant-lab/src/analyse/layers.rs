//! The cost of a successful response by activity and stage, from a recording of the subject.
//!
//! Invariant: samples and responses are those of the same window, the measured time of a step as
//! far as it was recorded. Warm-ups and the time between steps are in neither.

use super::account::spent;
use super::directory::{Measurement, PhaseOf};
use crate::model::{LayerRow, Layers};
use crate::record::{Case, WatchSample};
use kvant_base::tag::{Activity, Stage};
use kvant_base::wait::WaitKind;
use kvant_profiler::recording::{Kind, Recording, Sample};

/// Sums of one activity and stage.
#[derive(Default)]
struct Sums {
    cpu_ns: f64,
    allocated_bytes: f64,
    waits_ns: [f64; WaitKind::ALL.len()],
}

/// The costs of each step of an attempt with a response during `recording`.
pub(super) fn layers<'a>(
    case: &'a Case,
    measurement: &'a Measurement,
    recording: &'a Recording,
) -> impl Iterator<Item = Layers> + 'a {
    measurement.steps().filter_map(move |(step, phase)| {
        let rows = rows(measurement, &phase, recording)?;
        Some(Layers { case: case.id, step, attempt: measurement.attempt.number, rows })
    })
}

fn rows(
    measurement: &Measurement,
    phase: &PhaseOf<'_>,
    recording: &Recording,
) -> Option<Vec<LayerRow>> {
    let facts = &recording.facts;
    let begin_ns = measurement.attempt.monotonic_ns(facts.started_wall_ns).max(0) as u64;
    let from_ns = phase.start_ns.max(begin_ns);
    let to_ns = phase.end_ns.min(begin_ns + facts.duration_ns);
    let count = measurement.responses.within(from_ns, to_ns)?;
    let within = from_ns - begin_ns..to_ns - begin_ns;
    let mut sums: Vec<((Activity, Stage), Sums)> = Vec::new();
    for sample in &recording.samples {
        let weight = sample.weight as f64 * part(sample, &within);
        if weight == 0.0 {
            continue;
        }
        let key = (sample.tag.activity, sample.tag.stage);
        let at = sums.iter().position(|(known, _)| *known == key).unwrap_or_else(|| {
            sums.push((key, Sums::default()));
            sums.len() - 1
        });
        let sums = &mut sums[at].1;
        match sample.kind {
            Kind::Cpu => sums.cpu_ns += weight,
            Kind::Alloc => sums.allocated_bytes += weight,
            // An idle thread waits for work, not for a resource; a holder's time is its waiters'.
            Kind::Wait(WaitKind::Idle) | Kind::Holder => {}
            Kind::Wait(kind) => sums.waits_ns[kind as usize] += weight,
        }
    }
    let sampled_ns: f64 = sums.iter().map(|(_, sums)| sums.cpu_ns).sum();
    let mut rows: Vec<LayerRow> = sums
        .into_iter()
        .map(|((activity, stage), sums)| LayerRow {
            activity: activity.name().to_owned(),
            stage: stage.name().to_owned(),
            cpu_ns: sums.cpu_ns / count,
            allocated_bytes: sums.allocated_bytes / count,
            waits_ns: WaitKind::ALL
                .into_iter()
                .filter(|kind| sums.waits_ns[*kind as usize] > 0.0)
                .map(|kind| (kind.name().to_owned(), sums.waits_ns[kind as usize] / count))
                .collect(),
        })
        .collect();
    // By the kernel's account of the window; of a server elsewhere, by the recording's own.
    let cpu = |sample: &WatchSample| sample.server_cpu_ns;
    let window_part = (to_ns - from_ns) as f64 / facts.duration_ns.max(1) as f64;
    let used_ns = spent(&measurement.watch, from_ns, to_ns, cpu)
        .unwrap_or(facts.process_cpu_ns as f64 * window_part);
    if facts.cpu.is_some() && used_ns > sampled_ns {
        rows.push(LayerRow {
            activity: "[not sampled]".to_owned(),
            cpu_ns: (used_ns - sampled_ns) / count,
            ..LayerRow::default()
        });
    }
    rows.sort_by(|a, b| b.cpu_ns.total_cmp(&a.cpu_ns));
    Some(rows)
}

/// The part of a sample's interval that lies within a window of the recording.
fn part(sample: &Sample, within: &std::ops::Range<u64>) -> f64 {
    if sample.duration_ns == 0 {
        return if within.contains(&sample.time_ns) { 1.0 } else { 0.0 };
    }
    let end_ns = within.end.min(sample.time_ns + sample.duration_ns);
    end_ns.saturating_sub(within.start.max(sample.time_ns)) as f64 / sample.duration_ns as f64
}
