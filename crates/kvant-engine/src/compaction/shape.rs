//! The target size of each level, and how far the tree is from it.

use super::{CompactionOptions, VersionSummary};
use kvant_base::limits;

pub(super) const BOTTOM: usize = limits::LEVELS - 1;

/// Targets and scores of the levels of a tree.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TreeShape {
    /// The output level of level 0: the base level, or the first level with tables if that is
    /// higher.
    pub(crate) l0_output_level: usize,
    /// Target size of each level; 0 for level 0 and for levels that should be empty.
    pub(crate) target_bytes: [u64; limits::LEVELS],
    /// Urgency of a compaction out of each level, due at 1.0. Excludes tables being compacted, and
    /// tombstones: they would push values down at the price of values, before they are enough to
    /// remove many.
    pub(crate) scores: [f64; limits::LEVELS],
    /// Estimated bytes that compactions must read until no level is due.
    pub(crate) debt_bytes: u64,
}

impl TreeShape {
    pub(crate) fn new(summary: &VersionSummary<'_>, options: &CompactionOptions) -> TreeShape {
        let (base_level, target_bytes) = targets(summary, options);
        let first_in_use = (1..limits::LEVELS).find(|&level| !summary.levels[level].is_empty());
        let l0_output_level = base_level.min(first_in_use.unwrap_or(BOTTOM));
        let scores = [0.0; limits::LEVELS];
        let mut shape = TreeShape { l0_output_level, target_bytes, scores, debt_bytes: 0 };
        let l0_count = summary.levels[0].iter().filter(|table| !table.being_compacted).count();
        shape.scores[0] = l0_count as f64 / options.l0_compact_count as f64;
        for (level, target) in target_bytes.into_iter().enumerate().take(BOTTOM).skip(1) {
            let bytes = summary.idle_value_bytes(level) as f64;
            shape.scores[level] = match target {
                0 if bytes > 0.0 => 1.0 + bytes / options.base_bytes as f64,
                0 => 0.0,
                target => bytes / target as f64,
            };
        }
        shape.debt_bytes = shape.estimate_debt(summary, options);
        shape
    }

    fn estimate_debt(&self, summary: &VersionSummary<'_>, options: &CompactionOptions) -> u64 {
        let mut debt_bytes = 0.0;
        let mut incoming_bytes = 0.0;
        if summary.levels[0].len() >= options.l0_compact_count {
            incoming_bytes = summary.bytes(0) as f64;
            debt_bytes += incoming_bytes + summary.bytes(self.l0_output_level) as f64;
        }
        (debt_bytes + self.estimate_below(summary, 1.0, 1.0, incoming_bytes)) as u64
    }

    /// Estimated bytes that compactions below level 0 must read until no level exceeds its target
    /// by more than this factor, after `incoming_bytes` have come from level 0. The excess of each
    /// level, in whole pieces, is merged with its share of the next level, which may then have an
    /// excess of its own.
    pub(crate) fn estimate_below(
        &self,
        summary: &VersionSummary<'_>,
        factor: f64,
        piece_bytes: f64,
        mut incoming_bytes: f64,
    ) -> f64 {
        let mut read_bytes = 0.0;
        for level in self.l0_output_level..BOTTOM {
            let bytes = summary.value_bytes(level) as f64 + incoming_bytes;
            let excess_bytes = (bytes - factor * self.target_bytes[level] as f64).max(0.0);
            incoming_bytes = ((excess_bytes / piece_bytes).ceil() * piece_bytes).min(bytes);
            if incoming_bytes > 0.0 {
                read_bytes += incoming_bytes * (1.0 + summary.bytes(level + 1) as f64 / bytes);
            }
        }
        read_bytes
    }
}

/// The base level and the targets, computed from the last level upward.
fn targets(
    summary: &VersionSummary<'_>,
    options: &CompactionOptions,
) -> (usize, [u64; limits::LEVELS]) {
    let mut target_bytes = [0; limits::LEVELS];
    let largest = (1..limits::LEVELS).map(|level| summary.bytes(level)).max().unwrap_or(0);
    target_bytes[BOTTOM] = largest.max(options.base_bytes);
    let mut level = BOTTOM;
    while level > 1 && target_bytes[level] > options.base_bytes {
        target_bytes[level - 1] = (target_bytes[level] / options.level_ratio).max(1);
        level -= 1;
    }
    (level, target_bytes)
}

#[cfg(test)]
mod tests;
