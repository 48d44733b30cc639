//! A position in a data block.

use super::{DataBlock, Malformed, Parsed, Place};
use crate::format::InternalKeyRef;
use kvant_base::varint;
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
}

impl DataBlockCursor {
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

    /// Whether `block` has no other entry.
    pub(in crate::table) fn is_alone_in(&self, block: &DataBlock) -> bool {
        let tail = (self.value.start, self.value.end);
        self.valid
            && self.next.entry_at >= block.entries_end
            && tail == (varint::encoded_bytes(self.trailer), block.tails_end)
    }

    pub(in crate::table) fn clear(&mut self) {
        self.valid = false;
    }

    pub(in crate::table) fn seek_to_first(&mut self, block: &DataBlock) -> Parsed<()> {
        self.valid = false;
        self.next = block.restart(0)?;
        self.user_key.clear();
        self.next(block)
    }

    /// Moves to the first entry at or after `target`; becomes invalid if there is none.
    pub(in crate::table) fn seek(
        &mut self,
        block: &DataBlock,
        target: InternalKeyRef<'_>,
    ) -> Parsed<()> {
        self.valid = false;
        self.next = block.restart(block.restart_before(target)?)?;
        self.user_key.clear();
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
        if self.next.entry_at >= block.entries_end {
            return Ok(());
        }
        let head = block.entry_head(self.next.entry_at)?;
        if head.shared > self.user_key.len() {
            return Err(Malformed("entry shares more bytes than the key before it has"));
        }
        self.user_key.truncate(head.shared);
        self.user_key.extend_from_slice(&block.bytes[head.suffix_at..head.end]);
        (self.trailer, self.value) = block.tail(self.next.tail_at, head.tail_bytes)?;
        self.next = Place { entry_at: head.end, tail_at: self.value.end };
        self.valid = true;
        Ok(())
    }
}
