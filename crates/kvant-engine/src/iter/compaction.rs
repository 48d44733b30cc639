//! Selects the entries that a flush or compaction keeps: those that a reader can still see.
//!
//! The snapshots divide the sequence numbers into *stripes*: stripe 0 up to and including the
//! oldest snapshot, and so on; the last stripe is newer than every snapshot. Of the versions of a
//! key in one stripe, readers can see only the newest.
//!
//! Invariants:
//! 1. Of the versions of a key in a stripe only the newest is kept.
//! 2. A tombstone is dropped only if nothing that it shadows can be seen: with nothing older
//!    beneath the output, and in stripe 0, whose older versions are dropped with it.
//! 3. An expired value is treated as a tombstone for every snapshot: expiry is by wall clock, not
//!    by sequence number.
//! 4. A value gets sequence number 0 only if every reader sees it and nothing is older: with
//!    nothing beneath the output, and in stripe 0. Random sequence numbers do not compress. One
//!    that expires keeps its own, so that entries with 0 are of one kind, and equal for one key.

use super::visible::{expiry_of, kind_of};
use crate::cursor::{InternalIterator, StoredBlock};
use crate::format::{InternalKeyRef, SeqNum, ValueKind};
use kvant_base::Result;

/// Which entries of a compaction can still be seen.
#[derive(Clone, Debug, Default)]
pub(crate) struct Horizon {
    /// Sequence numbers of present and future readers, ascending: the open snapshots, and the
    /// visible sequence number if the inputs may contain anything newer. Any other reader must see
    /// every entry of the inputs, or read an older version of the tree.
    pub(crate) snapshots: Vec<SeqNum>,
    /// No table beneath the output overlaps its range.
    pub(crate) bottommost: bool,
    /// Wall time in milliseconds since 1970. Values that expire at or before it are gone.
    pub(crate) now_ms: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KeptEntry<'a> {
    pub(crate) key: InternalKeyRef<'a>,
    pub(crate) value: &'a [u8],
    /// Whether this is the first entry of its user key. An output may end only before such an
    /// entry.
    pub(crate) starts_user_key: bool,
    /// The block that holds the entry alone in its table, if it is kept unchanged.
    pub(crate) own_block: Option<StoredBlock<'a>>,
}

/// Shorter values are not asked for a block of their own.
const OWN_BLOCK_VALUE_BYTES_MIN: usize = 1 << 10;

/// The entries of a merged input that are kept, in order.
pub(crate) struct CompactionIter<I> {
    inner: I,
    horizon: Horizon,
    /// The user key at the cursor, or before it.
    user_key: Vec<u8>,
    /// Whether no version of `user_key` has been kept yet.
    at_new_user_key: bool,
    /// Stripe of the last version of `user_key`; `None` before the first entry.
    stripe: Option<usize>,
    /// Whether the cursor is at the entry that was returned last.
    returned: bool,
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
        })
    }

    /// The next entry to keep; `None` at the end. Must not be called after an error.
    pub(crate) fn next(&mut self) -> Result<Option<KeptEntry<'_>>> {
        if self.returned {
            self.returned = false;
            self.inner.next()?;
        }
        while self.inner.valid() {
            if let Some(kind) = self.kept_kind()? {
                self.returned = true;
                let key = self.inner.key();
                let value = if kind == ValueKind::Delete { &[] } else { self.inner.value() };
                let starts_user_key = std::mem::take(&mut self.at_new_user_key);
                let is_long = value.len() >= OWN_BLOCK_VALUE_BYTES_MIN;
                let own_block = is_long.then(|| self.inner.own_block()).flatten();
                // A block of its own is copied as it is, with the sequence number.
                let needs_no_seq =
                    self.nothing_is_older() && kind == ValueKind::Put && own_block.is_none();
                let seq = if needs_no_seq { SeqNum(0) } else { key.seq() };
                let key = InternalKeyRef::new(key.user_key, seq, kind);
                return Ok(Some(KeptEntry { key, value, starts_user_key, own_block }));
            }
            self.inner.next()?;
        }
        Ok(None)
    }

    /// Whether every reader sees the entry at the cursor, or a newer version, and none needs an
    /// older one.
    fn nothing_is_older(&self) -> bool {
        self.horizon.bottommost && self.stripe == Some(0)
    }

    /// The kind with which the entry at the cursor is kept; `None` if it is dropped.
    fn kept_kind(&mut self) -> Result<Option<ValueKind>> {
        let key = self.inner.key();
        let kind = kind_of(key)?;
        let stripe = self.horizon.snapshots.partition_point(|&snapshot| snapshot < key.seq());
        if self.stripe.is_none() || key.user_key != self.user_key {
            self.user_key.clear();
            self.user_key.extend_from_slice(key.user_key);
            self.at_new_user_key = true;
        } else if self.stripe == Some(stripe) {
            return Ok(None);
        }
        self.stripe = Some(stripe);

        let expired = expiry_of(kind, self.inner.value())?
            .is_some_and(|expiry_ms| expiry_ms <= self.horizon.now_ms);
        if kind != ValueKind::Delete && !expired {
            return Ok(Some(kind));
        }
        Ok((!self.nothing_is_older()).then_some(ValueKind::Delete))
    }
}

#[cfg(test)]
mod tests;
