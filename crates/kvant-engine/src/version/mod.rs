//! Versions: the tables of the database at one time, and the manifest that logs their changes.
//!
//! A [`Version`] is immutable and shared: readers hold the one they started with, while flushes and
//! compactions install new ones. A change is a [`VersionEdit`]: [`Version::apply`] checks it,
//! [`ManifestWriter::append`] makes it durable, then the new version is installed and
//! [`TableFile::mark_obsolete`] is called on [`Version::removed_by`].
//!
//! Invariants: those of [`levels`], and (4) the tables of a version stay open, and their files
//! exist, until the last version or iterator that holds them is dropped.
//!
//! Threads: any number of threads read a version without locks; one thread at a time edits.

mod edit;
mod file_meta;
mod files;
mod levels;
mod manifest;
mod obsolete;
#[cfg(test)]
pub(crate) mod test_support;

pub(crate) use edit::VersionEdit;
#[cfg(test)]
pub(crate) use file_meta::ExpirySummary;
pub(crate) use file_meta::FileMeta;
pub(crate) use files::{Listed, list_files};
pub(crate) use levels::Levels;
pub(crate) use manifest::{
    KnownLogs, ManifestReader, ManifestState, ManifestWriter, RecoveredManifest, recover,
    remove_older,
};
pub(crate) use obsolete::{ObsoleteQueue, TableFile};

use crate::format::{FileNum, InternalKey, InternalKeyRef, SeqNum, key_prefix};
use kvant_base::{Error, ErrorKind, Result, limits};
use levels::Tree;
use std::array;
use std::cmp::Ordering;
use std::sync::Arc;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LevelTotals {
    pub(crate) file_bytes: u64,
    pub(crate) entry_count: u64,
    pub(crate) tombstone_count: u64,
}

struct Level<T> {
    tables: Vec<Arc<TableFile<T>>>,
    /// [`key_prefix`] of each table's largest and smallest key: a search reads these arrays, and
    /// follows pointers only where prefixes are equal. Empty for level 0, which is not searched.
    largest_prefixes: Vec<u64>,
    smallest_prefixes: Vec<u64>,
    totals: LevelTotals,
}

impl<T> Level<T> {
    fn new(level: usize, tables: Vec<Arc<TableFile<T>>>) -> Level<T> {
        let mut totals = LevelTotals::default();
        for table in &tables {
            totals.file_bytes += table.meta.file_bytes;
            totals.entry_count += table.meta.entry_count;
            totals.tombstone_count += table.meta.tombstone_count;
        }
        let searched = if level == 0 { &[] } else { &tables[..] };
        let prefixes = |key: fn(&FileMeta) -> &InternalKey| {
            searched.iter().map(|table| key_prefix(&key(&table.meta).user_key)).collect()
        };
        let largest_prefixes = prefixes(|meta| &meta.largest);
        let smallest_prefixes = prefixes(|meta| &meta.smallest);
        Level { tables, largest_prefixes, smallest_prefixes, totals }
    }

    /// Index of the first table of a deeper level whose largest key is at or after `user_key`.
    fn search(&self, user_key: &[u8]) -> usize {
        let prefix = key_prefix(user_key);
        let from = self.largest_prefixes.partition_point(|&largest| largest < prefix);
        let equals = self.largest_prefixes[from..].partition_point(|&largest| largest == prefix);
        let ties = &self.tables[from..from + equals];
        from + ties.partition_point(|table| table.meta.largest.user_key.as_slice() < user_key)
    }

    /// The table of a deeper level whose range covers `user_key`.
    #[inline]
    fn table_for_key(&self, user_key: &[u8]) -> Option<&Arc<TableFile<T>>> {
        let index = self.search(user_key);
        let smallest = *self.smallest_prefixes.get(index)?;
        let table = &self.tables[index];
        let covers = match smallest.cmp(&key_prefix(user_key)) {
            Ordering::Less => true,
            Ordering::Equal => table.meta.smallest.user_key.as_slice() <= user_key,
            Ordering::Greater => false,
        };
        covers.then_some(table)
    }
}

/// The tables of the tree at one time.
pub(crate) struct Version<T> {
    levels: [Level<T>; limits::LEVELS],
}

impl<T> Version<T> {
    /// The version that a manifest describes. `open` opens its tables.
    pub(crate) fn open(
        state: &ManifestState,
        mut open: impl FnMut(&FileMeta) -> Result<Arc<TableFile<T>>>,
    ) -> Result<Version<T>> {
        let mut levels = Levels::default();
        for (tables, metas) in levels.iter_mut().zip(state.levels()) {
            *tables = metas.iter().map(&mut open).collect::<Result<Vec<_>>>()?;
        }
        Ok(Version::build(levels))
    }

    fn build(levels: Levels<Arc<TableFile<T>>>) -> Version<T> {
        let mut level = 0..;
        Version { levels: levels.map(|tables| Level::new(level.next().unwrap_or(0), tables)) }
    }

    /// The version after `edit`. `opened` holds the added tables, except those that move.
    ///
    /// # Errors
    /// [`ErrorKind::Corruption`] when the edit violates an invariant of the tree: it must not reach
    /// the manifest.
    pub(crate) fn apply(
        &self,
        edit: &VersionEdit,
        opened: &[Arc<TableFile<T>>],
    ) -> Result<Version<T>> {
        let mut tree = Tree::from_levels(array::from_fn(|level| self.levels[level].tables.clone()));
        tree.apply(edit, |meta, moved| {
            moved
                .or_else(|| opened.iter().find(|table| table.meta.num == meta.num).cloned())
                .ok_or_else(|| format!("an edit adds table {}, which is not open", meta.num.0))
        })
        .map_err(|problem| Error::new(ErrorKind::Corruption, problem))?;
        Ok(Version::build(tree.into_levels()))
    }

    /// The tables that `edit` removes from the tree and does not move.
    pub(crate) fn removed_by(&self, edit: &VersionEdit) -> Vec<Arc<TableFile<T>>> {
        let gone = edit.removed.iter().filter(|(_, num)| !edit.adds(*num));
        gone.filter_map(|&(level, num)| {
            self.tables(level).iter().find(|table| table.meta.num == num).cloned()
        })
        .collect()
    }

    /// The edit that adds all tables of this version, for a new manifest.
    pub(crate) fn snapshot_edit(
        &self,
        next_file_num: FileNum,
        last_seq: SeqNum,
        oldest_wal: FileNum,
    ) -> VersionEdit {
        let tables = self.levels.iter().enumerate().flat_map(|(level, tables)| {
            tables.tables.iter().map(move |table| (level, table.meta.clone()))
        });
        VersionEdit {
            next_file_num: Some(next_file_num),
            last_seq: Some(last_seq),
            oldest_wal: Some(oldest_wal),
            added: tables.collect(),
            ..VersionEdit::default()
        }
    }

    /// The tables of a level: newest first in level 0, by key in the others.
    pub(crate) fn tables(&self, level: usize) -> &[Arc<TableFile<T>>] {
        &self.levels[level].tables
    }

    pub(crate) fn all_tables(&self) -> impl Iterator<Item = &Arc<TableFile<T>>> {
        self.levels.iter().flat_map(|level| &level.tables)
    }

    pub(crate) fn totals(&self, level: usize) -> LevelTotals {
        self.levels[level].totals
    }

    /// The tables of level 0 whose range covers `user_key`, newest first.
    #[inline]
    pub(crate) fn newest_tables_for_key<'a>(
        &'a self,
        user_key: &'a [u8],
    ) -> impl Iterator<Item = &'a Arc<TableFile<T>>> {
        self.tables(0).iter().filter(move |table| table.meta.covers(user_key))
    }

    /// The table of each deeper level whose range covers `user_key`.
    #[inline]
    pub(crate) fn deeper_tables_for_key(
        &self,
        user_key: &[u8],
    ) -> [Option<&Arc<TableFile<T>>>; limits::LEVELS - 1] {
        array::from_fn(|index| self.levels[index + 1].table_for_key(user_key))
    }

    /// Index of the first table of a deeper level that may contain entries at or after `target`.
    pub(crate) fn first_table_at(&self, level: usize, target: InternalKeyRef<'_>) -> usize {
        debug_assert!(level > 0, "tables of level 0 overlap");
        let index = self.levels[level].search(target.user_key);
        let before = |table: &Arc<TableFile<T>>| table.meta.largest.as_ref() < target;
        index + usize::from(self.tables(level).get(index).is_some_and(before))
    }
}

#[cfg(test)]
mod tests;
