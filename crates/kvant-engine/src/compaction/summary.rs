//! The input of picking: a description of the tree, and the settings.

use crate::format::{FileNum, SeqNum, TRAILER_BYTES};
use crate::options::{CompactionGoal, Options};
use crate::version::{FileMeta, Version};
use kvant_base::limits;
use std::collections::HashSet;

/// The settings for picking. See [`Options`].
#[derive(Clone, Debug)]
pub(crate) struct CompactionOptions {
    pub(crate) l0_compact_count: usize,
    /// Largest target of the base level: about the output of one compaction of level 0.
    pub(crate) base_bytes: u64,
    pub(crate) level_ratio: u64,
    pub(crate) space_amplification_share: f64,
    /// Bytes allowed above the last level whatever its size: in a small tree the share is not worth
    /// a rewrite.
    pub(crate) space_amplification_bytes_min: u64,
    pub(crate) table_bytes: u64,
}

/// Most bytes allowed above the last level whatever its size, if compaction saves space: smaller
/// merges cost more than they free.
const SPACE_AMPLIFICATION_BYTES_MIN: u64 = 16 << 20;

impl CompactionOptions {
    pub(crate) fn new(options: &Options) -> CompactionOptions {
        let base_bytes = options.memtable_bytes.saturating_mul(options.l0_compact_count as u64);
        CompactionOptions {
            l0_compact_count: options.l0_compact_count,
            base_bytes,
            level_ratio: options.level_ratio,
            space_amplification_share: options.space_amplification_share,
            space_amplification_bytes_min: match options.goal {
                CompactionGoal::Space => {
                    (options.memtable_bytes / 2).min(SPACE_AMPLIFICATION_BYTES_MIN)
                }
                CompactionGoal::Writes => base_bytes,
            },
            table_bytes: options.table_bytes,
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct TableSummary<'a> {
    pub(crate) meta: &'a FileMeta,
    /// Whether the table is an input of a running compaction.
    pub(crate) being_compacted: bool,
}

/// The tree in the order of a [`Version`]: level 0 newest first, the others by key.
#[derive(Clone, Debug, Default)]
pub(crate) struct VersionSummary<'a> {
    pub(crate) levels: [Vec<TableSummary<'a>>; limits::LEVELS],
    /// Sequence number of the oldest snapshot, if any.
    pub(crate) oldest_snapshot: Option<SeqNum>,
    /// Wall time, in milliseconds since 1970.
    pub(crate) now_ms: u64,
}

impl<'a> VersionSummary<'a> {
    /// Describes `version`, of which the tables in `being_compacted` are being compacted.
    pub(crate) fn new<T>(
        version: &'a Version<T>,
        being_compacted: &HashSet<FileNum>,
        oldest_snapshot: Option<SeqNum>,
        now_ms: u64,
    ) -> VersionSummary<'a> {
        let levels = std::array::from_fn(|level| {
            let tables = version.tables(level).iter().map(|table| TableSummary {
                meta: &table.meta,
                being_compacted: being_compacted.contains(&table.meta.num),
            });
            tables.collect()
        });
        VersionSummary { levels, oldest_snapshot, now_ms }
    }

    pub(super) fn bytes(&self, level: usize) -> u64 {
        bytes_of(&self.levels[level])
    }

    /// As [`TableSummary::value_bytes`], of all tables of a level.
    pub(super) fn value_bytes(&self, level: usize) -> u64 {
        self.levels[level].iter().map(TableSummary::value_bytes).sum()
    }

    /// As [`TableSummary::value_bytes`], of the tables of a level that are not being compacted.
    pub(super) fn idle_value_bytes(&self, level: usize) -> u64 {
        let idle = self.levels[level].iter().filter(|table| !table.being_compacted);
        idle.map(TableSummary::value_bytes).sum()
    }

    /// The tables of a deeper level that overlap `first..=last`.
    pub(super) fn overlapping(
        &self,
        level: usize,
        first: &[u8],
        last: &[u8],
    ) -> &[TableSummary<'a>] {
        debug_assert!(level > 0, "tables of level 0 are not sorted by key");
        let tables = &self.levels[level];
        let from = tables.partition_point(|table| table.last() < first);
        let count = tables[from..].partition_point(|table| table.first() <= last);
        &tables[from..from + count]
    }

    /// Whether no table of a level deeper than `level` overlaps `first..=last`.
    pub(super) fn nothing_beneath(&self, level: usize, first: &[u8], last: &[u8]) -> bool {
        (level + 1..limits::LEVELS).all(|deeper| self.overlapping(deeper, first, last).is_empty())
    }

    pub(super) fn last_level(&self) -> usize {
        self.levels.iter().rposition(|tables| !tables.is_empty()).unwrap_or(0)
    }
}

impl<'a> TableSummary<'a> {
    /// Smallest user key.
    pub(super) fn first(&self) -> &'a [u8] {
        &self.meta.smallest.user_key
    }

    /// Largest user key.
    pub(super) fn last(&self) -> &'a [u8] {
        &self.meta.largest.user_key
    }

    /// Bytes of the table without its tombstones, estimated by the length of its keys.
    pub(super) fn value_bytes(&self) -> u64 {
        let key_bytes = self.first().len().midpoint(self.last().len()) + TRAILER_BYTES;
        let tombstone_bytes = self.meta.tombstone_count.saturating_mul(key_bytes as u64);
        self.meta.file_bytes.saturating_sub(tombstone_bytes)
    }

    pub(super) fn is_mostly_tombstones(&self) -> bool {
        2 * self.meta.tombstone_count > self.meta.entry_count
    }
}

pub(super) fn bytes_of(tables: &[TableSummary<'_>]) -> u64 {
    tables.iter().map(|table| table.meta.file_bytes).sum()
}

pub(super) fn entry_count_of(tables: &[TableSummary<'_>]) -> u64 {
    tables.iter().map(|table| table.meta.entry_count).sum()
}

pub(super) fn any_busy(tables: &[TableSummary<'_>]) -> bool {
    tables.iter().any(|table| table.being_compacted)
}
