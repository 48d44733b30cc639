//! The memtable: recent writes in key order, in memory, until they are flushed to a table.
//!
//! A concurrent skip list in an arena. Writers insert side by side, readers never take a lock,
//! nothing is ever moved or removed, and the whole is freed at once.
//!
//! - [`arena`]: memory that is handed out piece by piece and freed as a whole.
//! - [`skiplist`]: the list; [`index`]: the way to a key without a search. [`arena`] and
//!   [`skiplist`] hold the engine's only `unsafe` code; what they offer is safe.
//!
//! Invariants:
//! 1. an internal key is inserted at most once;
//! 2. an insert that has returned is seen by every read that starts later; which of them a reader
//!    should see is decided by sequence number, not by the memtable;
//! 3. all memory is counted to [`Consumer::Memtables`] from allocation to drop.
//!
//! Threads: any number of inserters, readers and iterators at once. Counters lag behind an
//! [`Inserter`] that has not been dropped.

#[expect(unsafe_code, reason = "hands out uninitialised memory that several threads fill")]
mod arena;
mod index;
#[expect(unsafe_code, reason = "links nodes of variable size by atomic pointers")]
mod skiplist;

use crate::format::{InternalKeyRef, SeqNum, ValueKind};
use crate::iter::InternalIterator;
use bytes::Bytes;
use kvant_base::limits::VALUE_BYTES_COPIED_MAX;
use kvant_base::{Consumer, MemoryBudget, Result};
use skiplist::{ABREAST_MAX, Cursor, SkipList, Splice};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Recent writes in key order.
pub(crate) struct Memtable {
    list: Arc<SkipList>,
    entry_count: AtomicU64,
    data_bytes: AtomicU64,
    seq_min: AtomicU64,
    seq_max: AtomicU64,
}

impl Memtable {
    /// An empty memtable whose memory is counted in `memory`, for about `target_bytes` and at most
    /// about `entries_max`. It may grow beyond.
    pub(crate) fn new(
        memory: &Arc<MemoryBudget>,
        target_bytes: usize,
        entries_max: usize,
    ) -> Memtable {
        Memtable {
            list: Arc::new(SkipList::new(
                memory.reserve(Consumer::Memtables, 0),
                target_bytes,
                entries_max,
            )),
            entry_count: AtomicU64::new(0),
            data_bytes: AtomicU64::new(0),
            seq_min: AtomicU64::new(u64::MAX),
            seq_max: AtomicU64::new(0),
        }
    }

    /// Inserts one entry. For a batch, [`Memtable::inserter`] is cheaper.
    pub(crate) fn insert(&self, key: InternalKeyRef<'_>, stored_value: &[u8]) {
        self.inserter().insert(key, stored_value);
    }

    /// A handle for inserting a batch.
    pub(crate) fn inserter(&self) -> Inserter<'_> {
        Inserter {
            memtable: self,
            splice: self.list.splice(),
            entry_count: 0,
            data_bytes: 0,
            seq_min: u64::MAX,
            seq_max: 0,
        }
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
        let node = self.list.get(user_key, hash, visible_at)?;
        let key = node.key();
        let kind = key.kind().expect("only keys of a known kind are inserted");
        Some((key.seq(), kind, node.value()))
    }

    /// A value of this memtable: a short one is copied, a long one keeps the part of the memory
    /// that it lies in, also beyond the end of the memtable.
    #[inline]
    pub(crate) fn value_bytes(&self, value: &[u8]) -> Bytes {
        let pinned = (value.len() > VALUE_BYTES_COPIED_MAX).then(|| self.list.pin(value)).flatten();
        pinned.unwrap_or_else(|| Bytes::copy_from_slice(value))
    }

    /// An iterator over all entries. It keeps the memory alive, and may or may not see what is
    /// inserted after its creation.
    pub(crate) fn iter(&self) -> MemtableIter {
        MemtableIter { cursor: Cursor::new(Arc::clone(&self.list)) }
    }

    /// Memory allocated, free parts of chunks included.
    pub(crate) fn memory_bytes(&self) -> u64 {
        self.list.memory_bytes()
    }

    pub(crate) fn entry_count(&self) -> u64 {
        self.entry_count.load(Ordering::Relaxed)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_empty()
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

/// Inserts a batch: remembers where the last entry went, and counts once, when dropped.
pub(crate) struct Inserter<'a> {
    memtable: &'a Memtable,
    splice: Splice<'a>,
    entry_count: u64,
    data_bytes: u64,
    seq_min: u64,
    seq_max: u64,
}

impl Inserter<'_> {
    /// Begins to fetch what an insert of `user_key` will need, wherever it goes: for who inserts
    /// several.
    #[inline]
    pub(crate) fn prefetch(&self, user_key: &[u8]) {
        self.splice.prefetch(user_key);
    }

    /// Inserts one entry. The same internal key must not be inserted twice.
    pub(crate) fn insert(&mut self, key: InternalKeyRef<'_>, stored_value: &[u8]) {
        self.count(key, stored_value);
        self.splice.insert(key, stored_value);
    }

    /// As one insert each, but the cache misses of several overlap.
    pub(crate) fn insert_all<'a>(
        &mut self,
        mut entries: impl Iterator<Item = (InternalKeyRef<'a>, &'a [u8])>,
    ) {
        let nothing = (InternalKeyRef { user_key: &[], trailer: 0 }, &[][..]);
        let mut abreast = [nothing; ABREAST_MAX];
        loop {
            let mut count = 0;
            for (slot, entry) in abreast.iter_mut().zip(entries.by_ref()) {
                *slot = entry;
                count += 1;
            }
            let abreast = &abreast[..count];
            abreast.iter().for_each(|(key, value)| self.count(*key, value));
            if abreast.is_sorted_by(|(a, _), (b, _)| a < b) {
                // Mostly each belongs directly behind the one before: nothing to search for.
                abreast.iter().for_each(|(key, value)| self.splice.insert(*key, value));
            } else {
                self.splice.insert_abreast(abreast);
            }
            if count < ABREAST_MAX {
                return;
            }
        }
    }

    fn count(&mut self, key: InternalKeyRef<'_>, stored_value: &[u8]) {
        self.entry_count += 1;
        self.data_bytes += (key.user_key.len() + stored_value.len()) as u64;
        self.seq_min = self.seq_min.min(key.seq().0);
        self.seq_max = self.seq_max.max(key.seq().0);
    }
}

impl Drop for Inserter<'_> {
    fn drop(&mut self) {
        if self.entry_count > 0 {
            let memtable = self.memtable;
            memtable.entry_count.fetch_add(self.entry_count, Ordering::Relaxed);
            memtable.data_bytes.fetch_add(self.data_bytes, Ordering::Relaxed);
            memtable.seq_min.fetch_min(self.seq_min, Ordering::Relaxed);
            memtable.seq_max.fetch_max(self.seq_max, Ordering::Relaxed);
        }
    }
}

/// A cursor over a memtable, which it keeps alive.
pub(crate) struct MemtableIter {
    cursor: Cursor,
}

impl InternalIterator for MemtableIter {
    fn valid(&self) -> bool {
        self.cursor.node().is_some()
    }

    fn seek_to_first(&mut self) -> Result<()> {
        self.cursor.seek_to_first();
        Ok(())
    }

    fn seek(&mut self, target: InternalKeyRef<'_>) -> Result<()> {
        self.cursor.seek(target);
        Ok(())
    }

    fn next(&mut self) -> Result<()> {
        self.cursor.next();
        Ok(())
    }

    fn key(&self) -> InternalKeyRef<'_> {
        self.cursor.node().expect("the cursor is valid").key()
    }

    fn value(&self) -> &[u8] {
        self.cursor.node().expect("the cursor is valid").value()
    }
}

#[cfg(test)]
mod tests;
