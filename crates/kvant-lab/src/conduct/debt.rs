//! Whether a Kvant's compactions keep up with its writes.
//!
//! The debt rises with each flush and falls with each compaction, so that its value at one time
//! says little. Its least values are compared: that of the last third of a phase with that of the
//! first third. Compactions fall behind if it grew by more than a quarter of what was flushed
//! meanwhile, and by more than two rounds of level 0. Phases that are too short for several
//! compactions say nothing.

use super::measurement::Measurement;
use crate::record::{PhaseKind, StatsSample};

/// Growth of the debt that does not matter, as a part of the bytes that were flushed ...
const GROWTH_PART_MAX: f64 = 0.25;
/// ... and in flushes: level 0 is compacted after four.
const GROWTH_FLUSHES_MAX: f64 = 8.0;
/// Flushes that a phase needs ...
const FLUSHES_MIN: u64 = 8;
/// ... and its length, in nanoseconds: a third has several samples, and compactions of seconds.
const TIME_MIN_NS: u64 = 8_000_000_000;

/// A rate that was held, but not sustained. A search judges its own.
pub(super) fn note(
    kind: PhaseKind,
    measured: &Measurement,
    stats: Option<&[StatsSample]>,
) -> Option<String> {
    let [held] = &measured.phases[..] else { return None };
    let start_ns = measured.start_ns.filter(|_| kind == PhaseKind::Hold)?;
    let end_ns = start_ns + held.outcome.measured_ns;
    let growth = growth(stats?, start_ns, end_ns)?;
    Some(format!("the rate is not sustained: {growth}"))
}

/// How the debt grew between two monotonic times, in words, if compactions fell behind.
pub(super) fn growth(samples: &[StatsSample], start_ns: u64, end_ns: u64) -> Option<String> {
    let third_ns = end_ns.saturating_sub(start_ns) / 3;
    let of_phase: Vec<&StatsSample> =
        samples.iter().filter(|sample| (start_ns..=end_ns).contains(&sample.at_ns)).collect();
    let engine = |sample: &StatsSample, name: &str| {
        sample.stats.pointer(&format!("/engine/{name}"))?.as_u64()
    };
    let (first, last) = (of_phase.first()?, of_phase.last()?);
    let grown = |name| engine(last, name)?.checked_sub(engine(first, name)?);
    let flush_count = grown("flushes/count")?;
    if flush_count < FLUSHES_MIN || end_ns.saturating_sub(start_ns) < TIME_MIN_NS {
        return None;
    }
    let flushed_bytes = grown("flushes/written_bytes")? as f64;
    let allowed_part = GROWTH_PART_MAX.max(GROWTH_FLUSHES_MAX / flush_count as f64);
    let least = |from_ns: u64, to_ns: u64| {
        let within = of_phase.iter().filter(|sample| (from_ns..=to_ns).contains(&sample.at_ns));
        within.filter_map(|sample| engine(sample, "compactions/debt_bytes")).min()
    };
    let before_bytes = least(start_ns, start_ns + third_ns)?;
    let after_bytes = least(end_ns - third_ns, end_ns)?;
    let growth_bytes = after_bytes.saturating_sub(before_bytes) as f64;
    (growth_bytes > flushed_bytes * allowed_part).then(|| {
        format!(
            "the compaction debt grew by {:.0} MB while {:.0} MB were flushed",
            growth_bytes / 1e6,
            flushed_bytes / 1e6
        )
    })
}

#[cfg(test)]
mod tests;
