//! The cost of a response by activity and stage, from a recording of the subject.

use super::directory::Measurement;
use super::hlog::Line;
use crate::model::{LayerRow, Layers};
use crate::record::Case;
use kvant_base::tag::{Activity, Stage};
use kvant_base::wait::WaitKind;
use kvant_profiler::recording::{Kind, Recording};

/// Sums of one activity and stage.
#[derive(Default)]
struct Sums {
    cpu_ns: u64,
    allocated_bytes: u64,
    waits_ns: [u64; WaitKind::ALL.len()],
}

/// Sums of `recording` by the responses within it; `None` if it has none. `log` is the interval log
/// of the attempt.
pub(super) fn layers(
    case: &Case,
    measurement: &Measurement,
    recording: &Recording,
    log: &[Line],
) -> Option<Layers> {
    let count = responses(measurement, recording, log);
    if count <= 0.0 {
        return None;
    }
    let mut sums: Vec<((Activity, Stage), Sums)> = Vec::new();
    for sample in &recording.samples {
        let key = (sample.tag.activity, sample.tag.stage);
        let at = sums.iter().position(|(known, _)| *known == key).unwrap_or_else(|| {
            sums.push((key, Sums::default()));
            sums.len() - 1
        });
        let sums = &mut sums[at].1;
        match sample.kind {
            Kind::Cpu => sums.cpu_ns += sample.weight,
            Kind::Alloc => sums.allocated_bytes += sample.weight,
            // An idle thread waits for work, not for a resource; a holder's time is its waiters'.
            Kind::Wait(WaitKind::Idle) | Kind::Holder => {}
            Kind::Wait(kind) => sums.waits_ns[kind as usize] += sample.weight,
        }
    }
    let mut rows: Vec<LayerRow> = sums
        .into_iter()
        .map(|((activity, stage), sums)| LayerRow {
            activity: activity.name().to_owned(),
            stage: stage.name().to_owned(),
            cpu_ns: sums.cpu_ns as f64 / count,
            allocated_bytes: sums.allocated_bytes as f64 / count,
            waits_ns: WaitKind::ALL
                .into_iter()
                .filter(|kind| sums.waits_ns[*kind as usize] > 0)
                .map(|kind| (kind.name().to_owned(), sums.waits_ns[kind as usize] as f64 / count))
                .collect(),
        })
        .collect();
    let not_sampled_ns = recording.not_sampled_ns();
    if not_sampled_ns > 0 {
        rows.push(LayerRow {
            activity: "[not sampled]".to_owned(),
            cpu_ns: not_sampled_ns as f64 / count,
            ..LayerRow::default()
        });
    }
    rows.sort_by(|a, b| b.cpu_ns.total_cmp(&a.cpu_ns));
    Some(Layers { case: case.id, attempt: measurement.attempt.number, rows })
}

/// Responses of the load during the recording; an interval that is partly within it counts in
/// part.
fn responses(measurement: &Measurement, recording: &Recording, log: &[Line]) -> f64 {
    let first_wall_ms =
        measurement.load.phases.first().map_or(0, |phase| phase.outcome.start_wall_ms);
    let log_wall_ns = first_wall_ms.saturating_mul(1_000_000);
    let start_ns = recording.facts.started_wall_ns.saturating_sub(log_wall_ns) as f64;
    let before_ns = log_wall_ns.saturating_sub(recording.facts.started_wall_ns) as f64;
    let start_ns = start_ns - before_ns;
    let end_ns = start_ns + recording.facts.duration_ns as f64;
    let within = |line: &Line| {
        let overlap = end_ns.min(line.end_ns() as f64) - start_ns.max(line.start_ns as f64);
        (overlap / line.length_ns.max(1) as f64).clamp(0.0, 1.0)
    };
    let responses = log.iter().filter(|line| line.tag.ends_with("/response"));
    responses.map(|line| line.histogram.count() as f64 * within(line)).sum()
}
