//! The memtable: recent writes in key order, in memory, until they are flushed to a table.
//!
//! Entries in an arena, with a hash index and a skip list. None is ever moved or removed, and all
//! memory is freed at once. Entries are put in key order when a range reads it, and sorted for the
//! flush. Point reads do not need it.
//!
//! - [`arena`]: memory that is allocated piece by piece and freed as a whole, in [`chunks`] that
//!   memtables share;
//! - [`node`]: the layout of an entry in that memory; [`index`]: the way to a key without a search;
//! - [`skiplist`]: the key order; [`order`]: puts entries there on demand;
//! - [`inserter`]: makes entries; [`entries`]: finds them.
//!
//! Invariants:
//! 1. an internal key is inserted at most once, and of one user key the oldest version first;
//! 2. an insert that has returned is seen by every read that starts later. Which entries a reader
//!    should see is decided by sequence number, not by the memtable;
//! 3. all memory is counted to [`kvant_base::Consumer::Memtables`] from allocation to drop.
//!
//! Threads: a memtable has one [`MemtableWriter`], which inserts through `&mut`; [`Memtable`] and
//! its iterators are for any thread.

#[expect(unsafe_code, reason = "hands out uninitialised memory")]
mod arena;
mod chunks;
#[expect(unsafe_code, reason = "gives nodes a lifetime")]
mod entries;
mod index;
mod inserter;
#[expect(unsafe_code, reason = "an entry has a variable size")]
mod node;
#[expect(unsafe_code, reason = "links nodes by atomic pointers")]
mod order;
#[expect(unsafe_code, reason = "follows atomic pointers")]
mod skiplist;

pub(crate) use chunks::ChunkPool;
pub(crate) use entries::MemtableIter;

use crate::cursor::InternalIterator;
use crate::format::value::ValueTaker;
use crate::format::{InternalKeyRef, SeqNum, ValueKind};
use bytes::Bytes;
use entries::{Entries, SortedIter};
use inserter::{BATCH_LEN_MAX, Inserter};
use kvant_base::limits::VALUE_BYTES_COPIED_MAX;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Header, links and alignment of an entry, on average.
const ENTRY_OVERHEAD_BYTES: u64 = 32;
/// Entries that tell of what size the next ones are. Fewer do if they fill one part in
/// [`TOLD_PARTS_MIN`] of a memtable.
const ENTRIES_TOLD_MIN: u64 = 1024;
const TOLD_PARTS_MIN: u64 = 4;

/// Recent writes in key order.
pub(crate) struct Memtable {
    entries: Arc<Entries>,
    // Only the writer changes these.
    entry_count: AtomicU64,
    data_bytes: AtomicU64,
    seq_min: AtomicU64,
    seq_max: AtomicU64,
}

impl Memtable {
    /// Fetches what [`Memtable::get`] reads first.
    #[inline]
    pub(crate) fn prefetch(&self, hash: u64) {
        self.entries.prefetch(hash);
    }

    /// The newest version of `user_key` that is visible at `visible_at`, a tombstone included: its
    /// number, kind and stored value. `hash` is [`crate::format::key_hash`] of the key.
    #[inline]
    pub(crate) fn get(
        &self,
        user_key: &[u8],
        hash: u64,
        visible_at: SeqNum,
    ) -> Option<(SeqNum, ValueKind, &[u8])> {
        let node = self.entries.get(user_key, hash, visible_at)?;
        let key = node.key();
        let kind = key.kind().expect("only keys of a known kind are inserted");
        Some((key.seq(), kind, node.value()))
    }

    /// Gives a value of this memtable: a short one to copy; a long one shares its memory, and keeps
    /// it beyond the end of the memtable.
    #[inline]
    pub(crate) fn give<T: ValueTaker>(&self, value: &[u8], to: &mut T) -> T::Value {
        if value.len() <= VALUE_BYTES_COPIED_MAX {
            return to.copy(value);
        }
        let pinned = self.entries.pin(value);
        to.share(pinned.unwrap_or_else(|| Bytes::copy_from_slice(value)))
    }

    /// An iterator over all entries. It keeps the memory alive, and may or may not see what is
    /// inserted after its creation.
    pub(crate) fn iter(&self) -> MemtableIter {
        MemtableIter::new(Arc::clone(&self.entries))
    }

    /// Whether it was read in key order.
    pub(crate) fn is_read_in_order(&self) -> bool {
        self.entries.is_read_in_order()
    }

    /// Entries that wait for a place in key order.
    pub(crate) fn unordered_count(&self) -> u64 {
        self.entries.order.unordered_count() as u64
    }

    /// About how often [`Memtable::sorted`] gives way.
    pub(crate) fn order_step_count(&self) -> usize {
        self.entries.order.step_count()
    }

    /// A cursor over the entries of a sealed memtable, for its flush. They are put in order first:
    /// `give_way` is called after each step of that, about every 0.1 ms.
    pub(crate) fn sorted(&self, give_way: &mut dyn FnMut()) -> Box<dyn InternalIterator> {
        match self.entries.order.sort(give_way) {
            Some(sorted) => Box::new(SortedIter::new(Arc::clone(&self.entries), sorted)),
            None => {
                self.entries.order.put_in_order(give_way);
                Box::new(self.iter())
            }
        }
    }

    /// Memory allocated, unused parts of chunks included.
    pub(crate) fn memory_bytes(&self) -> u64 {
        self.entries.memory_bytes()
    }

    pub(crate) fn entry_count(&self) -> u64 {
        self.entry_count.load(Ordering::Relaxed)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.order.is_empty()
    }

    /// About how many entries fit into a memtable of `bytes` if they are as those of this one.
    /// `None` when these are too few to tell.
    pub(crate) fn entries_in(&self, bytes: u64) -> Option<u64> {
        let (entry_count, data_bytes) = (self.entry_count(), self.data_bytes());
        let entry_bytes = ENTRY_OVERHEAD_BYTES + data_bytes / entry_count.max(1);
        let tells = entry_count >= ENTRIES_TOLD_MIN || data_bytes >= bytes / TOLD_PARTS_MIN;
        tells.then_some(bytes / entry_bytes)
    }

    /// Bytes of user keys and stored values.
    pub(crate) fn data_bytes(&self) -> u64 {
        self.data_bytes.load(Ordering::Relaxed)
    }

    /// The smallest and the largest sequence number; `None` while there is no entry.
    pub(crate) fn seq_range(&self) -> Option<(SeqNum, SeqNum)> {
        let (min, max) =
            (self.seq_min.load(Ordering::Relaxed), self.seq_max.load(Ordering::Relaxed));
        (min <= max).then_some((SeqNum(min), SeqNum(max)))
    }
}

pub(crate) struct MemtableWriter {
    memtable: Arc<Memtable>,
    inserter: Inserter,
}

impl MemtableWriter {
    /// A new memtable whose memory comes from `chunks`, for about `target_bytes` and at most
    /// about `entries_max`. It may grow beyond both. `keeps_order`: whether ranges are expected.
    pub(crate) fn new(
        chunks: &Arc<ChunkPool>,
        target_bytes: usize,
        entries_max: usize,
        keeps_order: bool,
    ) -> MemtableWriter {
        let inserter = Inserter::new(chunks, target_bytes, entries_max, keeps_order);
        let memtable = Arc::new(Memtable {
            entries: Arc::clone(inserter.entries()),
            entry_count: AtomicU64::new(0),
            data_bytes: AtomicU64::new(0),
            seq_min: AtomicU64::new(u64::MAX),
            seq_max: AtomicU64::new(0),
        });
        MemtableWriter { memtable, inserter }
    }

    pub(crate) fn memtable(&self) -> &Arc<Memtable> {
        &self.memtable
    }

    /// Inserts entries, of one user key the oldest first. The same internal key must not be
    /// inserted twice.
    pub(crate) fn insert<'a>(
        &mut self,
        mut entries: impl Iterator<Item = (InternalKeyRef<'a>, &'a [u8])>,
    ) {
        let no_entry = (InternalKeyRef { user_key: &[], trailer: 0 }, &[][..]);
        let mut batch = [no_entry; BATCH_LEN_MAX];
        let (mut entry_count, mut data_bytes, mut seq_min, mut seq_max) = (0, 0, u64::MAX, 0);
        loop {
            let mut len = 0;
            for (slot, (key, value)) in batch.iter_mut().zip(entries.by_ref()) {
                data_bytes += (key.user_key.len() + value.len()) as u64;
                (seq_min, seq_max) = (seq_min.min(key.seq().0), seq_max.max(key.seq().0));
                *slot = (key, value);
                len += 1;
            }
            self.inserter.insert(&batch[..len]);
            entry_count += len as u64;
            if len < BATCH_LEN_MAX {
                break;
            }
        }
        let memtable = &*self.memtable;
        let add = |counter: &AtomicU64, count: u64| {
            counter.store(counter.load(Ordering::Relaxed) + count, Ordering::Relaxed);
        };
        add(&memtable.entry_count, entry_count);
        add(&memtable.data_bytes, data_bytes);
        let seq_min = seq_min.min(memtable.seq_min.load(Ordering::Relaxed));
        let seq_max = seq_max.max(memtable.seq_max.load(Ordering::Relaxed));
        memtable.seq_min.store(seq_min, Ordering::Relaxed);
        memtable.seq_max.store(seq_max, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests;
