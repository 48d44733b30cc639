//! A tree without a disk: keys are numbers, tables are lists of entries, and the bytes that a disk
//! would receive are counted.
//!
//! It executes the plans of [`pick`], which shows the write and space amplification of a policy
//! within seconds, and checks the invariants of the tree after each step.

use crate::compaction::shape::BOTTOM;
use crate::compaction::summary::TableSummary;
use crate::compaction::{
    CompactionOptions, CompactionPlan, OutputCutter, PlanKind, TreeShape, VersionSummary, pick,
};
use crate::format::{FileNum, InternalKeyRef, SeqNum, ValueKind};
use crate::version::{ExpirySummary, FileMeta};
use kvant_base::limits;
use kvant_env::rng::Rng;
use std::collections::{BTreeMap, HashSet};
use std::fmt;

/// Bytes of a tombstone in a table.
const TOMBSTONE_BYTES: u64 = 24;

/// The keys of a workload.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Workload {
    /// New keys in ascending order.
    Sequential,
    /// Keys below `key_count`, all equally likely.
    Uniform { key_count: u64 },
}

/// A simulated write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Write {
    Put,
    Delete,
    /// A value with this expiry.
    PutExpiring(u64),
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    key: u64,
    seq: u64,
    write: Write,
}

struct Table {
    meta: FileMeta,
    entries: Vec<Entry>,
}

/// A simulated tree.
pub(crate) struct Simulator {
    options: CompactionOptions,
    entry_bytes: u64,
    levels: [Vec<Table>; limits::LEVELS],
    next_num: u64,
    last_seq: u64,
    next_key: u64,
    user_bytes: u64,
    written_bytes: u64,
    /// Inputs of compactions that are running.
    pub(crate) being_compacted: HashSet<FileNum>,
    pub(crate) oldest_snapshot: Option<SeqNum>,
    pub(crate) now_ms: u64,
}

impl Simulator {
    /// An empty tree whose records take `entry_bytes` each.
    pub(crate) fn new(options: CompactionOptions, entry_bytes: u64) -> Simulator {
        Simulator {
            options,
            entry_bytes,
            levels: Default::default(),
            next_num: 1,
            last_seq: 0,
            next_key: 0,
            user_bytes: 0,
            written_bytes: 0,
            being_compacted: HashSet::new(),
            oldest_snapshot: None,
            now_ms: 0,
        }
    }

    /// Writes `flush_count` memtables of `memtable_entries` each, with at most `picks_max`
    /// compactions after each flush.
    pub(crate) fn fill(
        &mut self,
        workload: Workload,
        rng: &mut Rng,
        flush_count: usize,
        memtable_entries: usize,
        picks_max: usize,
    ) {
        for _ in 0..flush_count {
            let writes = (0..memtable_entries).map(|_| match workload {
                Workload::Sequential => {
                    self.next_key += 1;
                    (self.next_key, Write::Put)
                }
                Workload::Uniform { key_count } => (rng.below(key_count), Write::Put),
            });
            let writes = writes.collect();
            self.flush(writes);
            self.compact(picks_max);
        }
    }

    /// Writes a memtable of `writes`, oldest first, to level 0.
    pub(crate) fn flush(&mut self, writes: Vec<(u64, Write)>) {
        let mut entries = Vec::with_capacity(writes.len());
        for (key, write) in writes {
            self.last_seq += 1;
            self.user_bytes += self.bytes_of(write);
            entries.push(Entry { key, seq: self.last_seq, write });
        }
        let kept = self.keep(entries, false);
        self.add_table(0, kept);
    }

    /// Adds a table of `writes` to a level, unless it overlaps another one there.
    pub(crate) fn place(&mut self, level: usize, writes: &[(u64, Write)]) -> bool {
        let mut entries = Vec::new();
        for &(key, write) in writes {
            self.last_seq += 1;
            entries.push(Entry { key, seq: self.last_seq, write });
        }
        let kept = self.keep(entries, false);
        let (Some(first), Some(last)) = (kept.first(), kept.last()) else {
            return false;
        };
        let (first, last) = (first.key.to_be_bytes(), last.key.to_be_bytes());
        let free = level == 0 || self.summary().overlapping(level, &first, &last).is_empty();
        if free {
            self.add_table(level, kept);
        }
        free
    }

    /// Compacts until nothing is due, at most `picks_max` times. Returns the plans.
    pub(crate) fn compact(&mut self, picks_max: usize) -> Vec<CompactionPlan> {
        let mut plans = Vec::new();
        while plans.len() < picks_max
            && let Some(plan) = pick(&self.summary(), &self.options)
        {
            self.run(&plan);
            plans.push(plan);
        }
        plans
    }

    /// Executes `plan`.
    pub(crate) fn run(&mut self, plan: &CompactionPlan) {
        let mut inputs = Vec::new();
        for (level, nums) in &plan.inputs {
            let wanted: HashSet<_> = nums.iter().copied().collect();
            let (taken, left): (Vec<_>, Vec<_>) = std::mem::take(&mut self.levels[*level])
                .into_iter()
                .partition(|table| wanted.contains(&table.meta.num));
            assert_eq!(taken.len(), nums.len(), "inputs are in the tree: {plan:?}");
            self.levels[*level] = left;
            inputs.extend(taken);
        }
        match plan.kind {
            PlanKind::Drop => {}
            PlanKind::Move => {
                inputs.into_iter().for_each(|table| self.insert(plan.output_level, table))
            }
            PlanKind::Merge => {
                let entries = inputs.into_iter().flat_map(|table| table.entries).collect();
                let kept = self.keep(entries, plan.bottommost);
                for output in self.cut(kept, plan) {
                    self.add_table(plan.output_level, output);
                }
            }
        }
    }

    /// The tree as the input of the picker.
    pub(crate) fn summary(&self) -> VersionSummary<'_> {
        VersionSummary {
            levels: std::array::from_fn(|level| {
                let tables = self.levels[level].iter().map(|table| TableSummary {
                    meta: &table.meta,
                    being_compacted: self.being_compacted.contains(&table.meta.num),
                });
                tables.collect()
            }),
            oldest_snapshot: self.oldest_snapshot,
            now_ms: self.now_ms,
        }
    }

    /// Key and sequence number of the records visible at `visible_at`.
    pub(crate) fn visible(&self, visible_at: SeqNum) -> BTreeMap<u64, u64> {
        let mut newest: BTreeMap<u64, Entry> = BTreeMap::new();
        let entries = self.levels.iter().flatten().flat_map(|table| &table.entries);
        for &entry in entries.filter(|entry| entry.seq <= visible_at.0) {
            let best = newest.entry(entry.key).or_insert(entry);
            if entry.seq > best.seq {
                *best = entry;
            }
        }
        newest.retain(|_, entry| !self.is_gone(entry));
        newest.into_iter().map(|(key, entry)| (key, entry.seq)).collect()
    }

    /// Sequence number of the last write.
    pub(crate) fn last_seq(&self) -> SeqNum {
        SeqNum(self.last_seq)
    }

    /// Bytes written to tables by flushes and compactions per byte written by users.
    pub(crate) fn write_amplification(&self) -> f64 {
        self.written_bytes as f64 / self.user_bytes as f64
    }

    /// Bytes in tables per visible byte.
    pub(crate) fn space_amplification(&self) -> f64 {
        let bytes: u64 = self.levels.iter().flatten().map(|table| table.meta.file_bytes).sum();
        let visible_bytes = self.visible(SeqNum::MAX).len() as u64 * self.entry_bytes;
        bytes as f64 / visible_bytes as f64
    }

    fn is_gone(&self, entry: &Entry) -> bool {
        match entry.write {
            Write::Put => false,
            Write::Delete => true,
            Write::PutExpiring(expiry_ms) => expiry_ms <= self.now_ms,
        }
    }

    /// The entries that a flush or compaction keeps, in order: `iter::CompactionIter` for one
    /// snapshot.
    fn keep(&self, mut entries: Vec<Entry>, bottommost: bool) -> Vec<Entry> {
        entries.sort_by(|a, b| (a.key, b.seq).cmp(&(b.key, a.seq)));
        let stripe =
            |entry: &Entry| self.oldest_snapshot.is_some_and(|oldest| entry.seq > oldest.0);
        entries.dedup_by(|older, newer| older.key == newer.key && stripe(older) == stripe(newer));
        for entry in &mut entries {
            if self.is_gone(entry) {
                entry.write = Write::Delete;
            }
        }
        entries.retain(|entry| entry.write != Write::Delete || !bottommost || stripe(entry));
        entries
    }

    fn cut(&self, entries: Vec<Entry>, plan: &CompactionPlan) -> Vec<Vec<Entry>> {
        let beneath = self.levels.get(plan.output_level + 1).map_or(&[][..], |tables| tables);
        let grandparents: Vec<(&[u8], u64)> = beneath
            .iter()
            .filter(|table| plan.grandparents.contains(&table.meta.num))
            .map(|table| (&table.meta.largest.user_key[..], table.meta.file_bytes))
            .collect();
        let mut cutter = OutputCutter::new(self.options.table_bytes, &grandparents);
        let mut outputs: Vec<Vec<Entry>> = vec![Vec::new()];
        let mut output_bytes = 0;
        let mut last_key = None;
        for entry in entries {
            if last_key != Some(entry.key)
                && cutter.cut_before(
                    &entry.key.to_be_bytes(),
                    output_bytes,
                    entry.write == Write::Delete,
                )
            {
                outputs.push(Vec::new());
                output_bytes = 0;
            }
            last_key = Some(entry.key);
            output_bytes += self.bytes_of(entry.write);
            outputs.last_mut().expect("there is an output").push(entry);
        }
        outputs
    }

    fn bytes_of(&self, write: Write) -> u64 {
        if write == Write::Delete { TOMBSTONE_BYTES } else { self.entry_bytes }
    }

    fn add_table(&mut self, level: usize, entries: Vec<Entry>) {
        if let Some(table) = self.table(entries) {
            self.written_bytes += table.meta.file_bytes;
            self.insert(level, table);
        }
    }

    fn table(&mut self, entries: Vec<Entry>) -> Option<Table> {
        let (first, last) = (entries.first()?, entries.last()?);
        let bound = |entry: &Entry| {
            let kind =
                if entry.write == Write::Delete { ValueKind::Delete } else { ValueKind::Put };
            InternalKeyRef::new(&entry.key.to_be_bytes(), SeqNum(entry.seq), kind).to_owned()
        };
        let expiries = entries.iter().filter_map(|entry| match entry.write {
            Write::PutExpiring(expiry_ms) => Some(expiry_ms),
            Write::Put | Write::Delete => None,
        });
        let expiry = expiries.fold(None, |sum: Option<ExpirySummary>, expiry_ms| {
            let sum = sum.unwrap_or(ExpirySummary {
                expiring_count: 0,
                min_ms: expiry_ms,
                max_ms: expiry_ms,
            });
            Some(ExpirySummary {
                expiring_count: sum.expiring_count + 1,
                min_ms: sum.min_ms.min(expiry_ms),
                max_ms: sum.max_ms.max(expiry_ms),
            })
        });
        let file_bytes = entries.iter().map(|entry| self.bytes_of(entry.write)).sum();
        let meta = FileMeta {
            num: FileNum(self.next_num),
            file_bytes,
            smallest: bound(first),
            largest: bound(last),
            seq_min: SeqNum(entries.iter().map(|entry| entry.seq).min()?),
            seq_max: SeqNum(entries.iter().map(|entry| entry.seq).max()?),
            entry_count: entries.len() as u64,
            tombstone_count: entries.iter().filter(|entry| entry.write == Write::Delete).count()
                as u64,
            raw_bytes: file_bytes,
            expiry,
        };
        self.next_num += 1;
        Some(Table { meta, entries })
    }

    fn insert(&mut self, level: usize, table: Table) {
        let tables = &mut self.levels[level];
        if level == 0 {
            let index = tables.partition_point(|other| other.meta.seq_max > table.meta.seq_max);
            tables.insert(index, table);
            return;
        }
        let index = tables
            .partition_point(|other| other.meta.smallest.user_key < table.meta.smallest.user_key);
        let clear_of = |other: Option<&Table>| {
            other.is_none_or(|other| {
                !other.meta.overlaps(&table.meta.smallest.user_key, &table.meta.largest.user_key)
            })
        };
        assert!(
            clear_of(tables[..index].last()) && clear_of(tables.get(index)),
            "tables of level {level} overlap"
        );
        tables.insert(index, table);
    }
}

/// One line per level.
impl fmt::Display for Simulator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let summary = self.summary();
        let shape = TreeShape::new(&summary, &self.options);
        writeln!(f, "level  tables         bytes        target   score")?;
        for level in 0..=BOTTOM {
            let (count, bytes) = (summary.levels[level].len(), summary.bytes(level));
            let (target, score) = (shape.target_bytes[level], shape.scores[level]);
            writeln!(f, "{level:5} {count:7} {bytes:13} {target:13} {score:7.2}")?;
        }
        let (writes, space) = (self.write_amplification(), self.space_amplification());
        write!(
            f,
            "write amplification {writes:.2}, space amplification {space:.3}, debt {}",
            shape.debt_bytes
        )
    }
}

#[cfg(test)]
mod tests;
