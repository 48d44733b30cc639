//! Clocks of a subject on another machine, matched with ours by the statistics that are requested
//! all the time: each tells its time between request and response.
//!
//! The difference of the clocks lies within the bounds that each exchange sets, and so within what
//! all of them have in common (Cristian, "Probabilistic clock synchronization", 1989). Clocks that
//! drift apart meanwhile leave nothing in common: the bounds are then as far apart as they drifted.

use crate::record::{ClockMatch, EventFacts, StatsSample};

const NS_PER_MS: i64 = 1_000_000;

/// How the clocks relate; `None` if the subject did not tell its time.
pub(super) fn matched(samples: &[StatsSample]) -> Option<ClockMatch> {
    let (mut low_ns, mut high_ns, mut shortest_ns) = (i64::MIN, i64::MAX, i64::MAX);
    let mut wall_origin_ns = None;
    for sample in samples {
        let member = |name: &str| sample.stats["server"][name].as_i64();
        let (Some(its_ns), Some(wall_ms)) = (member("monotonic_ns"), member("wall_ms")) else {
            continue;
        };
        let (asked_ns, at_ns) = (sample.asked_ns.cast_signed(), sample.at_ns.cast_signed());
        low_ns = low_ns.max(its_ns - at_ns);
        high_ns = high_ns.min(its_ns - asked_ns);
        shortest_ns = shortest_ns.min(at_ns - asked_ns);
        wall_origin_ns.get_or_insert(wall_ms * NS_PER_MS - its_ns);
    }
    let overlap_ns = high_ns.checked_sub(low_ns)?;
    let drift_ns = if overlap_ns < 0 { shortest_ns } else { 0 };
    Some(ClockMatch {
        ahead_ns: low_ns + overlap_ns / 2,
        error_ns: (overlap_ns.unsigned_abs() + drift_ns.unsigned_abs()).div_ceil(2),
        wall_origin_ns: wall_origin_ns?,
    })
}

/// `events` by our clock.
pub(super) fn ours(mut events: Vec<EventFacts>, clock: &ClockMatch) -> Vec<EventFacts> {
    for event in &mut events {
        event.start_ns = clock.ours_ns(event.start_ns);
        event.end_ns = event.end_ns.map(|end_ns| clock.ours_ns(end_ns));
    }
    events
}

/// What the report says of it.
pub(super) fn note(clock: Option<&ClockMatch>) -> String {
    match clock {
        Some(clock) => format!(
            "The subject is on another machine: times of its events and recordings are exact to \
             {:.3} ms",
            (clock.error_ns as f64 / 1e6).max(0.001)
        ),
        None => "The subject is on another machine and does not tell its time: there are no events"
            .to_owned(),
    }
}

#[cfg(test)]
mod tests;
