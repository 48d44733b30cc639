//! Merges sorted sources.
//!
//! The sources are in a binary heap with the smallest key on top. Each slot caches the
//! [`key_prefix`] of its source's key, so most comparisons access neither the source nor the key.
//! Advancing a source that remains the smallest takes two comparisons, whatever the number of
//! sources.
//!
//! Invariants:
//! 1. `heap` contains exactly the valid sources, each with the prefix of its key;
//! 2. after an error the heap is empty.

use crate::cursor::InternalIterator;
use crate::format::{InternalKeyRef, key_prefix};
use kvant_base::Result;
use std::cmp::Ordering;

pub(crate) type MergeSource = Box<dyn InternalIterator>;

/// Merges sources by internal key, and equal keys by the order of the sources. Keys can be equal
/// after a recovery, which may write the entries of a log to a table again.
pub(crate) struct MergeIter {
    sources: Vec<MergeSource>,
    heap: Vec<Slot>,
}

#[derive(Clone, Copy)]
struct Slot {
    prefix: u64,
    source: usize,
}

impl MergeIter {
    /// A merge of `sources`, the newest first.
    pub(crate) fn new(sources: Vec<MergeSource>) -> MergeIter {
        let heap = Vec::with_capacity(sources.len());
        MergeIter { sources, heap }
    }

    /// Positions every source and rebuilds the heap.
    fn position(
        &mut self,
        mut seek: impl FnMut(&mut dyn InternalIterator) -> Result<()>,
    ) -> Result<()> {
        self.heap.clear();
        for source in &mut self.sources {
            seek(source.as_mut())?;
        }
        for (index, source) in self.sources.iter().enumerate() {
            if source.valid() {
                self.heap.push(Slot { prefix: key_prefix(source.key().user_key), source: index });
            }
        }
        for index in (0..self.heap.len() / 2).rev() {
            self.sift_down(index);
        }
        Ok(())
    }

    fn less(&self, a: Slot, b: Slot) -> bool {
        let order = a.prefix.cmp(&b.prefix).then_with(|| {
            let keys = self.sources[a.source].key().cmp(&self.sources[b.source].key());
            keys.then(a.source.cmp(&b.source))
        });
        order == Ordering::Less
    }

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

    fn top(&self) -> &dyn InternalIterator {
        self.sources[self.heap[0].source].as_ref()
    }
}

impl InternalIterator for MergeIter {
    fn valid(&self) -> bool {
        !self.heap.is_empty()
    }

    fn seek_to_first(&mut self) -> Result<()> {
        self.position(|source| source.seek_to_first())
    }

    fn seek(&mut self, target: InternalKeyRef<'_>) -> Result<()> {
        self.position(|source| source.seek(target))
    }

    fn next(&mut self) -> Result<()> {
        let source = &mut self.sources[self.heap[0].source];
        if let Err(error) = source.next() {
            self.heap.clear();
            return Err(error);
        }
        if source.valid() {
            self.heap[0].prefix = key_prefix(source.key().user_key);
        } else {
            self.heap.swap_remove(0);
        }
        if !self.heap.is_empty() {
            self.sift_down(0);
        }
        Ok(())
    }

    fn key(&self) -> InternalKeyRef<'_> {
        self.top().key()
    }

    fn value(&self) -> &[u8] {
        self.top().value()
    }
}

#[cfg(test)]
mod tests;
