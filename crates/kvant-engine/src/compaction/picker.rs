//! The choice of the next compaction.
//!
//! In this order: whole tables of expired entries are dropped, which costs nothing; then the level
//! with the highest score, level 0 by its count and the others by their targets; then, when no
//! level is over its target, whatever brings the data above the last level under its share and half
//! a memtable; then tables full of tombstones; then tables full of expired entries.
//!
//! Within a level the table with the least overlap in the next level for its size goes first: the
//! least written for what moves.

use super::plan::{CompactionPlan, PlanKind, Reason};
use super::shape::{BOTTOM, TreeShape};
use super::summary::{TableSummary, any_busy, bytes_of, entry_count_of};
use super::{CompactionOptions, VersionSummary};
use kvant_base::limits;
use std::cmp::{Ordering, Reverse};

/// Most bytes that a compaction takes in more than it must, in tables of full size.
const EXPANDED_TABLES_MAX: u64 = 16;

/// The most useful compaction, if any is worth doing.
pub(crate) fn pick(
    summary: &VersionSummary<'_>,
    options: &CompactionOptions,
) -> Option<CompactionPlan> {
    let picker = Picker { summary, options, shape: &TreeShape::new(summary, options) };
    picker
        .drop_expired()
        .or_else(|| picker.overfull_level())
        .or_else(|| picker.space_amplification())
        .or_else(|| picker.tombstones())
        .or_else(|| picker.expiry())
}

/// The next step towards a tree that has all data on the last level, without tombstones or expired
/// entries that can go; `None` when there is none, or when running compactions stand in the way.
/// Steps with one `now_ms` come to an end.
pub(crate) fn pick_manual(
    summary: &VersionSummary<'_>,
    options: &CompactionOptions,
) -> Option<CompactionPlan> {
    let picker = Picker { summary, options, shape: &TreeShape::new(summary, options) };
    picker
        .drop_expired()
        .or_else(|| picker.out_of_level_0(Reason::Manual, |_| true))
        .or_else(|| {
            (1..BOTTOM)
                .find_map(|level| Some(picker.cheapest_of(level)?.plan(&picker, Reason::Manual)))
        })
        .or_else(|| {
            let cleanable = |table: &&TableSummary<'_>| {
                let expired =
                    table.meta.expiry.is_some_and(|expiry| expiry.min_ms <= summary.now_ms);
                expired || (table.meta.tombstone_count > 0 && picker.tombstones_can_go(table))
            };
            let table = picker.idle(BOTTOM).find(cleanable)?;
            Some(picker.rewrite(BOTTOM, table, Reason::Manual))
        })
}

struct Picker<'s, 'a> {
    summary: &'s VersionSummary<'a>,
    options: &'s CompactionOptions,
    shape: &'s TreeShape,
}

/// Tables of one level and what they overlap on the level that they can go to.
#[derive(Clone)]
struct Candidate<'s, 'a> {
    level: usize,
    upper: Vec<TableSummary<'a>>,
    output_level: usize,
    lower: &'s [TableSummary<'a>],
}

impl Candidate<'_, '_> {
    /// Order of bytes rewritten for each byte that moves down.
    fn cost_order(&self, other: &Self) -> Ordering {
        let [upper, lower, other_upper, other_lower] =
            [&self.upper[..], self.lower, &other.upper[..], other.lower]
                .map(|tables| u128::from(bytes_of(tables)));
        (lower * other_upper).cmp(&(other_lower * upper))
    }

    /// Whether merging it is worth while for the sake of `useless_count` entries that go or hide
    /// others: not when a few of them would rewrite a large part of the next level.
    fn is_worth(&self, useless_count: u64, options: &CompactionOptions) -> bool {
        entry_count_of(self.lower) <= useless_count.saturating_mul(2 * options.level_ratio)
    }

    fn plan(self, picker: &Picker<'_, '_>, reason: Reason) -> CompactionPlan {
        // Several tables of level 0 may overlap.
        let kind = if self.lower.is_empty() && (self.level > 0 || self.upper.len() == 1) {
            PlanKind::Move
        } else {
            PlanKind::Merge
        };
        let inputs = vec![(self.level, self.upper), (self.output_level, self.lower.to_vec())];
        picker.plan(reason, kind, inputs, self.output_level)
    }
}

impl<'s, 'a> Picker<'s, 'a> {
    /// Tables of level 0 or deeper that are all expired, with nothing older beneath that would
    /// appear again.
    fn drop_expired(&self) -> Option<CompactionPlan> {
        let mut inputs = Vec::new();
        for (level, tables) in self.summary.levels.iter().enumerate() {
            let gone = tables.iter().filter(|table| {
                // By their numbers, not by their place: after a repair, ranges of sequence numbers
                // overlap on level 0.
                let may_be_older = |other: &&TableSummary<'_>| {
                    other.meta.num != table.meta.num && other.meta.seq_min < table.meta.seq_max
                };
                let beside = if level == 0 { &tables[..] } else { &[] };
                !table.being_compacted
                    && table.meta.all_expired(self.summary.now_ms)
                    && self.summary.nothing_beneath(level, table.first(), table.last())
                    && !beside
                        .iter()
                        .filter(may_be_older)
                        .any(|older| older.meta.overlaps(table.first(), table.last()))
            });
            inputs.push((level, gone.copied().collect::<Vec<_>>()));
        }
        let any = inputs.iter().any(|(_, tables)| !tables.is_empty());
        any.then(|| self.plan(Reason::Expiry, PlanKind::Drop, inputs, BOTTOM))
    }

    /// The level that is furthest over its target.
    fn overfull_level(&self) -> Option<CompactionPlan> {
        let scores = &self.shape.scores;
        let mut due: Vec<usize> = (0..BOTTOM).filter(|&level| scores[level] >= 1.0).collect();
        due.sort_by(|&a, &b| scores[b].total_cmp(&scores[a]));
        due.into_iter().find_map(|level| match level {
            0 => self.out_of_level_0(Reason::L0Count, |_| true),
            _ => Some(self.cheapest_of(level)?.plan(self, Reason::LevelSize)),
        })
    }

    /// The cheapest step downward while there is too much above the last level. In a tree of level
    /// 0 alone, its oldest table counts as the last level.
    fn space_amplification(&self) -> Option<CompactionPlan> {
        let last_level = self.summary.last_level();
        let (last_bytes, above_bytes) = if last_level == 0 {
            let oldest_bytes = self.summary.levels[0].last()?.meta.file_bytes;
            (oldest_bytes, self.summary.idle_bytes(0).saturating_sub(oldest_bytes))
        } else {
            let above_bytes: u64 =
                (0..last_level).map(|level| self.summary.idle_bytes(level)).sum();
            (
                self.summary.bytes(last_level),
                above_bytes.saturating_sub(self.options.space_amplification_bytes_min),
            )
        };
        if above_bytes as f64 <= self.options.space_amplification_share * last_bytes as f64 {
            return None;
        }
        let out_of_level_0 = self.level_0_candidates().into_iter();
        let from_others = (1..last_level).filter_map(|level| self.cheapest_of(level));
        let cheapest = out_of_level_0.chain(from_others).min_by(Candidate::cost_order)?;
        match cheapest.level {
            0 => self.out_of_level_0(Reason::SpaceAmplification, |_| true),
            _ => Some(cheapest.plan(self, Reason::SpaceAmplification)),
        }
    }

    /// A table of which most entries are tombstones: down with it, or away with them where nothing
    /// is beneath.
    fn tombstones(&self) -> Option<CompactionPlan> {
        let dense =
            |table: &TableSummary<'_>| 2 * table.meta.tombstone_count > table.meta.entry_count;
        let out_of_level_0 = self.out_of_level_0(Reason::Tombstones, |candidate| {
            let tombstone_count =
                candidate.upper.iter().map(|table| table.meta.tombstone_count).sum();
            candidate.upper.iter().any(dense) && candidate.is_worth(tombstone_count, self.options)
        });
        out_of_level_0.or_else(|| {
            self.find_deeper(|level, table| {
                if !dense(table) {
                    return None;
                }
                if !self.summary.nothing_beneath(level, table.first(), table.last()) {
                    let candidate = self.candidate(level, table)?;
                    let worth = candidate.is_worth(table.meta.tombstone_count, self.options);
                    return worth.then(|| candidate.plan(self, Reason::Tombstones));
                }
                self.tombstones_can_go(table)
                    .then(|| self.rewrite(level, table, Reason::Tombstones))
            })
        })
    }

    /// A table of which most entries have expired, by estimate.
    fn expiry(&self) -> Option<CompactionPlan> {
        let expired_count =
            |table: &TableSummary<'_>| estimated_expired_count(table, self.summary.now_ms);
        let full = |table: &TableSummary<'_>| 2 * expired_count(table) >= table.meta.entry_count;
        let out_of_level_0 = self.out_of_level_0(Reason::Expiry, |candidate| {
            let useless_count = candidate.upper.iter().map(expired_count).sum();
            candidate.upper.iter().any(full) && candidate.is_worth(useless_count, self.options)
        });
        out_of_level_0.or_else(|| {
            self.find_deeper(|level, table| {
                if !full(table) {
                    return None;
                }
                if self.summary.nothing_beneath(level, table.first(), table.last()) {
                    return Some(self.rewrite(level, table, Reason::Expiry));
                }
                let candidate = self.candidate(level, table)?;
                let worth = candidate.is_worth(expired_count(table), self.options);
                worth.then(|| candidate.plan(self, Reason::Expiry))
            })
        })
    }

    /// The first plan that `make` gives for an idle table of level 1 or deeper.
    fn find_deeper(
        &self,
        make: impl Fn(usize, &'s TableSummary<'a>) -> Option<CompactionPlan>,
    ) -> Option<CompactionPlan> {
        (1..limits::LEVELS).find_map(|level| self.idle(level).find_map(|table| make(level, table)))
    }

    /// Whether every tombstone of a table at the bottom of its range is older than all snapshots.
    /// If only some were, a rewrite might change nothing, and be picked again for ever.
    fn tombstones_can_go(&self, table: &TableSummary<'_>) -> bool {
        self.summary.oldest_snapshot.is_none_or(|oldest| table.meta.seq_max <= oldest)
    }

    /// A rewrite in place of a table at the bottom of its range.
    fn rewrite(&self, level: usize, table: &TableSummary<'a>, reason: Reason) -> CompactionPlan {
        let all_tombstones = table.meta.tombstone_count == table.meta.entry_count;
        let kind = if all_tombstones && self.tombstones_can_go(table) {
            PlanKind::Drop
        } else {
            PlanKind::Merge
        };
        self.plan(reason, kind, vec![(level, vec![*table])], level)
    }

    /// Tables of level 0 on their way down: all that can just move together, else the largest group
    /// of overlapping ones. Only groups that `wanted` accepts.
    fn out_of_level_0(
        &self,
        reason: Reason,
        wanted: impl Fn(&Candidate<'s, 'a>) -> bool,
    ) -> Option<CompactionPlan> {
        let mut groups = self.level_0_candidates();
        groups.retain(wanted);
        let movable = |group: &&Candidate<'_, 'a>| group.upper.len() == 1 && group.lower.is_empty();
        let moving: Vec<_> =
            groups.iter().filter(movable).flat_map(|group| group.upper.clone()).collect();
        let output_level = self.shape.l0_output_level;
        if !moving.is_empty() {
            return Some(self.plan(reason, PlanKind::Move, vec![(0, moving)], output_level));
        }
        let largest = groups.into_iter().min_by_key(|group| Reverse(group.upper.len()))?;
        let inputs = vec![(0, largest.upper), (output_level, largest.lower.to_vec())];
        Some(self.plan(reason, PlanKind::Merge, inputs, output_level))
    }

    /// Level 0 in groups of tables that overlap, directly or through others, in key order. None
    /// while one is being compacted.
    fn level_0_candidates(&self) -> Vec<Candidate<'s, 'a>> {
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
        let output_level = self.shape.l0_output_level;
        let candidates = groups.into_iter().map(|(upper, last)| {
            let lower = self.summary.overlapping(output_level, upper[0].first(), last);
            Candidate { level: 0, upper, output_level, lower }
        });
        candidates.filter(|candidate| !any_busy(candidate.lower)).collect()
    }

    /// The table of a level from 1 on that is cheapest to merge into the next, with its neighbours
    /// that cost no more.
    fn cheapest_of(&self, level: usize) -> Option<Candidate<'s, 'a>> {
        let candidates = self.idle(level).filter_map(|table| self.candidate(level, table));
        let mut cheapest = candidates.min_by(Candidate::cost_order)?;
        self.expand(&mut cheapest);
        Some(cheapest)
    }

    /// One table and what it overlaps on the next level, unless that is being compacted or there is
    /// no next level.
    fn candidate(&self, level: usize, table: &TableSummary<'a>) -> Option<Candidate<'s, 'a>> {
        let output_level = level + 1;
        if output_level > BOTTOM {
            return None;
        }
        let lower = self.summary.overlapping(output_level, table.first(), table.last());
        (!any_busy(lower)).then(|| Candidate { level, upper: vec![*table], output_level, lower })
    }

    /// Adds the neighbours of the upper table whose overlap is merged anyway.
    fn expand(&self, candidate: &mut Candidate<'s, 'a>) {
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
        let mut fits = |table: &&TableSummary<'a>| {
            bytes += table.meta.file_bytes;
            bytes <= bytes_max
        };
        let start = tables.partition_point(|table| table.first() < candidate.upper[0].first());
        let mut from = start;
        while from > 0 && Some(&tables[from - 1]).filter(within).is_some_and(|table| fits(&table)) {
            from -= 1;
        }
        let mut to = start + 1;
        while tables.get(to).filter(within).is_some_and(|table| fits(&table)) {
            to += 1;
        }
        candidate.upper = tables[from..to].to_vec();
    }

    /// The tables of a level that are not being compacted.
    fn idle(&self, level: usize) -> impl Iterator<Item = &'s TableSummary<'a>> {
        self.summary.levels[level].iter().filter(|table| !table.being_compacted)
    }

    fn plan(
        &self,
        reason: Reason,
        kind: PlanKind,
        inputs: Vec<(usize, Vec<TableSummary<'a>>)>,
        output_level: usize,
    ) -> CompactionPlan {
        let all = || inputs.iter().flat_map(|(_, tables)| tables);
        let first = all().map(TableSummary::first).min().unwrap_or_default();
        let last = all().map(TableSummary::last).max().unwrap_or_default();
        let grandparents = match kind {
            PlanKind::Merge if output_level < BOTTOM => {
                self.summary.overlapping(output_level + 1, first, last)
            }
            _ => &[],
        };
        let (room_bytes, room_hoped_bytes) = match kind {
            PlanKind::Merge => step_bytes(&inputs),
            PlanKind::Move | PlanKind::Drop => (0, 0),
        };
        CompactionPlan {
            reason,
            kind,
            output_level,
            room_bytes,
            room_hoped_bytes,
            bottommost: self.summary.nothing_beneath(output_level, first, last),
            grandparents: grandparents.iter().map(|table| table.meta.num).collect(),
            input_bytes: all().map(|table| table.meta.file_bytes).sum(),
            inputs: inputs
                .iter()
                .filter(|(_, tables)| !tables.is_empty())
                .map(|(level, tables)| {
                    (*level, tables.iter().map(|table| table.meta.num).collect())
                })
                .collect(),
        }
    }
}

/// Space that a merge of `inputs`, of one or two levels, takes in steps: at most, and if all that
/// comes from above are tombstones that remove an entry each.
fn step_bytes(inputs: &[(usize, Vec<TableSummary<'_>>)]) -> (u64, u64) {
    let Some((_, upper)) = inputs.first() else {
        return (0, 0);
    };
    let lower = inputs.get(1).map_or(&[][..], |(_, lower)| lower);
    let with_values =
        upper.iter().filter(|table| table.meta.tombstone_count < table.meta.entry_count);
    let upper_bytes: u64 = with_values.map(|table| table.meta.file_bytes).sum();
    let lower_bytes = lower.iter().map(|table| table.meta.file_bytes).max().unwrap_or(0);
    let tombstone_count: u64 = upper.iter().map(|table| table.meta.tombstone_count).sum();
    let lower_count = entry_count_of(lower);
    let left_count = lower_count.saturating_sub(tombstone_count);
    let left_share = left_count as f64 / lower_count.max(1) as f64;
    // A merge that runs out of room leaves what came from above on both levels, so this is for
    // tombstones alone.
    let hoped_bytes = match upper_bytes {
        0 => (lower_bytes as f64 * left_share) as u64,
        _ => upper_bytes + lower_bytes,
    };
    (with_overhead(upper_bytes + lower_bytes), with_overhead(hoped_bytes))
}

/// What tables of `bytes` take when they are written anew, in more and smaller files.
pub(crate) fn with_overhead(bytes: u64) -> u64 {
    bytes + bytes / 16
}

/// Entries that have expired, as if expiries were spread evenly between the earliest and the
/// latest. Not 0 only if at least one has.
fn estimated_expired_count(table: &TableSummary<'_>, now_ms: u64) -> u64 {
    let Some(expiry) = table.meta.expiry.filter(|expiry| expiry.min_ms <= now_ms) else {
        return 0;
    };
    if expiry.max_ms <= now_ms {
        return expiry.expiring_count;
    }
    let passed = u128::from(now_ms - expiry.min_ms) * u128::from(expiry.expiring_count);
    (passed / u128::from(expiry.max_ms - expiry.min_ms)) as u64
}

mod little_room;

pub(crate) use little_room::pick_small;

#[cfg(test)]
mod tests;
