//! A position in a data block.

use super::{DataBlock, Malformed, Parsed, Place};
use crate::format::InternalKeyRef;
use kvant_base::varint;
use std::cmp::Ordering;
use std::ops::Range;

/// A position in a data block. The owner keeps the block and passes it to each method.
///
/// Invariant: while `valid`, `user_key`, `trailer` and `value` are those of the entry before
/// `next`.
#[derive(Default)]
pub(in crate::table) struct DataBlockCursor {
    user_key: Vec<u8>,
    trailer: u64,
    value: Range<usize>,
    next: Place,
    valid: bool,
    /// Whether an entry that is not after the one before it is malformed.
    is_strict: bool,
}

impl DataBlockCursor {
    /// A cursor that relies on neither the order of entries nor the restarts.
    pub(in crate::table) fn strict() -> DataBlockCursor {
        DataBlockCursor { is_strict: true, ..DataBlockCursor::default() }
    }

    #[inline]
    pub(in crate::table) fn valid(&self) -> bool {
        self.valid
    }

    #[inline]
    pub(in crate::table) fn key(&self) -> InternalKeyRef<'_> {
        debug_assert!(self.valid);
        InternalKeyRef { user_key: &self.user_key, trailer: self.trailer }
    }

    #[inline]
    pub(in crate::table) fn value(&self) -> Range<usize> {
        self.value.clone()
    }

    /// Whether no entry of `block` follows.
    #[inline]
    pub(in crate::table) fn is_at_last(&self, block: &DataBlock) -> bool {
        self.next.entry_at >= block.entries_end
    }

    /// Whether `block` has no other entry.
    pub(in crate::table) fn is_alone_in(&self, block: &DataBlock) -> bool {
        let tail = (self.value.start, self.value.end);
        self.valid
            && self.is_at_last(block)
            && tail == (varint::encoded_bytes(self.trailer), block.tails_end)
    }

    pub(in crate::table) fn clear(&mut self) {
        self.valid = false;
    }

    pub(in crate::table) fn seek_to_first(&mut self, block: &DataBlock) -> Parsed<()> {
        self.start_at(block, 0)?;
        self.next(block)
    }

    /// Places the cursor before the first entry of interval `restart`.
    fn start_at(&mut self, block: &DataBlock, restart: usize) -> Parsed<()> {
        self.valid = false;
        self.next = block.restart(restart)?;
        self.user_key.clear();
        self.trailer = u64::MAX;
        Ok(())
    }

    /// Checks that the entry at the cursor is before one that shares so much of its key. Not a part
    /// of [`DataBlockCursor::next`]: ranges are faster.
    #[inline(never)]
    fn check_is_before(&self, shared: usize, suffix: &[u8], trailer: u64) -> Parsed<()> {
        let order = self.user_key[shared..].cmp(suffix).then(trailer.cmp(&self.trailer));
        match order {
            Ordering::Less => Ok(()),
            _ => Err(Malformed("entries are out of order")),
        }
    }

    /// Moves to the first entry at or after `target`; becomes invalid if there is none.
    pub(in crate::table) fn seek(
        &mut self,
        block: &DataBlock,
        target: InternalKeyRef<'_>,
    ) -> Parsed<()> {
        let restart = if self.is_strict { 0 } else { block.restart_before(target)? };
        self.start_at(block, restart)?;
        loop {
            self.next(block)?;
            if !self.valid || self.key() >= target {
                return Ok(());
            }
        }
    }

    /// Moves to the next entry; becomes invalid at the end of the block.
    #[inline]
    pub(in crate::table) fn next(&mut self, block: &DataBlock) -> Parsed<()> {
        self.valid = false;
        if self.is_at_last(block) {
            return Ok(());
        }
        let head = block.entry_head(self.next.entry_at)?;
        if head.shared > self.user_key.len() {
            return Err(Malformed("entry shares more bytes than the key before it has"));
        }
        let suffix = &block.bytes[head.suffix_at..head.end];
        let (trailer, value) = block.tail(self.next.tail_at, head.tail_bytes)?;
        if self.is_strict {
            self.check_is_before(head.shared, suffix, trailer)?;
        }
        self.user_key.truncate(head.shared);
        self.user_key.extend_from_slice(suffix);
        (self.trailer, self.value) = (trailer, value);
        self.next = Place { entry_at: head.end, tail_at: self.value.end };
        self.valid = true;
        Ok(())
    }
}
