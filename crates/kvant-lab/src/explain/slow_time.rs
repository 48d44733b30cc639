//! When requests were slow, and how many came meanwhile: whether the load had changed.
//!
//! It is no share of an excess: more requests are a reason to look at their sender, not evidence
//! that a slow one waited for them.

use super::evidence::{Evidence, Window};
use super::level;
use super::model::{Rate, Row, SlowTime};
use std::collections::BTreeSet;
use std::ops::Range;

/// Calm windows between two slow ones of a stretch take at most so long.
const GAP_NS: u64 = 1_000_000_000;
/// Shorter stretches are the matter of events and of single requests.
const LENGTH_NS_MIN: u64 = 1_000_000_000;

/// The longest stretch in which the operation of the row with the greatest excess was not calm.
pub(super) fn slow_time(evidence: &Evidence, rows: &[Row]) -> Option<SlowTime> {
    let worst = rows.iter().max_by_key(|row| row.excess_ns).filter(|row| row.excess_ns > 0)?;
    let windows = level::windows_of(evidence, &worst.operation);
    let calm = level::calm(&windows);
    let slow = (0..windows.len()).filter(|at| windows[*at].is_some() && !calm[*at]);
    let stretches = stretches(&evidence.windows, slow);
    let length_ns = |of: &Range<usize>| -> u64 {
        evidence.windows[of.clone()].iter().map(|window| window.length_ns).sum()
    };
    let longest = stretches.iter().max_by_key(|of| length_ns(of))?.clone();
    if length_ns(&longest) < LENGTH_NS_MIN {
        return None;
    }
    let of_stretch = &evidence.windows[longest];
    let otherwise: Vec<&Window> =
        (0..windows.len()).filter(|at| calm[*at]).map(|at| &evidence.windows[at]).collect();
    let operations: BTreeSet<&String> =
        evidence.windows.iter().flat_map(|window| window.operations.keys()).collect();
    let rates = operations.into_iter().map(|operation| Rate {
        operation: operation.clone(),
        calm: per_second(otherwise.iter().copied(), operation),
        slow: per_second(of_stretch.iter(), operation),
    });
    Some(SlowTime {
        operation: worst.operation.clone(),
        start_ns: of_stretch.first()?.start_ns,
        end_ns: of_stretch.last()?.end_ns(),
        stretch_count: stretches.len(),
        rates: rates.collect(),
    })
}

/// The windows of `slow`, ascending, with those between two that are close.
fn stretches(windows: &[Window], slow: impl Iterator<Item = usize>) -> Vec<Range<usize>> {
    let mut stretches: Vec<Range<usize>> = Vec::new();
    for at in slow {
        match stretches.last_mut() {
            Some(last) if windows[at].start_ns <= windows[last.end - 1].end_ns() + GAP_NS => {
                last.end = at + 1;
            }
            _ => stretches.push(at..at + 1),
        }
    }
    stretches
}

/// Responses of an operation in a second of these windows.
fn per_second<'a>(windows: impl Iterator<Item = &'a Window>, operation: &str) -> f64 {
    let (mut count, mut length_ns) = (0, 0);
    for window in windows {
        count += window.operations.get(operation).map_or(0, |of| of.count);
        length_ns += window.length_ns;
    }
    count as f64 * 1e9 / length_ns.max(1) as f64
}
