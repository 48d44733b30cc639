//! The block cache: decoded blocks of tables by file number and offset.
//!
//! Eviction is S3-FIFO (Yang, Zhang, Qiu, Yue, Rashmi, "FIFO queues are all you need for cache
//! eviction", SOSP 2023). New blocks enter a small queue and move to the main queue only if they
//! are used again, so a long range does not evict the blocks of point reads. A hit increments a
//! counter and moves nothing.
//!
//! Evictions are from the next shard in turn or one by chance, whichever has more bytes in its
//! small queue ("two choices": Azar, Broder, Karlin, Upfal, "Balanced allocations", STOC 1994). In
//! turn alone, blocks would come by chance and go evenly, and ever more shards would run out of
//! data blocks and give up indexes.
//!
//! Invariants:
//! 1. The capacity is the memory limit less the use of all other consumers and a reserve of 1/16,
//!    but at least 1/16. An insertion evicts down to the capacity, and
//!    [`Cache::shrink_to_capacity`] does so after other consumers have grown.
//! 2. Every block is charged its heap bytes and [`ENTRY_OVERHEAD_BYTES`] from insertion to
//!    eviction, under [`Consumer::BlockCache`]. A reader may hold an evicted block longer.
//!
//! Threads: any. Blocks are distributed over shards by hash. The mutex of a shard is held for one
//! lookup, insertion or eviction. No thread holds two shard locks. Readers of a table that has its
//! index in memory find blocks by [`Shortcut`]s, without a lock.

mod admission;
mod block_key;
mod shard;
#[expect(unsafe_code, reason = "counts the readers of a block in the word that has its address")]
mod shortcut;

pub(crate) use admission::Admission;
pub(crate) use block_key::BlockKey;
pub(crate) use shortcut::{Pinned, Shortcut, ShortcutOf};

use crate::format::FileNum;
use crate::stats::CacheStats;
use block_key::BuildBlockHasher;
use kvant_base::lock::NamedMutex;
use kvant_base::{Consumer, MemoryBudget};
use shard::{Resident, Shard};
use std::hash::BuildHasher;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Fewest and most shards: enough that threads rarely contend, and that a search for the blocks of
/// a file holds a lock briefly.
const SHARD_COUNT_MIN: usize = 64;
const SHARD_COUNT_MAX: usize = 1024;
/// Bytes of the budget per shard, between these bounds.
const SHARD_BYTES: u64 = 16 << 20;
/// A data block of small records with the default settings.
const BLOCK_BYTES_USUAL: u64 = 4 << 10;
/// Memory per entry beside the block: its `Arc`, and the entries in map, queue and ghosts at the
/// load factors of their containers.
const ENTRY_OVERHEAD_BYTES: u64 = 256;
/// Part of the capacity up to which filters are added. A lookup needs the index, and without a
/// filter at most a data block more.
const FILTERS_UP_TO: (u64, u64) = (3, 4);
/// An odd number derived from the golden ratio: multiplication spreads a count.
const GOLDEN_RATIO: usize = 0x9E37_79B9_7F4A_7C15;
/// The reserve that other consumers can grow into, and the minimum capacity: 1/16 of the budget.
const RESERVE_SHIFT: u32 = 4;

pub(crate) struct Cache<V> {
    memory: Arc<MemoryBudget>,
    /// Receives evicted blocks that no reader has.
    evicted: Box<dyn Fn(V) + Send + Sync>,
    shards: Box<[PaddedShard<V>]>,
    /// Bytes of the small queue of each shard, side by side: to compare shards takes few cache
    /// lines, and no lock.
    small_bytes: Box<[AtomicU64]>,
    used_bytes: AtomicU64,
    /// Those of indexes and filters.
    metadata_bytes: AtomicU64,
    /// The shard of the next eviction.
    hand: AtomicUsize,
}

/// Prevents false sharing between the locks of neighbouring shards.
#[repr(align(128))]
struct PaddedShard<V>(NamedMutex<Shard<V>>);

impl<V> Cache<V> {
    /// An empty cache. `evicted` receives evicted blocks that no reader has.
    pub(crate) fn new(
        memory: Arc<MemoryBudget>,
        evicted: impl Fn(V) + Send + Sync + 'static,
    ) -> Arc<Cache<V>> {
        let wanted = usize::try_from(memory.limit_bytes() / SHARD_BYTES).unwrap_or(SHARD_COUNT_MAX);
        let shard_count = wanted.clamp(SHARD_COUNT_MIN, SHARD_COUNT_MAX).next_power_of_two();
        let shard_bytes = (memory.limit_bytes() / shard_count as u64).min(SHARD_BYTES);
        let block_count = (shard_bytes / BLOCK_BYTES_USUAL) as usize;
        let shards = (0..shard_count)
            .map(|_| PaddedShard(NamedMutex::new("block cache", Shard::new(block_count))));
        Arc::new(Cache {
            memory,
            evicted: Box::new(evicted),
            shards: shards.collect(),
            small_bytes: (0..shard_count).map(|_| AtomicU64::new(0)).collect(),
            used_bytes: AtomicU64::new(0),
            metadata_bytes: AtomicU64::new(0),
            hand: AtomicUsize::new(0),
        })
    }

    #[inline]
    pub(crate) fn get(&self, key: BlockKey) -> Option<Arc<V>> {
        self.shards[self.shard(key)].0.lock().get(key)
    }

    /// Uncounts the last miss of `key`, whose reader stopped: the retry counts it again.
    pub(crate) fn take_back_miss(&self, key: BlockKey) {
        self.shards[self.shard(key)].0.lock().take_back_miss();
    }

    /// Adds a block of `heap_bytes`, and makes `shortcut` its own. Returns the cached block, which
    /// another thread may have added first.
    pub(crate) fn insert(
        &self,
        key: BlockKey,
        block: Arc<V>,
        heap_bytes: usize,
        admission: Admission,
        shortcut: Option<ShortcutOf<V>>,
    ) -> Arc<V> {
        let bytes = heap_bytes as u64 + ENTRY_OVERHEAD_BYTES;
        if bytes > admission.block_bytes_max(self.capacity_bytes()) {
            return block;
        }
        // Charged before the insertion: another thread may evict the block at once.
        self.used_bytes.fetch_add(bytes, Ordering::Relaxed);
        self.memory.add(Consumer::BlockCache, bytes);
        let added = Resident::new(&block, bytes, admission, shortcut);
        let resident = self.change(self.shard(key), |shard| shard.insert(key, added));
        if let Some(resident) = resident {
            self.uncharge(bytes);
            return resident;
        }
        self.shrink_to_capacity();
        block
    }

    /// Whether there is room for a filter of `heap_bytes`: with it, indexes and filters have at
    /// most [`FILTERS_UP_TO`].
    pub(crate) fn has_room_for_filter(&self, heap_bytes: u64) -> bool {
        let (part, whole) = FILTERS_UP_TO;
        let metadata_bytes = self.metadata_bytes.load(Ordering::Relaxed) + heap_bytes;
        metadata_bytes <= self.capacity_bytes() / whole * part
    }

    pub(crate) fn shrink_to_capacity(&self) {
        let mut empty_shards = 0;
        while self.used_bytes.load(Ordering::Relaxed) > self.capacity_bytes()
            && empty_shards < self.shards.len()
        {
            match self.change(self.next_to_evict_from(), Shard::evict) {
                Some((block, bytes)) => {
                    self.uncharge(bytes);
                    empty_shards = 0;
                    // Outside the lock, as freeing may be slow.
                    if let Some(block) = Arc::into_inner(block) {
                        (self.evicted)(block);
                    }
                }
                None => empty_shards += 1,
            }
        }
    }

    pub(crate) fn erase_file(&self, file_num: FileNum) {
        for shard in 0..self.shards.len() {
            let erased_bytes = self.change(shard, |shard| shard.erase_file(file_num));
            self.uncharge(erased_bytes);
        }
    }

    #[inline]
    fn shard(&self, key: BlockKey) -> usize {
        // The bits that the maps of the shards use least. The shard count is a power of two.
        let hash = BuildBlockHasher::default().hash_one(key) >> 40;
        hash as usize & (self.shards.len() - 1)
    }

    /// Of the next shard and one by chance, the one with more bytes in its small queue.
    fn next_to_evict_from(&self) -> usize {
        let number = self.hand.fetch_add(1, Ordering::Relaxed);
        let next = number & (self.shards.len() - 1);
        let other = (number.wrapping_mul(GOLDEN_RATIO) >> 40) & (self.shards.len() - 1);
        let small_bytes = |shard: usize| self.small_bytes[shard].load(Ordering::Relaxed);
        if small_bytes(other) > small_bytes(next) { other } else { next }
    }

    /// Changes a shard, and what is known of it without its lock.
    fn change<T>(&self, number: usize, change: impl FnOnce(&mut Shard<V>) -> T) -> T {
        let mut shard = self.shards[number].0.lock();
        let before = shard.metadata_bytes;
        let outcome = change(&mut shard);
        let added = shard.metadata_bytes.wrapping_sub(before);
        if added != 0 {
            self.metadata_bytes.fetch_add(added, Ordering::Relaxed);
        }
        self.small_bytes[number].store(shard.small.bytes, Ordering::Relaxed);
        outcome
    }

    fn uncharge(&self, bytes: u64) {
        self.used_bytes.fetch_sub(bytes, Ordering::Relaxed);
        self.memory.subtract(Consumer::BlockCache, bytes);
    }

    pub(crate) fn capacity_bytes(&self) -> u64 {
        let limit = self.memory.limit_bytes();
        let others = self
            .memory
            .used_bytes_total()
            .saturating_sub(self.memory.used_bytes(Consumer::BlockCache));
        let reserve = limit >> RESERVE_SHIFT;
        limit.saturating_sub(others).saturating_sub(reserve).max(reserve)
    }

    pub(crate) fn stats(&self) -> CacheStats {
        let mut stats = CacheStats {
            capacity_bytes: self.capacity_bytes(),
            used_bytes: self.used_bytes.load(Ordering::Relaxed),
            ..CacheStats::default()
        };
        for shard in &self.shards {
            shard.0.lock().add_to(&mut stats);
        }
        stats
    }
}

impl<V> Drop for Cache<V> {
    fn drop(&mut self) {
        self.memory.subtract(Consumer::BlockCache, *self.used_bytes.get_mut());
    }
}

#[cfg(test)]
mod tests;
