//! What a flush or compaction keeps: the entries that a reader can still see.
//!
//! The snapshots cut the sequence numbers into *stripes*: stripe 0 up to and including the oldest
//! snapshot, and so on; the last one holds what is newer than every snapshot. No reader can tell
//! two versions of a key in one stripe apart, except that the newer one wins.
//!
//! Invariants:
//! 1. Of the versions of a key in a stripe only the newest is kept.
//! 2. A tombstone is dropped only when nothing that it hides can be seen: at the bottom, where
//!    nothing older lies beneath the output, and in stripe 0, whose older versions are dropped with
//!    it.
//! 3. An expired value is a tombstone, for every snapshot: expiry is by wall clock, not by sequence
//!    number.

use super::InternalIterator;
use super::visible::{expiry_of, kind_of};
use crate::format::{InternalKeyRef, SeqNum, ValueKind};
use kvant_base::Result;

/// What can still be seen of the entries of a compaction.
#[derive(Clone, Debug, Default)]
pub(crate) struct Horizon {
    /// Sequence numbers at which there are or may come to be readers, ascending: the open
    /// snapshots, and the visible sequence number if the inputs may hold anything newer. A reader
    /// not among them must see every entry of the inputs, or read older versions of the tree.
    pub(crate) snapshots: Vec<SeqNum>,
    /// No table beneath the output holds a key of its range.
    pub(crate) bottommost: bool,
    /// Wall time in milliseconds since 1970: what expires at or before it is gone.
    pub(crate) now_ms: u64,
}

/// Entries read and what became of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct DropCounts {
    pub(crate) kept_count: u64,
    /// Dropped: a newer version hides them from every reader.
    pub(crate) shadowed_count: u64,
    /// Dropped tombstones.
    pub(crate) tombstone_count: u64,
    /// Expired values, dropped or turned into tombstones.
    pub(crate) expired_count: u64,
}

/// An entry that is to be kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KeptEntry<'a> {
    pub(crate) key: InternalKeyRef<'a>,
    /// As stored.
    pub(crate) value: &'a [u8],
    /// Whether it is the first of its user key: only before such an entry may an output end.
    pub(crate) starts_user_key: bool,
}

/// The entries of a merged input that are to be kept, in order.
pub(crate) struct CompactionIter<I> {
    inner: I,
    horizon: Horizon,
    /// The user key at the cursor, or before it.
    user_key: Vec<u8>,
    /// Whether no version of `user_key` has been kept yet.
    at_new_user_key: bool,
    /// Stripe of the version of `user_key` seen last; `None` before the first entry.
    stripe: Option<usize>,
    /// Whether the cursor stands on the entry that was returned last.
    returned: bool,
    counts: DropCounts,
}

impl<I: InternalIterator> CompactionIter<I> {
    /// Positions `inner` at its first entry.
    pub(crate) fn new(mut inner: I, horizon: Horizon) -> Result<CompactionIter<I>> {
        debug_assert!(horizon.snapshots.is_sorted(), "snapshots ascend");
        inner.seek_to_first()?;
        Ok(CompactionIter {
            inner,
            horizon,
            user_key: Vec::new(),
            at_new_user_key: true,
            stripe: None,
            returned: false,
            counts: DropCounts::default(),
        })
    }

    /// The next entry to keep; `None` at the end. After an error the input is useless.
    pub(crate) fn next(&mut self) -> Result<Option<KeptEntry<'_>>> {
        if self.returned {
            self.returned = false;
            self.inner.next()?;
        }
        while self.inner.valid() {
            if let Some(kind) = self.fate()? {
                self.returned = true;
                self.counts.kept_count += 1;
                let key = self.inner.key();
                let seq = key.seq();
                let value = if kind == ValueKind::Delete { &[] } else { self.inner.value() };
                let starts_user_key = std::mem::take(&mut self.at_new_user_key);
                let key = InternalKeyRef::new(key.user_key, seq, kind);
                return Ok(Some(KeptEntry { key, value, starts_user_key }));
            }
            self.inner.next()?;
        }
        Ok(None)
    }

    /// What happened to the entries so far.
    #[cfg(test)]
    pub(crate) fn counts(&self) -> DropCounts {
        self.counts
    }

    /// The kind with which the entry at the cursor is kept, if it is.
    fn fate(&mut self) -> Result<Option<ValueKind>> {
        let key = self.inner.key();
        let kind = kind_of(key)?;
        let stripe = self.horizon.snapshots.partition_point(|&snapshot| snapshot < key.seq());
        if self.stripe.is_none() || key.user_key != self.user_key {
            self.user_key.clear();
            self.user_key.extend_from_slice(key.user_key);
            self.at_new_user_key = true;
        } else if self.stripe == Some(stripe) {
            self.counts.shadowed_count += 1;
            return Ok(None);
        }
        self.stripe = Some(stripe);

        let expired = expiry_of(kind, self.inner.value())?
            .is_some_and(|expiry_ms| expiry_ms <= self.horizon.now_ms);
        self.counts.expired_count += u64::from(expired);
        if kind != ValueKind::Delete && !expired {
            return Ok(Some(kind));
        }
        if self.horizon.bottommost && stripe == 0 {
            self.counts.tombstone_count += u64::from(!expired);
            return Ok(None);
        }
        Ok(Some(ValueKind::Delete))
    }
}

#[cfg(test)]
mod tests;
