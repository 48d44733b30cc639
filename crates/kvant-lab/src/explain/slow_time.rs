//! When requests were slow, and how many were answered meanwhile: whether the load had changed.
//!
//! It is no share of an excess: more requests are a reason to look at their sender, not evidence
//! that a slow one waited for them.

use super::evidence::{Evidence, Window};
use super::level::{self, percentile_ns};
use super::model::{Rate, Row, SlowTime};
use std::collections::BTreeSet;
use std::ops::Range;

/// A window is slow if its median is more than so many times that of a calm one. Medians alone: a
/// window may have few requests, whose p99 is that of one.
const SLOW_FACTOR: f64 = 3.0;
/// Other windows between two slow ones of a stretch take at most so long.
const GAP_NS: u64 = 500_000_000;
/// Shorter stretches are the matter of events and of single requests.
const LENGTH_NS_MIN: u64 = 1_000_000_000;

/// Windows in which an operation was slow, one after the other.
struct Stretch {
    windows: Range<usize>,
    /// Within or at the start of the first window.
    start_ns: u64,
    end_ns: u64,
}

impl Stretch {
    fn length_ns(&self) -> u64 {
        self.end_ns - self.start_ns
    }
}

/// The longest stretch in which the operation of the row with the greatest excess was slow.
pub(super) fn slow_time(evidence: &Evidence, rows: &[Row]) -> Option<SlowTime> {
    let worst = rows.iter().max_by_key(|row| row.excess_ns).filter(|row| row.excess_ns > 0)?;
    let operation = &worst.operation;
    let is_slow = slow_windows(evidence, operation);
    let windows = &evidence.windows;
    let mut stretches: Vec<Stretch> = slow_ranges(windows, &is_slow)
        .into_iter()
        .map(|slow| with_standstill(windows, slow, operation))
        .collect();
    stretches.retain(|of| {
        let calm = of.windows.clone().filter(|at| {
            let is_answered = responses(&windows[*at], operation) > 0;
            is_answered && !is_slow[*at]
        });
        let calm_ns: u64 = calm.map(|at| windows[at].length_ns).sum();
        of.length_ns() >= LENGTH_NS_MIN && 2 * calm_ns <= of.length_ns()
    });
    let longest = stretches.iter().max_by_key(|of| of.length_ns())?;
    let is_in_any = |at: usize| stretches.iter().any(|of| of.windows.contains(&at));
    let otherwise: Vec<&Window> =
        (0..windows.len()).filter(|at| !is_in_any(*at)).map(|at| &windows[at]).collect();
    let meanwhile = &windows[longest.windows.clone()];
    let operations: BTreeSet<&String> =
        windows.iter().flat_map(|window| window.operations.keys()).collect();
    // Where all windows are in stretches there is no other time to compare with.
    let compared = operations.into_iter().filter(|_| !otherwise.is_empty());
    let rates = compared.map(|operation| Rate {
        operation: operation.clone(),
        calm: per_second(otherwise.iter().copied(), operation),
        slow: per_second(meanwhile.iter(), operation),
    });
    Some(SlowTime {
        operation: operation.clone(),
        start_ns: longest.start_ns,
        end_ns: longest.end_ns,
        stretch_count: stretches.len(),
        rates: rates.collect(),
    })
}

fn slow_windows(evidence: &Evidence, operation: &str) -> Vec<bool> {
    let windows = level::windows_of(evidence, operation);
    let medians: Vec<Option<u64>> =
        windows.iter().map(|one| one.map(|one| percentile_ns(&one.values, 50.0))).collect();
    let mut known: Vec<u64> = medians.iter().copied().flatten().collect();
    known.sort_unstable();
    let bound_ns = level::reference_ns(&known) as f64 * SLOW_FACTOR;
    medians.into_iter().map(|median| median.is_some_and(|ns| ns as f64 > bound_ns)).collect()
}

/// A stretch with the time before it in which nothing was answered. A server that stands still
/// sends nothing: the requests that it then answers tell since when.
fn with_standstill(windows: &[Window], slow: Range<usize>, operation: &str) -> Stretch {
    let first = &windows[slow.start];
    let longest_ns = first.operations.get(operation).map_or(0, |of| of.max_ns());
    let waited_from_ns = first.start_ns.saturating_sub(longest_ns);
    let is_silent =
        |window: &&Window| window.end_ns() > waited_from_ns && responses(window, operation) == 0;
    let silent_count = windows[..slow.start].iter().rev().take_while(is_silent).count();
    let windows_of = slow.start - silent_count..slow.end;
    let start_ns = match silent_count {
        0 => first.start_ns,
        _ => waited_from_ns.max(windows[windows_of.start].start_ns),
    };
    Stretch { start_ns, end_ns: windows[slow.end - 1].end_ns(), windows: windows_of }
}

fn responses(window: &Window, operation: &str) -> u64 {
    window.operations.get(operation).map_or(0, |of| of.count)
}

/// The slow windows, with the others between two that are close.
fn slow_ranges(windows: &[Window], is_slow: &[bool]) -> Vec<Range<usize>> {
    let mut stretches: Vec<Range<usize>> = Vec::new();
    for at in (0..windows.len()).filter(|at| is_slow[*at]) {
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
        count += responses(window, operation);
        length_ns += window.length_ns;
    }
    count as f64 * 1e9 / length_ns.max(1) as f64
}
