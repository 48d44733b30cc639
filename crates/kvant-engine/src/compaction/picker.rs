//! The choice of the next compaction.
//!
//! In this order: drop tables of expired entries, which costs no I/O; compact the level with the
//! highest score, which is the table count for level 0 and the size relative to the target for the
//! others; while no level exceeds its target, reduce the data above the last level to its share and
//! half a memtable; compact tables full of tombstones, then tables full of expired entries.
//!
//! Within a level, the table with the least overlap in the next level relative to its size goes
//! first: it rewrites least per byte moved.

use super::candidate::{Candidate, Planner};
use super::plan::{CompactionPlan, PlanKind, Reason};
use super::shape::BOTTOM;
use super::summary::{CompactionOptions, TableSummary, VersionSummary};
use kvant_base::limits;
use std::cmp::Reverse;

/// A table whose last entry expires within this time is left until it can be dropped.
const DROP_WAIT_MS_MAX: u64 = 10 * 60 * 1000;

/// The most useful compaction, if any is worthwhile.
pub(crate) fn pick(
    summary: &VersionSummary<'_>,
    options: &CompactionOptions,
) -> Option<CompactionPlan> {
    let planner = Planner::new(summary, options);
    planner
        .drop_expired()
        .or_else(|| planner.overfull_level())
        .or_else(|| planner.space_amplification())
        .or_else(|| planner.tombstones())
        .or_else(|| planner.expiry())
}

/// The next step towards a tree with all data in the last level, without tombstones or expired
/// entries that can be dropped; `None` if there is none, or if running compactions prevent it. With
/// a constant `now_ms`, the number of steps is finite.
pub(crate) fn pick_manual(
    summary: &VersionSummary<'_>,
    options: &CompactionOptions,
) -> Option<CompactionPlan> {
    let planner = Planner::new(summary, options);
    let cleanable = |table: &&TableSummary<'_>| {
        table.meta.expiry.is_some_and(|expiry| expiry.min_ms <= summary.now_ms)
            || (table.meta.tombstone_count > 0 && planner.can_drop_tombstones(table))
    };
    let downward = |level| Some(planner.cheapest_of(level)?.plan(&planner, Reason::Manual));
    planner
        .drop_expired()
        .or_else(|| planner.out_of_level_0(Reason::Manual, |_| true))
        .or_else(|| (1..BOTTOM).find_map(downward))
        .or_else(|| {
            let table = planner.idle(BOTTOM).find(cleanable)?;
            Some(planner.rewrite(BOTTOM, table, Reason::Manual))
        })
}

impl<'s, 'a> Planner<'s, 'a> {
    /// Tables whose entries have all expired, with nothing older beneath that would reappear.
    fn drop_expired(&self) -> Option<CompactionPlan> {
        let mut inputs = Vec::new();
        for (level, tables) in self.summary.levels.iter().enumerate() {
            let gone = tables.iter().filter(|table| {
                // By sequence numbers, not by position: after a repair, those of level-0 tables may
                // overlap.
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

    /// The level that exceeds its target most.
    fn overfull_level(&self) -> Option<CompactionPlan> {
        let scores = &self.shape.scores;
        let mut due: Vec<usize> = (0..BOTTOM).filter(|&level| scores[level] >= 1.0).collect();
        due.sort_by(|&a, &b| scores[b].total_cmp(&scores[a]));
        due.into_iter().find_map(|level| match level {
            0 => self.out_of_level_0(Reason::L0Count, |_| true),
            _ => Some(self.cheapest_of(level)?.plan(self, Reason::LevelSize)),
        })
    }

    /// The cheapest downward step while there is too much data above the last level. In a tree of
    /// level 0 alone, the oldest table counts as the last level.
    fn space_amplification(&self) -> Option<CompactionPlan> {
        let last_level = self.summary.last_level();
        let (last_bytes, above_bytes) = if last_level == 0 {
            let oldest_bytes = self.summary.levels[0].last()?.value_bytes();
            (oldest_bytes, self.summary.idle_value_bytes(0).saturating_sub(oldest_bytes))
        } else {
            let above_bytes =
                (0..last_level).map(|level| self.summary.idle_value_bytes(level)).sum();
            (self.summary.bytes(last_level), above_bytes)
        };
        let excess_bytes = above_bytes.saturating_sub(self.options.space_amplification_bytes_min);
        if excess_bytes as f64 <= self.options.space_amplification_share * last_bytes as f64 {
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

    /// A table in which most entries are tombstones.
    fn tombstones(&self) -> Option<CompactionPlan> {
        self.mostly_useless(
            Reason::Tombstones,
            |table| table.is_mostly_tombstones(),
            |table| table.meta.tombstone_count,
            |table| self.can_drop_tombstones(table),
        )
    }

    /// A table in which, by estimate, most entries have expired.
    fn expiry(&self) -> Option<CompactionPlan> {
        let now_ms = self.summary.now_ms;
        let expired_count = |table: &TableSummary<'_>| estimated_expired_count(table, now_ms);
        let is_due = |table: &TableSummary<'_>| {
            2 * expired_count(table) >= table.meta.entry_count && !self.is_dropped_soon(table)
        };
        self.mostly_useless(Reason::Expiry, is_due, expired_count, |_| true)
    }

    /// Whether a table, and what it may hide, will have expired so soon that it is better dropped
    /// then than rewritten now.
    fn is_dropped_soon(&self, table: &TableSummary<'_>) -> bool {
        let now_ms = self.summary.now_ms;
        let (num, newest) = (table.meta.num, table.meta.seq_max);
        let mut with_older = self.summary.levels.iter().flatten().filter(|other| {
            let may_be_older = other.meta.num == num || other.meta.seq_min < newest;
            may_be_older && other.meta.overlaps(table.first(), table.last())
        });
        let expired_ms =
            with_older.try_fold(0, |latest_ms, other| Some(all_expired_ms(other)?.max(latest_ms)));
        expired_ms.is_some_and(|expired_ms| {
            now_ms < expired_ms && expired_ms <= now_ms.saturating_add(DROP_WAIT_MS_MAX)
        })
    }

    /// Merges a table that `is_due` into the next level, or rewrites it in place if nothing is
    /// beneath it and its useless entries `can_be_dropped`.
    fn mostly_useless(
        &self,
        reason: Reason,
        is_due: impl Fn(&TableSummary<'_>) -> bool,
        useless_count: impl Fn(&TableSummary<'_>) -> u64,
        can_be_dropped: impl Fn(&TableSummary<'_>) -> bool,
    ) -> Option<CompactionPlan> {
        let is_worthwhile = |candidate: &Candidate<'s, 'a>| {
            let useless_count = candidate.upper.iter().map(&useless_count).sum();
            candidate.is_worthwhile(useless_count, self.summary.last_level())
        };
        let out_of_level_0 = self.out_of_level_0(reason, |candidate| {
            candidate.upper.iter().any(&is_due) && is_worthwhile(candidate)
        });
        let deeper = |level| {
            self.idle(level).filter(|table| is_due(table)).find_map(|table| {
                if self.summary.nothing_beneath(level, table.first(), table.last()) {
                    return can_be_dropped(table).then(|| self.rewrite(level, table, reason));
                }
                let mut candidate = self.candidate(level, table)?;
                self.expand(&mut candidate);
                is_worthwhile(&candidate).then(|| candidate.plan(self, reason))
            })
        };
        out_of_level_0.or_else(|| (1..limits::LEVELS).find_map(deeper))
    }

    /// Whether every tombstone of a table with nothing beneath it is older than all snapshots. If
    /// only some were, a rewrite might change nothing and be picked again.
    fn can_drop_tombstones(&self, table: &TableSummary<'_>) -> bool {
        self.summary.oldest_snapshot.is_none_or(|oldest| table.meta.seq_max <= oldest)
    }

    /// A rewrite in place of a table with nothing beneath it.
    fn rewrite(&self, level: usize, table: &TableSummary<'a>, reason: Reason) -> CompactionPlan {
        let all_tombstones = table.meta.tombstone_count == table.meta.entry_count;
        let kind = if all_tombstones && self.can_drop_tombstones(table) {
            PlanKind::Drop
        } else {
            PlanKind::Merge
        };
        self.plan(reason, kind, vec![(level, vec![*table])], level)
    }

    /// Compacts groups of level 0 that `wanted` accepts: all that can move without a merge, or else
    /// the largest group.
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
        Some(largest.plan(self, reason))
    }
}

/// Milliseconds until the first table that expires has expired enough to be dropped or compacted.
pub(crate) fn expiry_wait_ms(summary: &VersionSummary<'_>) -> Option<u64> {
    let tables = summary.levels.iter().flatten().filter(|table| !table.being_compacted);
    let due_ms = tables.flat_map(|table| [all_expired_ms(table), mostly_expired_ms(table)]);
    let later_ms = due_ms.flatten().filter(|&due_ms| due_ms > summary.now_ms);
    later_ms.min().map(|due_ms| due_ms - summary.now_ms)
}

/// When all entries of a table have expired, if they all expire.
fn all_expired_ms(table: &TableSummary<'_>) -> Option<u64> {
    let expiry = table.meta.expiry?;
    (expiry.expiring_count == table.meta.entry_count).then_some(expiry.max_ms)
}

/// When, by estimate, half of the entries of a table have expired.
fn mostly_expired_ms(table: &TableSummary<'_>) -> Option<u64> {
    let expiry = table.meta.expiry?;
    let half_count = table.meta.entry_count.div_ceil(2);
    let spread_ms = u128::from(expiry.max_ms - expiry.min_ms) * u128::from(half_count);
    let after_ms = spread_ms.div_ceil(u128::from(expiry.expiring_count)) as u64;
    (half_count <= expiry.expiring_count).then_some(expiry.min_ms + after_ms)
}

/// Expired entries, assuming that expiries are spread evenly between the earliest and the latest.
/// Positive only if at least one has expired.
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

#[cfg(test)]
mod tests;
