//! Snapshots: consistent views that stay as they are.

use super::Tree;
use super::pinned_seq::PinnedSeq;
use super::range::RangeIter;
use crate::format::value::Owned;
use crate::table::{ReadTrace, Wait};
use bytes::Bytes;
use kvant_base::Result;
use std::sync::Arc;

/// A consistent view of the database, which later writes do not change. Records still expire: an
/// expired record is absent from every snapshot. A snapshot keeps the space of what was overwritten
/// or deleted since.
pub struct Snapshot {
    tree: Arc<Tree>,
    pinned: Arc<PinnedSeq>,
}

impl Snapshot {
    pub(crate) fn new(tree: &Arc<Tree>) -> Snapshot {
        Snapshot { tree: Arc::clone(tree), pinned: tree.pin() }
    }

    /// The value that `key` had; `None` when it was absent or deleted, or has expired.
    pub fn get(&self, key: &[u8]) -> Result<Option<Bytes>> {
        self.tree.context.check_open()?;
        let view = self.tree.views.load();
        let mut trace = ReadTrace::default();
        let seq = self.pinned.seq;
        self.tree.look_up_at(&view, seq, key, Wait::ALWAYS, &mut trace, Owned)?.into_value()
    }

    /// Records with `start <= key`, and `key < end` where an end is given, in key order.
    pub fn range(&self, start: &[u8], end: Option<&[u8]>) -> Result<RangeIter> {
        RangeIter::open(&self.tree, Arc::clone(&self.pinned), start, end)
    }
}
