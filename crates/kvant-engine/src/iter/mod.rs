//! Iterators over internal keys.
//!
//! [`MergeIter`] merges sources: memtables, tables of level 0, a [`LevelIter`] per deeper level.
//! [`VisibleIter`] returns the records visible at a sequence number; [`CompactionIter`] returns the
//! entries that some snapshot can still see.

mod compaction;
mod level;
mod merge;
mod slice;
#[cfg(test)]
mod test_support;
mod visible;

pub(crate) use compaction::{CompactionIter, Horizon, KeptEntry};
pub(crate) use level::{LevelIter, TableRun};
pub(crate) use merge::MergeIter;
pub(crate) use slice::SliceIter;
pub(crate) use visible::VisibleIter;

use crate::format::InternalKeyRef;
use kvant_base::Result;

/// A cursor over internal keys in their order. A new one is not positioned: seek first.
///
/// After an error the cursor is not valid and stays so until it is positioned anew.
pub(crate) trait InternalIterator: Send {
    /// Whether the cursor stands on an entry.
    fn valid(&self) -> bool;
    /// Positions at the first entry.
    fn seek_to_first(&mut self) -> Result<()>;
    /// Positions at the first entry at or after `target`.
    fn seek(&mut self, target: InternalKeyRef<'_>) -> Result<()>;
    /// Moves to the next entry. The cursor must be valid.
    fn next(&mut self) -> Result<()>;
    /// The entry's key. The cursor must be valid.
    fn key(&self) -> InternalKeyRef<'_>;
    /// The entry's value as stored (with the expiry in front where the kind says so). The cursor
    /// must be valid.
    fn value(&self) -> &[u8];
}

impl InternalIterator for Box<dyn InternalIterator> {
    fn valid(&self) -> bool {
        (**self).valid()
    }

    fn seek_to_first(&mut self) -> Result<()> {
        (**self).seek_to_first()
    }

    fn seek(&mut self, target: InternalKeyRef<'_>) -> Result<()> {
        (**self).seek(target)
    }

    fn next(&mut self) -> Result<()> {
        (**self).next()
    }

    fn key(&self) -> InternalKeyRef<'_> {
        (**self).key()
    }

    fn value(&self) -> &[u8] {
        (**self).value()
    }
}
