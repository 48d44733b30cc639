//! Sequence numbers that compaction must keep readable.
//!
//! A pinned number keeps neither memtables nor tables: compaction keeps, for every registered
//! number, the newest version at or below it.

use crate::format::SeqNum;
use kvant_base::lock::NamedMutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The registered sequence numbers.
pub(crate) struct PinnedSeqs {
    open: NamedMutex<Open>,
}

#[derive(Default)]
struct Open {
    /// Sequence number and identity, to the monotonic time of registration in nanoseconds.
    since_ns: BTreeMap<(SeqNum, u64), u64>,
    last_identity: u64,
}

impl PinnedSeqs {
    pub(crate) fn new() -> Arc<PinnedSeqs> {
        Arc::new(PinnedSeqs { open: NamedMutex::new("snapshots", Open::default()) })
    }

    /// Registers the newest visible sequence number.
    pub(crate) fn pin(self: &Arc<Self>, visible_seq: &AtomicU64, now_ns: u64) -> PinnedSeq {
        let mut open = self.open.lock();
        // Read under the lock: a compaction that lists the numbers before this one is there has
        // only inputs that are visible already.
        let seq = SeqNum(visible_seq.load(Ordering::Acquire));
        open.last_identity += 1;
        let identity = open.last_identity;
        open.since_ns.insert((seq, identity), now_ns);
        drop(open);
        PinnedSeq { list: Arc::clone(self), seq, identity }
    }

    /// The numbers that a compaction which starts now must keep readable, ascending. Numbers
    /// registered later are at least as new as every write in a table, because only visible writes
    /// are flushed.
    pub(crate) fn seqs(&self) -> Vec<SeqNum> {
        let mut seqs: Vec<_> = self.open.lock().since_ns.keys().map(|&(seq, _)| seq).collect();
        seqs.dedup();
        seqs
    }

    /// The number of registrations, and the time of the oldest.
    pub(crate) fn count_and_oldest_ns(&self) -> (u64, Option<u64>) {
        let open = self.open.lock();
        (open.since_ns.len() as u64, open.since_ns.values().copied().min())
    }
}

/// A sequence number that stays readable until this is dropped.
pub(crate) struct PinnedSeq {
    list: Arc<PinnedSeqs>,
    pub(crate) seq: SeqNum,
    identity: u64,
}

impl Drop for PinnedSeq {
    fn drop(&mut self) {
        self.list.open.lock().since_ns.remove(&(self.seq, self.identity));
    }
}
