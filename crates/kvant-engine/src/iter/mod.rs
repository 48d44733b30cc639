//! Iterators over internal keys.
//!
//! [`MergeIter`] merges sources: memtables, tables of level 0, a [`LevelIter`] per deeper level.
//! [`VisibleIter`] returns the records visible at a sequence number; [`CompactionIter`] returns the
//! entries that some snapshot can still see.

mod compaction;
mod level;
mod merge;
mod paced;
mod slice;
#[cfg(test)]
mod test_support;
mod visible;

pub(crate) use compaction::{CompactionIter, Horizon, KeptEntry};
pub(crate) use level::{LevelIter, TableRun};
pub(crate) use merge::{MergeIter, MergeSource};
pub(crate) use paced::PacedIter;
pub(crate) use slice::SliceIter;
pub use visible::Record;
pub(crate) use visible::VisibleIter;
