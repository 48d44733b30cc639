//! Percentiles of merged windows, and which windows count as undisturbed.
//!
//! A window is calm if its median and its p99 are near those of the quieter windows. The quietest
//! quarter is the reference, so that a disturbance may last for most of the time. Calm windows are
//! merged: percentiles are never averaged.

use super::evidence::{Evidence, OperationWindow};
use std::collections::BTreeMap;

/// Rank, among the windows, of the reference for medians and p99.
const REFERENCE_RANK: f64 = 0.25;
/// Factor of the reference up to which a median is calm ...
const MEDIAN_FACTOR: f64 = 1.5;
/// ... and a p99, the bound of a spike.
const TAIL_FACTOR: f64 = 3.0;
/// Part of the windows that must be calm; otherwise the p99 is not considered.
const CALM_PART_MIN: f64 = 0.1;

/// Latencies of merged windows: nanoseconds and responses, ascending.
pub(super) struct Merged(Vec<(u64, u64)>);

impl Merged {
    pub(super) fn of<'a>(windows: impl IntoIterator<Item = &'a OperationWindow>) -> Merged {
        let mut values: BTreeMap<u64, u64> = BTreeMap::new();
        for (value, count) in windows.into_iter().flat_map(|window| &window.values) {
            *values.entry(*value).or_default() += count;
        }
        Merged(values.into_iter().collect())
    }

    pub(super) fn count(&self) -> u64 {
        self.0.iter().map(|(_, count)| count).sum()
    }

    /// The least value that at least `percent` of all are at or below; 0 without any.
    pub(super) fn percentile_ns(&self, percent: f64) -> u64 {
        percentile_ns(&self.0, percent)
    }

    /// Values at or above.
    pub(super) fn count_from(&self, bound_ns: u64) -> u64 {
        self.0.iter().filter(|(value, _)| *value >= bound_ns).map(|(_, count)| count).sum()
    }

    pub(super) fn max_ns(&self) -> u64 {
        self.0.last().map_or(0, |(value, _)| *value)
    }
}

/// A percentile of ascending values with their counts.
pub(super) fn percentile_ns(values: &[(u64, u64)], percent: f64) -> u64 {
    let all: u64 = values.iter().map(|(_, count)| count).sum();
    let wanted = ((percent / 100.0 * all as f64).ceil() as u64).clamp(1, all.max(1));
    let mut seen = 0;
    let found = values.iter().find(|(_, count)| {
        seen += count;
        seen >= wanted
    });
    found.map_or(0, |(value, _)| *value)
}

/// The windows of an operation, by index: `None` where it had no request.
pub(super) fn windows_of<'a>(
    evidence: &'a Evidence,
    operation: &str,
) -> Vec<Option<&'a OperationWindow>> {
    let of = |window: &'a super::evidence::Window| {
        window.operations.get(operation).filter(|of| of.count > 0)
    };
    evidence.windows.iter().map(of).collect()
}

/// What the quietest windows have, of ascending values of all windows; 0 without any.
pub(super) fn reference_ns(ascending: &[u64]) -> u64 {
    let rank = (ascending.len() as f64 * REFERENCE_RANK) as usize;
    ascending.get(rank).copied().unwrap_or(0)
}

/// Which windows are calm.
pub(super) fn calm(windows: &[Option<&OperationWindow>]) -> Vec<bool> {
    let at = |percent: f64| -> Vec<Option<u64>> {
        windows.iter().map(|one| one.map(|one| percentile_ns(&one.values, percent))).collect()
    };
    let (medians, tails) = (at(50.0), at(99.0));
    let within = |values: &[Option<u64>], factor: f64| -> Vec<bool> {
        let mut known: Vec<u64> = values.iter().copied().flatten().collect();
        known.sort_unstable();
        let bound = reference_ns(&known) as f64 * factor;
        values.iter().map(|value| value.is_some_and(|value| value as f64 <= bound)).collect()
    };
    let by_median = within(&medians, MEDIAN_FACTOR);
    let by_tail = within(&tails, TAIL_FACTOR);
    let both: Vec<bool> = by_median.iter().zip(&by_tail).map(|(a, b)| *a && *b).collect();
    let count = |calm: &[bool]| calm.iter().filter(|calm| **calm).count() as f64;
    let used = medians.iter().flatten().count() as f64;
    if count(&both) >= used * CALM_PART_MIN { both } else { by_median }
}
