//! Builds data blocks.

use super::{
    BUCKET_EMPTY, BUCKET_SHARED, COUNTS_BYTES, HASHED_RESTARTS_MAX, RESTART_BYTES,
    RESTART_INTERVAL, bucket_of,
};
use crate::format::{InternalKeyRef, common_prefix_bytes};
use kvant_base::varint;

/// Buckets for so many keys: trades the size of the hash index for collisions.
const BUCKETS_PER_KEYS: (usize, usize) = (4, 3);
/// Shortest value for which the buffer grows by exactly what is needed instead of doubling.
const EXACT_VALUE_BYTES: usize = 1 << 20;

/// Collects the entries of one block at a time.
#[derive(Default)]
pub(in crate::table) struct DataBlockBuilder {
    /// The tails; [`DataBlockBuilder::finish`] appends the rest, so a large value is copied once.
    payload: Vec<u8>,
    entries: Vec<u8>,
    restarts: Vec<(u32, u32)>,
    entry_count: usize,
    /// Hash and restart interval of each distinct user key, twice if its versions are in two
    /// intervals.
    hashed_keys: Vec<(u64, u32)>,
    buckets: Vec<u8>,
}

impl DataBlockBuilder {
    /// Appends an entry. `previous_key` is the user key of the entry before; `hash` is the hash of
    /// the user key of `key`.
    pub(in crate::table) fn add(
        &mut self,
        key: InternalKeyRef<'_>,
        value: &[u8],
        previous_key: &[u8],
        hash: u64,
    ) {
        let mut shared = 0;
        if self.entry_count.is_multiple_of(RESTART_INTERVAL) {
            self.restarts.push((self.entries.len() as u32, self.payload.len() as u32));
        } else {
            shared = common_prefix_bytes(previous_key, key.user_key);
        }
        let interval = self.restarts.len() as u32 - 1;
        if self.hashed_keys.last() != Some(&(hash, interval)) {
            self.hashed_keys.push((hash, interval));
        }
        let suffix = &key.user_key[shared..];
        varint::put_u64(&mut self.entries, shared as u64);
        varint::put_u64(&mut self.entries, suffix.len() as u64);
        varint::put_u64(
            &mut self.entries,
            (varint::encoded_bytes(key.trailer) + value.len()) as u64,
        );
        self.entries.extend_from_slice(suffix);
        if value.len() >= EXACT_VALUE_BYTES {
            // Room for the entry, restart and counts of a block of this entry alone.
            self.payload
                .reserve_exact(Self::entry_bytes_max(key, value) + RESTART_BYTES + COUNTS_BYTES);
        }
        varint::put_u64(&mut self.payload, key.trailer);
        self.payload.extend_from_slice(value);
        self.entry_count += 1;
    }

    pub(in crate::table) fn is_empty(&self) -> bool {
        self.entry_count == 0
    }

    /// Length of the payload if the block were finished now, at most: the hash index may be left
    /// out.
    pub(in crate::table) fn payload_bytes(&self) -> usize {
        let restarts_bytes = self.restarts.len() * RESTART_BYTES;
        let (payload_bytes, entries_bytes) = (self.payload.len(), self.entries.len());
        payload_bytes + entries_bytes + restarts_bytes + self.bucket_count() + COUNTS_BYTES
    }

    /// Buckets of the hash index, of a byte each.
    fn bucket_count(&self) -> usize {
        let (buckets, keys) = BUCKETS_PER_KEYS;
        let bucket_count = (self.hashed_keys.len() * buckets / keys) | 1;
        let is_useful = (2..=HASHED_RESTARTS_MAX).contains(&self.restarts.len());
        if is_useful && bucket_count <= usize::from(u16::MAX) { bucket_count } else { 0 }
    }

    /// Upper bound of the bytes that an entry adds to the payload.
    pub(in crate::table) fn entry_bytes_max(key: InternalKeyRef<'_>, value: &[u8]) -> usize {
        key.user_key.len() + value.len() + 4 * varint::VARINT64_BYTES_MAX
    }

    /// Completes the block and returns its payload; [`DataBlockBuilder::clear`] starts the next
    /// one.
    pub(in crate::table) fn finish(&mut self) -> &[u8] {
        self.fill_buckets();
        let tails_bytes = self.payload.len() as u32;
        self.payload.extend_from_slice(&self.entries);
        for (entry, tail) in &self.restarts {
            self.payload.extend_from_slice(&entry.to_le_bytes());
            self.payload.extend_from_slice(&tail.to_le_bytes());
        }
        self.payload.extend_from_slice(&self.buckets);
        self.payload.extend_from_slice(&(self.buckets.len() as u16).to_le_bytes());
        self.payload.extend_from_slice(&(self.restarts.len() as u32).to_le_bytes());
        self.payload.extend_from_slice(&tails_bytes.to_le_bytes());
        &self.payload
    }

    fn fill_buckets(&mut self) {
        self.buckets.clear();
        let bucket_count = self.bucket_count();
        if bucket_count == 0 {
            return;
        }
        self.buckets.resize(bucket_count, BUCKET_EMPTY);
        for &(hash, interval) in &self.hashed_keys {
            let bucket = &mut self.buckets[bucket_of(hash, bucket_count)];
            *bucket = match *bucket {
                BUCKET_EMPTY => interval as u8,
                same if u32::from(same) == interval => same,
                _ => BUCKET_SHARED,
            };
        }
        let used = self.buckets.iter().filter(|&&bucket| bucket != BUCKET_EMPTY).count();
        let shared = self.buckets.iter().filter(|&&bucket| bucket == BUCKET_SHARED).count();
        if shared * 2 > used {
            self.buckets.clear();
        }
    }

    /// Starts the next block; keeps buffers of up to `keep_bytes`.
    pub(in crate::table) fn clear(&mut self, keep_bytes: usize) {
        self.payload.clear();
        self.payload.shrink_to(keep_bytes);
        self.entries.clear();
        self.restarts.clear();
        self.hashed_keys.clear();
        self.entry_count = 0;
    }

    pub(in crate::table) fn memory_bytes(&self) -> usize {
        self.payload.capacity()
            + self.entries.capacity()
            + self.restarts.capacity() * RESTART_BYTES
            + self.hashed_keys.capacity() * 16
    }
}
