//! Data blocks: prefix-compressed entries, restart points, hash index (`docs/formats/table.md`, section 2).
//!
//! Invariants:
//! 1. Entries are in internal-key order; every 16th, counted from the first, repeats its whole user key (a restart).
//! 2. No method panics whatever the bytes are: every offset and length is checked where it is used. What does not fit is
//!    [`Malformed`], which after a good checksum means a bug in a writer.
//!
//! Threads: a [`DataBlock`] is immutable.
//!
//! Point reads compare no whole keys. While a scan is still before its target, it knows how many bytes `matched` of the target the
//! previous key begins with; an entry that shares more with that key is before the target as well, one that shares less is after
//! it, and only one that shares exactly `matched` bytes is looked at.

mod builder;
mod cursor;

pub(super) use builder::DataBlockBuilder;
pub(super) use cursor::DataBlockCursor;

use super::stored::{Malformed, Parsed};
use crate::format::InternalKeyRef;
use kvant_base::varint;
use std::cmp::Ordering;
use std::ops::Range;

/// Entries from one restart to the next.
const RESTART_INTERVAL: usize = 16;
/// Bucket that keys of several restart intervals share.
const BUCKET_SHARED: u8 = 254;
/// Bucket that no key falls in.
const BUCKET_EMPTY: u8 = 255;
/// More restarts than a bucket can name: no hash index.
const HASHED_RESTARTS_MAX: usize = BUCKET_SHARED as usize;
/// `bucket_count` and `restart_count` at the end.
const COUNTS_BYTES: usize = 6;
const RESTART_BYTES: usize = 4;

/// A decoded data block.
pub(crate) struct DataBlock {
    bytes: Vec<u8>,
    entries_bytes: usize,
    restart_count: usize,
    bucket_count: usize,
}

/// What [`DataBlock::get`] found.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct BlockEntry {
    pub(super) trailer: u64,
    /// Where the stored value is in the block.
    pub(super) value: Range<usize>,
}

/// The head of an entry: lengths, and where the suffix of its key starts.
#[derive(Clone, Copy)]
struct EntryHead {
    shared: usize,
    unshared: usize,
    suffix_at: usize,
    end: usize,
}

impl EntryHead {
    #[inline]
    fn tail(&self) -> Range<usize> {
        self.suffix_at + self.unshared..self.end
    }
}

impl DataBlock {
    /// Takes a decompressed payload.
    pub(super) fn new(bytes: Vec<u8>) -> Parsed<DataBlock> {
        const SHORT: Malformed = Malformed("data block is shorter than its counts say");
        let (rest, counts) = bytes.split_last_chunk::<COUNTS_BYTES>().ok_or(SHORT)?;
        let [b0, b1, r0, r1, r2, r3] = *counts;
        let bucket_count = usize::from(u16::from_le_bytes([b0, b1]));
        let restart_count = u32::from_le_bytes([r0, r1, r2, r3]) as usize;
        let index_bytes = restart_count.checked_mul(RESTART_BYTES).and_then(|b| b.checked_add(bucket_count));
        let entries_bytes = index_bytes.and_then(|b| rest.len().checked_sub(b)).ok_or(SHORT)?;
        if restart_count == 0 || (bucket_count > 0 && restart_count > HASHED_RESTARTS_MAX) {
            return Err(Malformed("data block has an impossible number of restarts"));
        }
        Ok(DataBlock { bytes, entries_bytes, restart_count, bucket_count })
    }

    /// Bytes on the heap.
    pub(super) fn heap_bytes(&self) -> usize {
        self.bytes.capacity()
    }

    /// Length of the payload.
    pub(super) fn raw_bytes(&self) -> usize {
        self.bytes.len()
    }

    #[inline]
    pub(super) fn bytes_at(&self, range: Range<usize>) -> &[u8] {
        &self.bytes[range]
    }

    /// The first entry of `target`'s user key at or after `target`. `hash` is the user key's.
    #[inline]
    pub(super) fn get(&self, target: InternalKeyRef<'_>, hash: u64) -> Parsed<Option<BlockEntry>> {
        let restart = if self.bucket_count == 0 {
            self.restart_before(target)?
        } else {
            match self.bytes[self.bucket_at(hash)] {
                BUCKET_EMPTY => return Ok(None),
                BUCKET_SHARED => self.restart_before(target)?,
                restart => usize::from(restart),
            }
        };
        self.scan_for(target, self.restart_offset(restart)?)
    }

    /// Scans from `at`, which holds a restart, for the first entry of `target`'s user key at or after `target`.
    #[inline]
    fn scan_for(&self, target: InternalKeyRef<'_>, mut at: usize) -> Parsed<Option<BlockEntry>> {
        let mut matched = 0;
        while at < self.entries_bytes {
            let head = self.entry_head(at)?;
            at = head.end;
            if head.shared > matched {
                continue;
            }
            if head.shared < matched {
                if head.shared > 0 {
                    return Ok(None);
                }
                // A restart says nothing about what it has in common with the key before.
                matched = 0;
            }
            let suffix = &self.bytes[head.suffix_at..head.suffix_at + head.unshared];
            let wanted = &target.user_key[matched..];
            let common = common_prefix_bytes(suffix, wanted);
            if common == wanted.len() {
                if common < suffix.len() {
                    return Ok(None);
                }
                let (trailer, value) = self.tail(head)?;
                if trailer <= target.trailer {
                    return Ok(Some(BlockEntry { trailer, value }));
                }
            } else if common < suffix.len() && suffix[common] > wanted[common] {
                return Ok(None);
            }
            matched += common;
        }
        Ok(None)
    }

    #[inline]
    fn bucket_at(&self, hash: u64) -> usize {
        self.entries_bytes + self.restart_count * RESTART_BYTES + bucket_of(hash, self.bucket_count)
    }

    /// The last restart whose entry is before `target`, or the first one: entries at or after `target` start in its interval.
    fn restart_before(&self, target: InternalKeyRef<'_>) -> Parsed<usize> {
        let (mut low, mut high) = (0, self.restart_count - 1);
        while low < high {
            let middle = (low + high).div_ceil(2);
            let head = self.entry_head(self.restart_offset(middle)?)?;
            let user_key = &self.bytes[head.suffix_at..head.suffix_at + head.unshared];
            let before = match user_key.cmp(target.user_key) {
                Ordering::Less => true,
                Ordering::Greater => false,
                Ordering::Equal => self.tail(head)?.0 > target.trailer,
            };
            if before {
                low = middle;
            } else {
                high = middle - 1;
            }
        }
        Ok(low)
    }

    #[inline]
    fn restart_offset(&self, restart: usize) -> Parsed<usize> {
        const OUTSIDE: Malformed = Malformed("restart lies outside of its data block");
        if restart >= self.restart_count {
            return Err(OUTSIDE);
        }
        let at = self.entries_bytes + restart * RESTART_BYTES;
        let bytes = self.bytes[at..].first_chunk::<RESTART_BYTES>().ok_or(OUTSIDE)?;
        let offset = u32::from_le_bytes(*bytes) as usize;
        if offset < self.entries_bytes { Ok(offset) } else { Err(OUTSIDE) }
    }

    /// Decodes the lengths of the entry at `at`, and checks that they stay within the entries.
    #[inline]
    fn entry_head(&self, at: usize) -> Parsed<EntryHead> {
        const CUT: Malformed = Malformed("entry runs past the end of its data block");
        let entries = &self.bytes[..self.entries_bytes];
        let input = entries.get(at..).ok_or(CUT)?;
        let (shared, unshared, tail_bytes, head_bytes) = match input.first_chunk::<3>() {
            // Nearly all entries: three lengths of one byte each.
            Some(&[a, b, c]) if (a | b | c) < 0x80 => (usize::from(a), usize::from(b), usize::from(c), 3),
            _ => {
                let mut rest = input;
                let mut take = || Some(varint::take_u32(&mut rest)? as usize);
                let lengths = (take().ok_or(CUT)?, take().ok_or(CUT)?, take().ok_or(CUT)?);
                (lengths.0, lengths.1, lengths.2, input.len() - rest.len())
            }
        };
        let body_bytes = unshared + tail_bytes;
        if input.len() - head_bytes < body_bytes || body_bytes == 0 {
            return Err(CUT);
        }
        let suffix_at = at + head_bytes;
        Ok(EntryHead { shared, unshared, suffix_at, end: suffix_at + body_bytes })
    }

    /// Trailer and place of the value.
    #[inline]
    fn tail(&self, head: EntryHead) -> Parsed<(u64, Range<usize>)> {
        let range = head.tail();
        let mut input = &self.bytes[range.clone()];
        let trailer = varint::take_u64(&mut input).ok_or(Malformed("entry has no trailer"))?;
        Ok((trailer, range.end - input.len()..range.end))
    }
}

#[inline]
fn bucket_of(hash: u64, bucket_count: usize) -> usize {
    (((hash & 0xffff_ffff) * bucket_count as u64) >> 32) as usize
}

/// How many bytes `a` and `b` begin with in common.
#[inline]
pub(super) fn common_prefix_bytes(a: &[u8], b: &[u8]) -> usize {
    let (a_words, _) = a.as_chunks::<8>();
    let (b_words, _) = b.as_chunks::<8>();
    let mut common = 0;
    for (a_word, b_word) in a_words.iter().zip(b_words) {
        let difference = u64::from_le_bytes(*a_word) ^ u64::from_le_bytes(*b_word);
        if difference != 0 {
            return common + (difference.trailing_zeros() / 8) as usize;
        }
        common += 8;
    }
    common + a[common..].iter().zip(&b[common..]).take_while(|(x, y)| x == y).count()
}

#[cfg(test)]
mod tests;
