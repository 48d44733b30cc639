//! Merges sorted sources.
//!
//! The sources are in a binary heap with the smallest key on top. Each slot caches the *head* of
//! its source's key, so most comparisons access neither the source nor the key. Advancing a source
//! that remains the smallest takes two comparisons, whatever the number of sources.
//!
//! The head is the [`key_prefix`] of what follows `base`, a prefix of the smallest key. The base is
//! chosen so that heads cover the bytes in which neighbouring keys differ. A key without that
//! prefix is after all keys that have it, and has the largest head. A base that the smallest key no
//! longer has, or that leaves many heads equal, is replaced.
//!
//! Invariants:
//! 1. `heap` contains exactly the valid sources, each with the head of its key;
//! 2. when `base` was chosen the smallest key began with it, and keys only grow until the next
//!    position: a key without it is after those that have it;
//! 3. after an error the heap is empty.

use crate::cursor::{InternalIterator, StoredBlock};
use crate::format::{InternalKeyRef, common_prefix_bytes, key_prefix};
use kvant_base::Result;
use std::cmp::Ordering;

pub(crate) type MergeSource = Box<dyn InternalIterator>;

/// Bytes of a head before the first in which the two smallest keys differ: for keys that come soon.
const MARGIN_BYTES: usize = 2;
const HEAD_WITHOUT_BASE: u64 = u64::MAX;
/// Equal heads that were compared before the next base is chosen.
const TIES_MAX: u32 = 32;

/// Merges sources by internal key, and equal keys by the order of the sources. Keys can be equal
/// after a recovery, which may write the entries of a log to a table again, and after a repair
/// without a manifest, with different values (decision 0051).
pub(crate) struct MergeIter<S = MergeSource> {
    sources: Vec<S>,
    heap: Vec<Slot>,
    base: Vec<u8>,
    /// Equal heads since the base was chosen.
    ties: u32,
}

#[derive(Clone, Copy)]
struct Slot {
    head: u64,
    source: usize,
}

impl MergeIter {
    /// A merge of `sources` of several types, the newest first.
    pub(crate) fn new(sources: Vec<MergeSource>) -> MergeIter {
        MergeIter::of(sources)
    }
}

impl<S: InternalIterator> MergeIter<S> {
    /// A merge of `sources`, the newest first.
    pub(crate) fn of(sources: Vec<S>) -> MergeIter<S> {
        let heap = Vec::with_capacity(sources.len());
        MergeIter { sources, heap, base: Vec::new(), ties: 0 }
    }

    /// Positions every source and rebuilds the heap.
    fn position(&mut self, mut seek: impl FnMut(&mut S) -> Result<()>) -> Result<()> {
        self.heap.clear();
        for source in &mut self.sources {
            seek(source)?;
        }
        for (source, cursor) in self.sources.iter().enumerate() {
            if cursor.valid() {
                self.heap.push(Slot { head: key_prefix(cursor.key().user_key), source });
            }
        }
        for index in (0..self.heap.len() / 2).rev() {
            self.sift_down(index);
        }
        self.choose_base();
        Ok(())
    }

    /// Chooses the base for the current keys. The order of the heap stays.
    #[cold]
    fn choose_base(&mut self) {
        let MergeIter { sources, heap, base, ties } = self;
        *ties = 0;
        base.clear();
        let Some((smallest, others)) = heap.split_first() else { return };
        let key_of = |slot: &Slot| sources[slot.source].key().user_key;
        let smallest = key_of(smallest);
        // The second smallest key has most in common with it.
        let common = others.iter().map(|slot| common_prefix_bytes(smallest, key_of(slot))).max();
        let base_bytes = common.unwrap_or(0).saturating_sub(MARGIN_BYTES);
        base.extend_from_slice(&smallest[..base_bytes]);
        for slot in heap {
            slot.head = head_of(base, sources[slot.source].key().user_key);
        }
    }

    #[inline]
    fn less(&mut self, a: Slot, b: Slot) -> bool {
        if a.head != b.head {
            return a.head < b.head;
        }
        self.ties += 1;
        let keys = self.sources[a.source].key().cmp(&self.sources[b.source].key());
        keys.then(a.source.cmp(&b.source)) == Ordering::Less
    }

    #[inline]
    fn sift_down(&mut self, mut index: usize) {
        let slot = self.heap[index];
        loop {
            let mut child = 2 * index + 1;
            if child >= self.heap.len() {
                break;
            }
            if child + 1 < self.heap.len() && self.less(self.heap[child + 1], self.heap[child]) {
                child += 1;
            }
            if !self.less(self.heap[child], slot) {
                break;
            }
            self.heap[index] = self.heap[child];
            index = child;
        }
        self.heap[index] = slot;
    }

    #[inline]
    fn top(&self) -> &S {
        &self.sources[self.heap[0].source]
    }
}

#[inline]
fn head_of(base: &[u8], user_key: &[u8]) -> u64 {
    user_key.strip_prefix(base).map_or(HEAD_WITHOUT_BASE, key_prefix)
}

impl<S: InternalIterator> InternalIterator for MergeIter<S> {
    #[inline]
    fn valid(&self) -> bool {
        !self.heap.is_empty()
    }

    fn seek_to_first(&mut self) -> Result<()> {
        self.position(|source| source.seek_to_first())
    }

    fn seek(&mut self, target: InternalKeyRef<'_>) -> Result<()> {
        self.position(|source| source.seek(target))
    }

    #[inline]
    fn next(&mut self) -> Result<()> {
        let source = &mut self.sources[self.heap[0].source];
        if let Err(error) = source.next() {
            self.heap.clear();
            return Err(error);
        }
        if source.valid() {
            self.heap[0].head = head_of(&self.base, source.key().user_key);
        } else {
            self.heap.swap_remove(0);
        }
        if !self.heap.is_empty() {
            self.sift_down(0);
            let has_left = self.heap[0].head == HEAD_WITHOUT_BASE && !self.base.is_empty();
            if has_left || self.ties >= TIES_MAX {
                self.choose_base();
            }
        }
        Ok(())
    }

    #[inline]
    fn key(&self) -> InternalKeyRef<'_> {
        self.top().key()
    }

    #[inline]
    fn value(&self) -> &[u8] {
        self.top().value()
    }

    fn own_block(&self) -> Option<StoredBlock<'_>> {
        self.top().own_block()
    }
}

#[cfg(test)]
mod tests;
