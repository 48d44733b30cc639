//! Snapshots: sequence numbers that compaction must keep readable.
//!
//! A snapshot pins no memtable and no table: compaction keeps, for every registered number, the
//! newest version at or below it.

use super::core::Core;
use super::range::RangeIter;
use crate::format::SeqNum;
use bytes::Bytes;
use kvant_base::Result;
use kvant_base::lock::NamedMutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The registered sequence numbers.
pub(crate) struct SnapshotList {
    open: NamedMutex<Open>,
}

#[derive(Default)]
struct Open {
    /// Sequence number and identity, to the monotonic time of registration in nanoseconds.
    since_ns: BTreeMap<(SeqNum, u64), u64>,
    last_identity: u64,
}

impl SnapshotList {
    pub(crate) fn new() -> SnapshotList {
        SnapshotList { open: NamedMutex::new("snapshots", Open::default()) }
    }

    /// What a compaction that starts now must keep readable, ascending. Snapshots registered later
    /// are at least as new as every write in a table, because only visible writes are flushed.
    pub(crate) fn seqs(&self) -> Vec<SeqNum> {
        let mut seqs: Vec<_> = self.open.lock().since_ns.keys().map(|&(seq, _)| seq).collect();
        seqs.dedup();
        seqs
    }

    /// How many are open, and since when the oldest is.
    pub(crate) fn count_and_oldest_ns(&self) -> (u64, Option<u64>) {
        let open = self.open.lock();
        (open.since_ns.len() as u64, open.since_ns.values().copied().min())
    }
}

/// A sequence number that stays readable until this is dropped.
pub(crate) struct PinnedSeq {
    core: Arc<Core>,
    pub(crate) seq: SeqNum,
    identity: u64,
}

impl PinnedSeq {
    /// Registers the newest visible sequence number.
    pub(crate) fn now(core: &Arc<Core>) -> PinnedSeq {
        let mut open = core.snapshots.open.lock();
        // Read under the lock: a compaction that lists the snapshots before this one has only
        // inputs that are visible already.
        let seq = SeqNum(core.visible_seq.load(Ordering::Acquire));
        open.last_identity += 1;
        let identity = open.last_identity;
        open.since_ns.insert((seq, identity), core.env.clock.monotonic_ns());
        drop(open);
        PinnedSeq { core: Arc::clone(core), seq, identity }
    }

    pub(crate) fn core(&self) -> &Arc<Core> {
        &self.core
    }
}

impl Drop for PinnedSeq {
    fn drop(&mut self) {
        self.core.snapshots.open.lock().since_ns.remove(&(self.seq, self.identity));
    }
}

/// A consistent view of the database that stays as it is whatever is written later. Expiry still
/// happens: an expired record is gone from every snapshot. Holding one keeps the space of what was
/// overwritten or deleted since.
pub struct Snapshot {
    pinned: Arc<PinnedSeq>,
}

impl Snapshot {
    pub(crate) fn new(core: &Arc<Core>) -> Snapshot {
        Snapshot { pinned: Arc::new(PinnedSeq::now(core)) }
    }

    /// The value that `key` had; `None` when it was absent or deleted, or has expired.
    ///
    /// # Errors
    /// `Corruption` or `Io` when a block cannot be read; `Closed`.
    pub fn get(&self, key: &[u8]) -> Result<Option<Bytes>> {
        let core = self.pinned.core();
        core.check_usable()?;
        core.get_at(&core.views.load(), key, self.pinned.seq)
    }

    /// Records with `start <= key`, and `key < end` where an end is given, in key order.
    ///
    /// # Errors
    /// As [`Snapshot::get`].
    pub fn range(&self, start: &[u8], end: Option<&[u8]>) -> Result<RangeIter> {
        RangeIter::open(Arc::clone(&self.pinned), start, end)
    }
}
