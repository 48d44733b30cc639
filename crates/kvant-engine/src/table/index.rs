//! The index: which data block may hold a key (`docs/formats/table.md`, section 4).
//!
//! Invariants:
//! 1. Keys are strictly ascending in internal-key order. Key `i` is at or after all keys of data
//!    block `i` and before those of block `i + 1`.
//! 2. `heads[i]` is the [`key_prefix`] of key `i` after the prefix common to all keys. Most
//!    searches read nothing but this array and the samples of it.
//! 3. `sampled_heads` has every [`SAMPLE_INTERVAL`]th head. More of the samples than of all heads
//!    are in the processor's cache: a search through them, and then among 16 neighbours, waits for
//!    fewer cache lines than one through all (`docs/decisions/0043`).
//!
//! Threads: an [`Index`] is immutable.

use super::stored::{BLOCK_TRAILER_BYTES, BlockSpan, Malformed, Parsed};
use crate::format::{InternalKeyRef, common_prefix_bytes, key_prefix};
use crate::prefetch::prefetch;
use kvant_base::{limits, varint};
use std::cmp::Ordering;

/// Two cache lines of heads.
const SAMPLE_INTERVAL: usize = 16;
/// Memory per entry without its key: head, end of key, end of block, trailer, and the shortcut of
/// two words that the table adds.
const ENTRY_HEAP_BYTES: u64 = 8 + 4 + 8 + 8 + 16;
const OUT_OF_ORDER: Malformed = Malformed("index keys are out of order");

pub(crate) struct Index {
    prefix: Vec<u8>,
    heads: Vec<u64>,
    sampled_heads: Vec<u64>,
    /// The keys without `prefix`, concatenated.
    suffixes: Vec<u8>,
    /// Where each key ends in `suffixes`.
    suffix_ends: Vec<u32>,
    /// Where each data block ends in the file. The next one starts there.
    block_ends: Vec<u64>,
    /// Trailers of the keys, 0 for keys after all versions; empty if all are 0.
    trailers: Vec<u64>,
}

impl Index {
    pub(super) fn len(&self) -> usize {
        self.heads.len()
    }

    #[inline]
    pub(super) fn span(&self, block: usize) -> BlockSpan {
        let start = if block == 0 { 0 } else { self.block_ends[block - 1] };
        BlockSpan { offset_bytes: start, stored_bytes: (self.block_ends[block] - start) as u32 }
    }

    /// The data block that [`Index::find`] returns, and its place.
    #[inline]
    pub(super) fn find_span(&self, target: InternalKeyRef<'_>) -> Option<(usize, BlockSpan)> {
        let block = self.find(target);
        (block < self.len()).then(|| (block, self.span(block)))
    }

    /// The first data block whose separator is at or after `target`: the only one that can contain
    /// the first version of the user key at or after `target`. [`Index::len`] if there is none.
    #[inline]
    pub(super) fn find(&self, target: InternalKeyRef<'_>) -> usize {
        let Some(rest) = target.user_key.strip_prefix(self.prefix.as_slice()) else {
            return if target.user_key < self.prefix.as_slice() { 0 } else { self.len() };
        };
        let head = key_prefix(rest);
        let first = self.find_head(head);
        if self.heads.get(first) != Some(&head) {
            return first;
        }
        self.find_among_equal(first, head, rest, target.trailer)
    }

    /// The first entry whose head is at or after `head`.
    #[inline]
    fn find_head(&self, head: u64) -> usize {
        let before = self.sampled_heads.partition_point(|&h| h < head);
        let start = before.saturating_sub(1) * SAMPLE_INTERVAL;
        let end = (before * SAMPLE_INTERVAL).min(self.len());
        for entry in [start, start + SAMPLE_INTERVAL / 2] {
            prefetch(self.heads.as_ptr().wrapping_add(entry));
            prefetch(self.block_ends.as_ptr().wrapping_add(entry));
        }
        start + self.heads[start..end].partition_point(|&h| h < head)
    }

    /// [`Index::find`] among the keys from `first` on with equal heads.
    fn find_among_equal(&self, first: usize, head: u64, rest: &[u8], trailer: u64) -> usize {
        let equal = self.heads[first..].partition_point(|&h| h == head);
        let (mut low, mut high) = (first, first + equal);
        while low < high {
            let middle = low + (high - low) / 2;
            let order =
                self.suffix(middle).cmp(rest).then_with(|| trailer.cmp(&self.trailer(middle)));
            if order == Ordering::Less {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    fn suffix(&self, entry: usize) -> &[u8] {
        let start = if entry == 0 { 0 } else { self.suffix_ends[entry - 1] as usize };
        &self.suffixes[start..self.suffix_ends[entry] as usize]
    }

    fn trailer(&self, entry: usize) -> u64 {
        self.trailers.get(entry).copied().unwrap_or(0)
    }

    pub(super) fn key_bytes(&self) -> u64 {
        (self.prefix.len() * self.len() + self.suffixes.len()) as u64
    }

    /// Whether the last key is `user_key`, which is the largest of the table.
    pub(super) fn ends_with(&self, user_key: &[u8]) -> bool {
        let last = self.len() - 1;
        self.trailer(last) == 0
            && user_key
                .strip_prefix(self.prefix.as_slice())
                .is_some_and(|rest| rest == self.suffix(last))
    }

    pub(super) fn heap_bytes(&self) -> usize {
        self.prefix.capacity()
            + self.suffixes.capacity()
            + (self.heads.capacity() + self.sampled_heads.capacity()) * 8
            + (self.block_ends.capacity() + self.trailers.capacity()) * 8
            + self.suffix_ends.capacity() * 4
    }

    pub(super) fn heap_bytes_max(entry_count: u64, key_bytes: u64) -> u64 {
        let samples_bytes = entry_count.div_ceil(SAMPLE_INTERVAL as u64).saturating_mul(8);
        entry_count
            .saturating_mul(ENTRY_HEAP_BYTES)
            .saturating_add(samples_bytes)
            .saturating_add(key_bytes.saturating_mul(2))
    }

    /// Decodes an index over data blocks that end at `data_end_bytes`.
    pub(super) fn decode(payload: &[u8], data_end_bytes: u64) -> Parsed<Index> {
        const CUT: Malformed = Malformed("index is cut short");
        let (mut input, count) = payload.split_last_chunk::<4>().ok_or(CUT)?;
        let count = u32::from_le_bytes(*count) as usize;
        // An entry takes at least three bytes. Checked before memory is allocated.
        if count == 0 || count > input.len() / 3 {
            return Err(Malformed("index has an impossible number of entries"));
        }
        let (prefix, key_bytes) = measure(input, count)?;
        let mut index = Index {
            heads: Vec::with_capacity(count),
            sampled_heads: Vec::new(),
            suffixes: Vec::with_capacity(key_bytes - prefix.len() * count),
            suffix_ends: Vec::with_capacity(count),
            block_ends: Vec::with_capacity(count),
            trailers: Vec::new(),
            prefix,
        };
        let mut key = Vec::new();
        let mut block_end = 0u64;
        for entry in 0..count {
            let (block_bytes, own_trailer) = take_entry(&mut input, &mut key)?;
            let trailer = own_trailer.unwrap_or(0);
            let suffix = key.strip_prefix(index.prefix.as_slice()).ok_or(OUT_OF_ORDER)?;
            if entry > 0 {
                let before = index.suffix(entry - 1).cmp(suffix);
                if before.then_with(|| trailer.cmp(&index.trailer(entry - 1))) != Ordering::Less {
                    return Err(OUT_OF_ORDER);
                }
            }
            if own_trailer.is_some() && index.trailers.is_empty() {
                index.trailers.reserve_exact(count);
                index.trailers.resize(entry, 0);
            }
            if own_trailer.is_some() || !index.trailers.is_empty() {
                index.trailers.push(trailer);
            }
            index.heads.push(key_prefix(suffix));
            index.suffixes.extend_from_slice(suffix);
            index.suffix_ends.push(index.suffixes.len() as u32);
            block_end += u64::from(block_bytes);
            index.block_ends.push(block_end);
        }
        if !input.is_empty() || block_end != data_end_bytes {
            return Err(Malformed("index does not cover the data blocks"));
        }
        index.sampled_heads = index.heads.iter().copied().step_by(SAMPLE_INTERVAL).collect();
        Ok(index)
    }
}

/// Takes the block length and the trailer of an entry from `input`. `key` is the key of the
/// previous entry and becomes that of this one.
fn take_entry(input: &mut &[u8], key: &mut Vec<u8>) -> Parsed<(u32, Option<u64>)> {
    const CUT: Malformed = Malformed("index entry is cut short");
    let head = varint::take_u32(input).ok_or(CUT)?;
    let shared = (head >> 1) as usize;
    let unshared = varint::take_u32(input).ok_or(CUT)? as usize;
    if shared > key.len() || shared + unshared > limits::KEY_BYTES_MAX {
        return Err(Malformed("index entry has an impossible key length"));
    }
    key.truncate(shared);
    key.extend_from_slice(varint::take_bytes(input, unshared).ok_or(CUT)?);
    let block_bytes = varint::take_u32(input).ok_or(CUT)?;
    if block_bytes as usize <= BLOCK_TRAILER_BYTES {
        return Err(Malformed("index entry names an empty data block"));
    }
    let trailer = match head & 1 {
        0 => None,
        _ => {
            let bytes = varint::take_bytes(input, 8).ok_or(CUT)?;
            Some(u64::from_le_bytes(bytes.try_into().expect("eight bytes")))
        }
    };
    Ok((block_bytes, trailer))
}

/// The common prefix of all keys, and the sum of their lengths, which is below 4 GiB.
fn measure(mut input: &[u8], count: usize) -> Parsed<(Vec<u8>, usize)> {
    let mut key = Vec::new();
    let mut first: Option<Vec<u8>> = None;
    let mut key_bytes = 0usize;
    for _ in 0..count {
        take_entry(&mut input, &mut key)?;
        key_bytes += key.len();
        first.get_or_insert_with(|| key.clone());
    }
    // The caller checks that keys ascend, so the first and the last have the common prefix.
    let mut prefix = first.unwrap_or_default();
    prefix.truncate(common_prefix_bytes(&prefix, &key));
    if key_bytes < prefix.len() * count {
        return Err(OUT_OF_ORDER);
    }
    if u32::try_from(key_bytes).is_err() {
        return Err(Malformed("index keys exceed 4 GiB"));
    }
    Ok((prefix, key_bytes))
}

#[derive(Default)]
pub(super) struct IndexBuilder {
    payload: Vec<u8>,
    key: Vec<u8>,
    count: u32,
    key_bytes: u64,
}

impl IndexBuilder {
    /// Adds a data block of `block_bytes`. `trailer` is given only if the next block continues the
    /// same user key.
    pub(super) fn add(&mut self, separator: &[u8], trailer: Option<u64>, block_bytes: u32) {
        let shared = common_prefix_bytes(&self.key, separator);
        let out = &mut self.payload;
        varint::put_u64(out, (shared as u64) << 1 | u64::from(trailer.is_some()));
        varint::put_u64(out, (separator.len() - shared) as u64);
        out.extend_from_slice(&separator[shared..]);
        varint::put_u32(out, block_bytes);
        if let Some(trailer) = trailer {
            out.extend_from_slice(&trailer.to_le_bytes());
        }
        self.key.truncate(shared);
        self.key.extend_from_slice(&separator[shared..]);
        self.count += 1;
        self.key_bytes += separator.len() as u64;
    }

    pub(super) fn len(&self) -> u32 {
        self.count
    }

    pub(super) fn key_bytes(&self) -> u64 {
        self.key_bytes
    }

    pub(super) fn payload_bytes(&self) -> usize {
        self.payload.len() + 4
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.payload.capacity() + self.key.capacity()
    }

    pub(super) fn finish(mut self) -> Vec<u8> {
        self.payload.extend_from_slice(&self.count.to_le_bytes());
        self.payload
    }
}

/// Writes to `out` a short user key at or after `last` and before `next`.
pub(super) fn shortest_separator(last: &[u8], next: &[u8], out: &mut Vec<u8>) {
    debug_assert!(last < next);
    out.clear();
    let common = common_prefix_bytes(last, next);
    if common + 1 >= last.len() {
        out.extend_from_slice(last);
    } else if common + 1 < next.len() {
        // A proper prefix of `next` is before it, and this one is after `last`.
        out.extend_from_slice(&next[..=common]);
    } else if next[common] - last[common] > 1 {
        out.extend_from_slice(&last[..common]);
        out.push(last[common] + 1);
    } else {
        // Every key with this prefix of `last` is before `next`: increment a byte after the prefix.
        match last[common + 1..].iter().position(|&byte| byte != 0xff) {
            Some(position) => {
                let raised = common + 1 + position;
                out.extend_from_slice(&last[..raised]);
                out.push(last[raised] + 1);
            }
            None => out.extend_from_slice(last),
        }
    }
}

#[cfg(test)]
mod tests;
