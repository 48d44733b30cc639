//! Data blocks: prefix-compressed entries, restart points, hash index (`docs/formats/table.md`,
//! section 2).
//!
//! Invariants:
//! 1. Entries are in internal-key order. Every 16th, from the first on, stores its whole user key
//!    (a restart). Tails (trailer and value) are stored apart from the keys, in the same order: a
//!    scan over keys touches few cache lines whatever the size of the values.
//! 2. No method panics on any bytes: every offset and length is checked before use. An invalid one
//!    is [`Malformed`], which after a valid checksum indicates a bug in a writer, or its memory.
//!
//! Threads: a [`DataBlock`] is immutable.
//!
//! The hash index follows RocksDB ("Improving Point-Lookup Using Data Block Hash Index", 2018):
//! each bucket is one byte that names a restart.
//!
//! Point reads do not compare whole keys. `matched` is the length of the prefix that the previous
//! key, which is before the target, shares with the target. An entry that shares more bytes with
//! the previous key is before the target too, one that shares fewer is after it, and only one that
//! shares exactly `matched` bytes is compared.

mod builder;
mod cursor;

pub(super) use builder::DataBlockBuilder;
pub(super) use cursor::DataBlockCursor;

use super::stored::{Malformed, Parsed};
use crate::format::{InternalKeyRef, common_prefix_bytes};
use crate::prefetch::prefetch;
use kvant_base::varint;
use kvant_env::posix::Buffer;
use std::cmp::Ordering;
use std::ops::Range;

const RESTART_INTERVAL: usize = 16;
/// Bucket of keys in several restart intervals.
const BUCKET_SHARED: u8 = 254;
const BUCKET_EMPTY: u8 = 255;
/// Most restarts of a block with a hash index: a bucket can name no more.
const HASHED_RESTARTS_MAX: usize = BUCKET_SHARED as usize;
/// `bucket_count`, `restart_count` and `tails_bytes` at the end.
const COUNTS_BYTES: usize = 10;
const RESTART_BYTES: usize = 8;
const LINE_BYTES: usize = 64;
/// Cache lines with the tails of an interval of small records.
const TAIL_LINES: usize = 4;
/// Intervals of a block of 4 KiB of small records.
const RESTARTS_PREFETCHED_MAX: usize = 16;

pub(crate) struct DataBlock {
    bytes: Buffer,
    /// Where the tails end and the entries start.
    tails_end: usize,
    /// Where the entries end and the restarts start.
    entries_end: usize,
    restart_count: usize,
    bucket_count: usize,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct BlockEntry {
    pub(super) trailer: u64,
    pub(super) value: Range<usize>,
}

/// The decoded lengths of an entry, and the place of its key suffix.
#[derive(Clone, Copy)]
struct EntryHead {
    shared: usize,
    tail_bytes: usize,
    suffix_at: usize,
    end: usize,
}

/// Where an entry and its tail start.
#[derive(Clone, Copy, Default)]
struct Place {
    entry_at: usize,
    tail_at: usize,
}

impl DataBlock {
    /// Decodes a decompressed payload.
    pub(super) fn new(bytes: Buffer) -> Parsed<DataBlock> {
        const SHORT: Malformed = Malformed("data block is shorter than its counts say");
        let (rest, counts) = bytes.split_last_chunk::<COUNTS_BYTES>().ok_or(SHORT)?;
        let [b0, b1, r0, r1, r2, r3, t0, t1, t2, t3] = *counts;
        let bucket_count = usize::from(u16::from_le_bytes([b0, b1]));
        let restart_count = u32::from_le_bytes([r0, r1, r2, r3]) as usize;
        let tails_end = u32::from_le_bytes([t0, t1, t2, t3]) as usize;
        let entries_end =
            rest.len().checked_sub(restart_count * RESTART_BYTES + bucket_count).ok_or(SHORT)?;
        if entries_end < tails_end {
            return Err(SHORT);
        }
        if restart_count == 0 || (bucket_count > 0 && restart_count > HASHED_RESTARTS_MAX) {
            return Err(Malformed("data block has an impossible number of restarts"));
        }
        Ok(DataBlock { bytes, tails_end, entries_end, restart_count, bucket_count })
    }

    pub(super) fn heap_bytes(&self) -> usize {
        self.bytes.capacity()
    }

    /// Where a point read begins.
    pub(super) fn begin(&self) -> *const u8 {
        self.bytes.as_ptr().wrapping_add(self.entries_end + self.restart_count * RESTART_BYTES)
    }

    /// The memory of the block.
    pub(super) fn into_bytes(self) -> Buffer {
        self.bytes
    }

    pub(super) fn raw_bytes(&self) -> usize {
        self.bytes.len()
    }

    #[inline]
    pub(super) fn bytes_at(&self, range: Range<usize>) -> &[u8] {
        &self.bytes[range]
    }

    /// The first entry at or after `target` with the same user key, whose hash is `hash`.
    #[inline]
    pub(super) fn get(&self, target: InternalKeyRef<'_>, hash: u64) -> Parsed<Option<BlockEntry>> {
        // The restarts, beside the bucket; then the tails, beside the keys.
        self.prefetch_at(self.entries_end);
        let restart = if self.bucket_count == 0 {
            self.restart_before(target)?
        } else {
            match self.bytes[self.bucket_at(hash)] {
                BUCKET_EMPTY => return Ok(None),
                BUCKET_SHARED => self.restart_before(target)?,
                restart => usize::from(restart),
            }
        };
        let place = self.restart(restart)?;
        (0..TAIL_LINES).for_each(|line| self.prefetch_at(place.tail_at + line * LINE_BYTES));
        self.scan_for(target, place)
    }

    #[inline]
    fn prefetch_at(&self, at: usize) {
        prefetch(self.bytes.as_ptr().wrapping_add(at));
    }

    #[inline]
    fn scan_for(&self, target: InternalKeyRef<'_>, mut place: Place) -> Parsed<Option<BlockEntry>> {
        let mut matched = 0;
        while place.entry_at < self.entries_end {
            let head = self.entry_head(place.entry_at)?;
            let tail_at = place.tail_at;
            place = Place { entry_at: head.end, tail_at: tail_at + head.tail_bytes };
            if head.shared > matched {
                continue;
            }
            if head.shared < matched {
                if head.shared > 0 {
                    return Ok(None);
                }
                // A restart shares no bytes by definition.
                matched = 0;
            }
            let suffix = &self.bytes[head.suffix_at..head.end];
            let wanted = &target.user_key[matched..];
            let common = common_prefix_bytes(suffix, wanted);
            if common == wanted.len() {
                if common < suffix.len() {
                    return Ok(None);
                }
                let (trailer, value) = self.tail(tail_at, head.tail_bytes)?;
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
        self.entries_end + self.restart_count * RESTART_BYTES + bucket_of(hash, self.bucket_count)
    }

    /// The last restart before `target`, or the first one: the first entry at or after `target` is
    /// in its interval or starts the next one.
    fn restart_before(&self, target: InternalKeyRef<'_>) -> Parsed<usize> {
        // A search waits for one key after the other.
        for restart in 0..self.restart_count.min(RESTARTS_PREFETCHED_MAX) {
            self.prefetch_at(self.restart(restart)?.entry_at);
        }
        let (mut low, mut high) = (0, self.restart_count - 1);
        while low < high {
            let middle = (low + high).div_ceil(2);
            let place = self.restart(middle)?;
            let head = self.entry_head(place.entry_at)?;
            let before = match self.bytes[head.suffix_at..head.end].cmp(target.user_key) {
                Ordering::Less => true,
                Ordering::Greater => false,
                Ordering::Equal => self.tail(place.tail_at, head.tail_bytes)?.0 > target.trailer,
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
    fn restart(&self, restart: usize) -> Parsed<Place> {
        const OUTSIDE: Malformed = Malformed("restart lies outside of its data block");
        if restart >= self.restart_count {
            return Err(OUTSIDE);
        }
        let at = self.entries_end + restart * RESTART_BYTES;
        let bytes = self.bytes[at..].first_chunk::<RESTART_BYTES>().ok_or(OUTSIDE)?;
        let both = u64::from_le_bytes(*bytes);
        let place = Place {
            entry_at: self.tails_end + (both as u32) as usize,
            tail_at: (both >> 32) as usize,
        };
        if place.entry_at < self.entries_end { Ok(place) } else { Err(OUTSIDE) }
    }

    /// Decodes the lengths of the entry at `at` and checks that its key ends within the entries.
    #[inline]
    fn entry_head(&self, at: usize) -> Parsed<EntryHead> {
        const CUT: Malformed = Malformed("entry runs past the end of its data block");
        let input = self.bytes[..self.entries_end].get(at..).ok_or(CUT)?;
        let (shared, unshared, tail_bytes, head_bytes) = match input.first_chunk::<3>() {
            // The common case: three lengths of one byte each.
            Some(&[a, b, c]) if (a | b | c) < 0x80 => {
                (usize::from(a), usize::from(b), usize::from(c), 3)
            }
            _ => {
                let mut rest = input;
                let mut take = || Some(varint::take_u32(&mut rest)? as usize);
                let lengths = (take().ok_or(CUT)?, take().ok_or(CUT)?, take().ok_or(CUT)?);
                (lengths.0, lengths.1, lengths.2, input.len() - rest.len())
            }
        };
        if input.len() - head_bytes < unshared {
            return Err(CUT);
        }
        let suffix_at = at + head_bytes;
        Ok(EntryHead { shared, tail_bytes, suffix_at, end: suffix_at + unshared })
    }

    /// The trailer, and the place of the value, of the tail at `at`.
    #[inline]
    fn tail(&self, at: usize, tail_bytes: usize) -> Parsed<(u64, Range<usize>)> {
        const CUT: Malformed = Malformed("value runs past the end of its data block");
        let end = at + tail_bytes;
        let mut input = self.bytes[..self.tails_end].get(at..end).ok_or(CUT)?;
        let trailer = varint::take_u64(&mut input).ok_or(CUT)?;
        Ok((trailer, end - input.len()..end))
    }
}

#[inline]
fn bucket_of(hash: u64, bucket_count: usize) -> usize {
    (((hash & 0xffff_ffff) * bucket_count as u64) >> 32) as usize
}

#[cfg(test)]
mod tests;
