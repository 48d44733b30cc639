//! Candidates for a compaction of one tree, and the plans made of them.

use super::plan::{CompactionPlan, PlanKind, Reason};
use super::shape::{BOTTOM, TreeShape};
use super::summary::{
    CompactionOptions, TableSummary, VersionSummary, any_busy, bytes_of, entry_count_of,
};
use std::cmp::Ordering;

/// Most entries that a merge into the last level may write for each one that it frees. With the
/// log, the flush of the tombstone and its way through the levels, deletes write about three bytes
/// for each byte that is deleted.
const WRITTEN_PER_FREED_MAX: u64 = 2;
/// Most bytes of a compaction that adds neighbours to its input, in tables of full size.
const EXPANDED_TABLES_MAX: u64 = 16;

/// Tables of one level, and the tables that they overlap in the level that they can move to.
#[derive(Clone)]
pub(super) struct Candidate<'s, 'a> {
    pub(super) level: usize,
    pub(super) upper: Vec<TableSummary<'a>>,
    pub(super) output_level: usize,
    pub(super) lower: &'s [TableSummary<'a>],
}

impl Candidate<'_, '_> {
    /// Compares the bytes rewritten per byte that moves down.
    pub(super) fn cost_order(&self, other: &Self) -> Ordering {
        let [upper, lower, other_upper, other_lower] =
            [&self.upper[..], self.lower, &other.upper[..], other.lower]
                .map(|tables| u128::from(bytes_of(tables)));
        (lower * other_upper).cmp(&(other_lower * upper))
    }

    /// Whether a merge that moves `useless_count` tombstones or expired entries writes few enough
    /// others. In the last level it removes them, and as many that they shadow; in another one, few
    /// of those.
    pub(super) fn is_worthwhile(&self, useless_count: u64, last_level: usize) -> bool {
        let entry_count = entry_count_of(&self.upper) + entry_count_of(self.lower);
        let other_count = entry_count.saturating_sub(useless_count);
        if self.output_level >= last_level {
            let written_count = other_count.saturating_sub(useless_count);
            written_count <= useless_count.saturating_mul(WRITTEN_PER_FREED_MAX)
        } else {
            let lower_tombstones: u64 =
                self.lower.iter().map(|table| table.meta.tombstone_count).sum();
            // Smaller than values, but rewritten for nothing.
            other_count.saturating_sub(lower_tombstones / 2) <= useless_count
        }
    }

    /// Whether the last table that this one overlaps is the first that `next` does.
    fn shares_lower_with(&self, next: &Self) -> bool {
        let both = self.lower.last().zip(next.lower.first());
        both.is_some_and(|(last, first)| last.meta.num == first.meta.num)
    }

    pub(super) fn plan(self, planner: &Planner<'_, '_>, reason: Reason) -> CompactionPlan {
        // Several tables of level 0 may overlap each other.
        let kind = if self.lower.is_empty() && (self.level > 0 || self.upper.len() == 1) {
            PlanKind::Move
        } else {
            PlanKind::Merge
        };
        let inputs = vec![(self.level, self.upper), (self.output_level, self.lower.to_vec())];
        planner.plan(reason, kind, inputs, self.output_level)
    }
}

/// Finds candidates in one tree and makes plans.
pub(super) struct Planner<'s, 'a> {
    pub(super) summary: &'s VersionSummary<'a>,
    pub(super) options: &'s CompactionOptions,
    pub(super) shape: TreeShape,
}

impl<'s, 'a> Planner<'s, 'a> {
    pub(super) fn new(
        summary: &'s VersionSummary<'a>,
        options: &'s CompactionOptions,
    ) -> Planner<'s, 'a> {
        Planner { summary, options, shape: TreeShape::new(summary, options) }
    }

    pub(super) fn idle(&self, level: usize) -> impl Iterator<Item = &'s TableSummary<'a>> {
        self.summary.levels[level].iter().filter(|table| !table.being_compacted)
    }

    /// Level 0 in groups of tables that overlap each other or the same table of the output level,
    /// directly or through others, in key order. Empty while a table of level 0 is being compacted.
    pub(super) fn level_0_candidates(&self) -> Vec<Candidate<'s, 'a>> {
        let tables = &self.summary.levels[0];
        if any_busy(tables) {
            return Vec::new();
        }
        let mut by_key = tables.clone();
        by_key.sort_by(|a, b| a.first().cmp(b.first()));
        let mut groups: Vec<(Vec<TableSummary<'a>>, &'a [u8])> = Vec::new();
        for table in by_key {
            match groups.last_mut() {
                Some((group, last)) if table.first() <= *last => {
                    group.push(table);
                    *last = table.last().max(last);
                }
                _ => groups.push((vec![table], table.last())),
            }
        }
        let mut candidates: Vec<Candidate<'s, 'a>> = Vec::new();
        for (upper, _) in groups {
            let next = self.of_level_0(upper);
            match candidates.last_mut() {
                Some(candidate) if candidate.shares_lower_with(&next) => {
                    let both = [&candidate.upper[..], &next.upper].concat();
                    *candidate = self.of_level_0(both);
                }
                _ => candidates.push(next),
            }
        }
        candidates.retain(|candidate| !any_busy(candidate.lower));
        candidates
    }

    /// `upper`, tables of level 0, and what they overlap.
    pub(super) fn of_level_0(&self, upper: Vec<TableSummary<'a>>) -> Candidate<'s, 'a> {
        let output_level = self.shape.l0_output_level;
        let (first, last) = range_of(&upper);
        let lower = self.summary.overlapping(output_level, first, last);
        Candidate { level: 0, upper, output_level, lower }
    }

    /// The table of a deeper level that is cheapest to merge into the next level, with the
    /// neighbours that add no tables of that level.
    pub(super) fn cheapest_of(&self, level: usize) -> Option<Candidate<'s, 'a>> {
        let candidates = self.idle(level).filter_map(|table| self.candidate(level, table));
        let mut cheapest = candidates.min_by(Candidate::cost_order)?;
        self.expand(&mut cheapest);
        Some(cheapest)
    }

    /// One table and what it overlaps in the next level, unless that is being compacted or there is
    /// no next level.
    pub(super) fn candidate(
        &self,
        level: usize,
        table: &TableSummary<'a>,
    ) -> Option<Candidate<'s, 'a>> {
        let output_level = level + 1;
        if output_level > BOTTOM {
            return None;
        }
        let lower = self.summary.overlapping(output_level, table.first(), table.last());
        (!any_busy(lower)).then(|| Candidate { level, upper: vec![*table], output_level, lower })
    }

    /// Adds the neighbours of the upper table that overlap only the lower tables.
    pub(super) fn expand(&self, candidate: &mut Candidate<'s, 'a>) {
        let (Some(lowest), Some(highest)) = (candidate.lower.first(), candidate.lower.last())
        else {
            return;
        };
        let tables = &self.summary.levels[candidate.level];
        let within = |table: &&TableSummary<'a>| {
            let lower =
                self.summary.overlapping(candidate.output_level, table.first(), table.last());
            let inside = |other: &TableSummary<'_>| {
                lowest.first() <= other.first() && other.last() <= highest.last()
            };
            !table.being_compacted && !lower.is_empty() && lower.iter().all(inside)
        };
        let mut bytes = bytes_of(&candidate.upper) + bytes_of(candidate.lower);
        let bytes_max = EXPANDED_TABLES_MAX * self.options.table_bytes;
        let mut fits = |table: &TableSummary<'a>| {
            bytes += table.meta.file_bytes;
            bytes <= bytes_max
        };
        let start = tables.partition_point(|table| table.first() < candidate.upper[0].first());
        let mut from = start;
        while from > 0 && Some(&tables[from - 1]).filter(within).is_some_and(&mut fits) {
            from -= 1;
        }
        let mut to = start + 1;
        while tables.get(to).filter(within).is_some_and(&mut fits) {
            to += 1;
        }
        candidate.upper = tables[from..to].to_vec();
    }

    pub(super) fn plan(
        &self,
        reason: Reason,
        kind: PlanKind,
        inputs: Vec<(usize, Vec<TableSummary<'a>>)>,
        output_level: usize,
    ) -> CompactionPlan {
        let all: Vec<_> = inputs.iter().flat_map(|(_, tables)| tables).copied().collect();
        let (first, last) = range_of(&all);
        let grandparents = match kind {
            PlanKind::Merge if output_level < BOTTOM => {
                self.summary.overlapping(output_level + 1, first, last)
            }
            _ => &[],
        };
        let bottommost = self.summary.nothing_beneath(output_level, first, last);
        let (room_bytes, room_hoped_bytes) = match kind {
            PlanKind::Merge => step_bytes(&inputs, bottommost),
            PlanKind::Move | PlanKind::Drop => (0, 0),
        };
        let nums =
            |tables: &[TableSummary<'_>]| tables.iter().map(|table| table.meta.num).collect();
        CompactionPlan {
            reason,
            kind,
            output_level,
            room_bytes,
            room_hoped_bytes,
            bottommost,
            grandparents: nums(grandparents),
            input_bytes: bytes_of(&all),
            inputs: inputs
                .iter()
                .filter(|(_, tables)| !tables.is_empty())
                .map(|(level, tables)| (*level, nums(tables)))
                .collect(),
        }
    }
}

/// Smallest and largest user key.
fn range_of<'a>(tables: &[TableSummary<'a>]) -> (&'a [u8], &'a [u8]) {
    let first = tables.iter().map(TableSummary::first).min().unwrap_or_default();
    let last = tables.iter().map(TableSummary::last).max().unwrap_or_default();
    (first, last)
}

/// [`CompactionPlan::room_bytes`] and [`CompactionPlan::room_hoped_bytes`] of a merge of `inputs`,
/// of one or two levels. If it `drops_tombstones`, those of the upper level need no room.
fn step_bytes(inputs: &[(usize, Vec<TableSummary<'_>>)], drops_tombstones: bool) -> (u64, u64) {
    let Some((_, upper)) = inputs.first() else {
        return (0, 0);
    };
    let lower = inputs.get(1).map_or(&[][..], |(_, lower)| lower);
    let has_values =
        |table: &&TableSummary<'_>| table.meta.tombstone_count < table.meta.entry_count;
    let written = upper.iter().filter(|table| !drops_tombstones || has_values(table));
    let upper_bytes: u64 = written.map(|table| table.meta.file_bytes).sum();
    let lower_bytes = lower.iter().map(|table| table.meta.file_bytes).max().unwrap_or(0);
    let edit_bytes: u64 = lower.iter().map(|table| table.meta.edit_bytes()).sum();
    let tombstone_count: u64 = upper.iter().map(|table| table.meta.tombstone_count).sum();
    let lower_count = entry_count_of(lower);
    let left_count = lower_count.saturating_sub(tombstone_count);
    let left_share = left_count as f64 / lower_count.max(1) as f64;
    let room_bytes = with_overhead(upper_bytes + lower_bytes) + edit_bytes;
    // Only for tombstones: a merge of values that runs out of room leaves them on both levels.
    if upper.iter().any(|table| has_values(&table)) {
        return (room_bytes, room_bytes);
    }
    let left_bytes = (with_overhead(lower_bytes) + edit_bytes) as f64 * left_share;
    (room_bytes, with_overhead(upper_bytes) + left_bytes as u64)
}

/// Space for tables of `bytes` when they are rewritten into more and smaller files.
pub(crate) fn with_overhead(bytes: u64) -> u64 {
    bytes + bytes / 16
}
