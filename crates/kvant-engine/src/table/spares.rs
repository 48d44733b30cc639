//! Memory of blocks that are no longer needed, for the next ones.
//!
//! The allocator maps long buffers one by one, and the system zeroes and maps each page of a new
//! one: three times the cost of a read from the page cache. A short one is in a page of its own, if
//! it nearly fills that, or in the heaps of the allocator, where it would be zeroed for each block.
//!
//! Invariants:
//! 1. At most [`COUNT_MAX`] long buffers of [`BYTES_MAX`] together are kept, and by each thread one
//!    short block and [`STORED_BYTES_MAX`] of short buffers for blocks as they are stored. No
//!    budget counts them.
//! 2. Of a buffer that becomes a block, at most a quarter of the block's length stays unused, or a
//!    16th if it is short: the cache pays for it.

use kvant_base::lock::NamedMutex;
use kvant_env::posix::{Buffer, Page};
use std::cell::{Cell, RefCell};

const LONG_BYTES: usize = 64 << 10;
/// Blocks have few lengths, so that one finds room where another was. Those of equally long values
/// differ by some bytes.
const SHORT_STEP_BYTES: usize = 128;
const LONG_STEP_BYTES: usize = 1 << 10;
/// For the cursors of a range, one for each level. Lengths that differ would leave holes in the
/// heaps of the allocator which no block fits into.
const STORED_BYTES_MAX: usize = 128 << 10;
const STORED_BYTES_MIN: usize = 4 << 10;
const COUNT_MAX: usize = 8;
const BYTES_MAX: usize = 4 << 20;

thread_local! {
    /// A short block that this thread evicted, for its next one.
    static BLOCK: Cell<Buffer> = const { Cell::new(Buffer::new()) };
    /// For blocks as they are stored, until they are decompressed.
    static STORED: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
}

pub(crate) struct Spares(NamedMutex<Vec<Vec<u8>>>);

impl Default for Spares {
    fn default() -> Spares {
        Spares(NamedMutex::new("spare_blocks", Vec::new()))
    }
}

impl Spares {
    /// Keeps the memory of a block for another one.
    pub(super) fn keep(&self, buffer: Buffer) {
        if buffer.capacity() < LONG_BYTES {
            BLOCK.set(buffer);
        } else {
            self.keep_long(buffer.into_vec());
        }
    }

    /// Memory for a block of `len` bytes, with any contents and length: a kept buffer that fits, or
    /// a new one.
    pub(super) fn take(&self, len: usize) -> Buffer {
        if len >= LONG_BYTES {
            return self.take_long(len).into();
        }
        let kept = BLOCK.take();
        if fits(kept.capacity(), len) {
            return kept;
        }
        drop(kept);
        let page = if fits(Page::BYTES, len) { Page::new() } else { None };
        let heap = || Vec::with_capacity(len.next_multiple_of(SHORT_STEP_BYTES)).into();
        page.map_or_else(heap, Buffer::from)
    }

    /// Keeps what [`Spares::take_for_stored`] gave, after use.
    pub(super) fn keep_from_stored(&self, buffer: Vec<u8>) {
        // A short one is rounded up to at most that.
        if buffer.capacity() > LONG_BYTES {
            return self.keep_long(buffer);
        }
        STORED.with_borrow_mut(|kept| {
            let bytes: usize = kept.iter().map(Vec::capacity).sum();
            if buffer.capacity() > 0 && bytes + buffer.capacity() <= STORED_BYTES_MAX {
                kept.push(buffer);
            }
        });
    }

    /// As [`Spares::take`], for blocks as they are stored. Much of it may stay unused: see
    /// [`fits`].
    pub(super) fn take_for_stored(&self, len: usize) -> Vec<u8> {
        if len >= LONG_BYTES {
            return self.take_long(len);
        }
        let kept = STORED.with_borrow_mut(Vec::pop).filter(|kept| kept.capacity() >= len);
        kept.unwrap_or_else(|| Vec::with_capacity(len.next_power_of_two().max(STORED_BYTES_MIN)))
    }

    /// The oldest buffers make room for `buffer`.
    fn keep_long(&self, buffer: Vec<u8>) {
        if buffer.capacity() > BYTES_MAX {
            return;
        }
        let mut kept = self.0.lock();
        kept.push(buffer);
        let bytes = |kept: &[Vec<u8>]| kept.iter().map(Vec::capacity).sum::<usize>();
        while kept.len() > COUNT_MAX || bytes(&kept) > BYTES_MAX {
            kept.remove(0);
        }
    }

    fn take_long(&self, len: usize) -> Vec<u8> {
        let mut kept = self.0.lock();
        let position = kept.iter().position(|buffer| fits(buffer.capacity(), len));
        position.map_or_else(
            || vec![0; len.next_multiple_of(LONG_STEP_BYTES)],
            |index| kept.swap_remove(index),
        )
    }
}

/// Whether a buffer of `capacity` may become a block of `len` bytes.
pub(super) fn fits(capacity: usize, len: usize) -> bool {
    let unused_bytes_max = if len < LONG_BYTES { len / 16 } else { len / 4 };
    (len..=len + unused_bytes_max).contains(&capacity)
}

#[cfg(test)]
mod tests;
