//! Memory of long blocks that have left the cache, for the next long blocks.
//!
//! The allocator maps long buffers one by one, and the system zeroes and maps each page of a new
//! one: three times the cost of a read from the page cache.
//!
//! Invariant: at most [`COUNT_MAX`] buffers of [`BYTES_MAX`] together are kept. No budget counts
//! them.

use kvant_base::lock::NamedMutex;

/// Shorter buffers are in the heaps of the allocator, which reuses them itself.
const LONG_BYTES: usize = 64 << 10;
const COUNT_MAX: usize = 8;
const BYTES_MAX: usize = 4 << 20;

pub(crate) struct Spares(NamedMutex<Vec<Vec<u8>>>);

impl Default for Spares {
    fn default() -> Spares {
        Spares(NamedMutex::new("spare_blocks", Vec::new()))
    }
}

impl Spares {
    /// Keeps a buffer for another block, if it is long. The oldest ones make room for it.
    pub(super) fn keep(&self, buffer: Vec<u8>) {
        if !(LONG_BYTES..=BYTES_MAX).contains(&buffer.capacity()) {
            return;
        }
        let mut kept = self.0.lock();
        kept.push(buffer);
        let bytes = |kept: &[Vec<u8>]| kept.iter().map(Vec::capacity).sum::<usize>();
        while kept.len() > COUNT_MAX || bytes(&kept) > BYTES_MAX {
            kept.remove(0);
        }
    }

    /// Memory for `len` bytes, with any contents and length: a kept buffer, unless more than a
    /// fifth of it would stay unused, or an empty one.
    pub(super) fn take(&self, len: usize) -> Vec<u8> {
        if len < LONG_BYTES {
            return Vec::new();
        }
        let mut kept = self.0.lock();
        let fits = |buffer: &Vec<u8>| (len..=len + len / 4).contains(&buffer.capacity());
        kept.iter().position(fits).map_or_else(Vec::new, |index| kept.swap_remove(index))
    }
}

#[cfg(test)]
mod tests;
