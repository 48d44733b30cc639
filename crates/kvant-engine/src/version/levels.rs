//! The levels of a tree, of descriptions read from a manifest or of open tables.
//!
//! Invariants:
//! 1. A file number is in the tree at most once.
//! 2. Level 0 is sorted newest first: by largest sequence number, then by file number, both
//!    descending.
//! 3. Deeper levels are sorted by smallest key, and no two tables of a level share a user key: all
//!    versions of a key in a level are in one table.

use super::{FileMeta, VersionEdit};
use crate::format::{FileNum, SeqNum};
use kvant_base::limits;
use std::cmp::Reverse;
use std::collections::HashSet;

/// One list of tables per level.
pub(crate) type Levels<F> = [Vec<F>; limits::LEVELS];

pub(crate) trait HasMeta {
    fn meta(&self) -> &FileMeta;
}

impl HasMeta for FileMeta {
    fn meta(&self) -> &FileMeta {
        self
    }
}

#[derive(Clone, Debug)]
pub(super) struct Tree<F> {
    levels: Levels<F>,
    nums: HashSet<FileNum>,
}

impl<F: HasMeta> Tree<F> {
    pub(super) fn empty() -> Tree<F> {
        Tree { levels: Default::default(), nums: HashSet::new() }
    }

    /// A tree of levels that satisfy the invariants.
    pub(super) fn from_levels(levels: Levels<F>) -> Tree<F> {
        let nums = levels.iter().flatten().map(|table| table.meta().num).collect();
        Tree { levels, nums }
    }

    pub(super) fn levels(&self) -> &Levels<F> {
        &self.levels
    }

    pub(super) fn into_levels(self) -> Levels<F> {
        self.levels
    }

    /// Applies `edit`. `make` returns the table for an added description; it receives the table if
    /// the edit moves it. The error says what is wrong; the tree must not be used after it.
    pub(super) fn apply(
        &mut self,
        edit: &VersionEdit,
        mut make: impl FnMut(&FileMeta, Option<F>) -> Result<F, String>,
    ) -> Result<(), String> {
        let mut taken = Vec::with_capacity(edit.removed.len());
        for &(level, num) in &edit.removed {
            let tables = &mut self.levels[level];
            let index =
                tables.iter().position(|table| table.meta().num == num).ok_or_else(|| {
                    format!("an edit removes table {} from level {level}, where it is not", num.0)
                })?;
            taken.push(tables.remove(index));
            self.nums.remove(&num);
        }
        for (level, meta) in &edit.added {
            let moved = taken.iter().position(|table| table.meta().num == meta.num);
            let table = make(meta, moved.map(|index| taken.swap_remove(index)))?;
            self.insert(*level, table)?;
        }
        Ok(())
    }

    pub(super) fn insert(&mut self, level: usize, table: F) -> Result<(), String> {
        let num = table.meta().num;
        if !self.nums.insert(num) {
            return Err(format!("an edit adds table {}, which exists", num.0));
        }
        let tables = &mut self.levels[level];
        let index = if level == 0 {
            tables.partition_point(|other| age_order(other.meta()) < age_order(table.meta()))
        } else {
            let first = &table.meta().smallest.user_key;
            let index = tables.partition_point(|other| other.meta().smallest.user_key < *first);
            let after = tables
                .get(index)
                .filter(|next| next.meta().smallest.user_key <= table.meta().largest.user_key);
            let before = tables[..index]
                .last()
                .filter(|previous| previous.meta().largest.user_key >= *first);
            if let Some(other) = after.or(before) {
                let other = other.meta().num.0;
                return Err(format!("tables {} and {other} of level {level} overlap", num.0));
            }
            index
        };
        tables.insert(index, table);
        Ok(())
    }
}

/// Newer tables compare less.
fn age_order(meta: &FileMeta) -> Reverse<(SeqNum, FileNum)> {
    Reverse((meta.seq_max, meta.num))
}
