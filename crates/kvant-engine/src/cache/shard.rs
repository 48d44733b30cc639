//! One shard of the block cache: a map into slots, and the queues of S3-FIFO.
//!
//! Invariants:
//! 1. Each slot in use is in exactly one of `small` and `main`, and a slot with a block is in `map` under its key.
//! 2. A slot without a block has been erased; it is freed when it comes to the front of its queue, or when many such have gathered.
//! 3. `small_bytes` and `main_bytes` are the sums of what the blocks in the queue are charged.

use super::{Admission, BlockKey, BuildBlockHasher};
use crate::format::FileNum;
use crate::stats::CacheStats;
use std::collections::{HashMap, VecDeque};
use std::hash::BuildHasher;
use std::sync::Arc;

/// The small queue's share of the shard: the paper's tenth.
const SMALL_SHARE: u64 = 10;
/// Largest use count.
const USES_MAX: u8 = 3;
/// Slots looked at under one lock by [`Shard::erase_file`].
const ERASE_SLOTS: usize = 1024;

pub(super) struct Shard<V> {
    map: HashMap<BlockKey, u32, BuildBlockHasher>,
    slots: Vec<Slot<V>>,
    free_slots: Vec<u32>,
    small: VecDeque<u32>,
    main: VecDeque<u32>,
    small_bytes: u64,
    main_bytes: u64,
    ghosts: Ghosts,
    hit_count: u64,
    miss_count: u64,
    evicted_count: u64,
}

struct Slot<V> {
    key: BlockKey,
    block: Option<Arc<V>>,
    bytes: u64,
    uses: u8,
    in_main: bool,
}

/// What [`Shard::erase_file`] did.
pub(super) struct Erased {
    pub(super) bytes: u64,
    pub(super) more: bool,
}

impl<V> Shard<V> {
    pub(super) fn new() -> Shard<V> {
        Shard {
            map: HashMap::default(),
            slots: Vec::new(),
            free_slots: Vec::new(),
            small: VecDeque::new(),
            main: VecDeque::new(),
            small_bytes: 0,
            main_bytes: 0,
            ghosts: Ghosts::default(),
            hit_count: 0,
            miss_count: 0,
            evicted_count: 0,
        }
    }

    #[inline]
    pub(super) fn get(&mut self, key: BlockKey) -> Option<Arc<V>> {
        let Some(&index) = self.map.get(&key) else {
            self.miss_count += 1;
            return None;
        };
        self.hit_count += 1;
        let slot = &mut self.slots[index as usize];
        slot.uses = (slot.uses + 1).min(USES_MAX);
        slot.block.clone()
    }

    /// Adds a block charged with `bytes`, or returns the one that is there already.
    pub(super) fn insert(
        &mut self,
        key: BlockKey,
        block: Arc<V>,
        bytes: u64,
        admission: Admission,
    ) -> Option<Arc<V>> {
        if let Some(&index) = self.map.get(&key) {
            return self.slots[index as usize].block.clone();
        }
        let in_main = self.ghosts.remove(key) || admission == Admission::Main;
        let slot = Slot { key, block: Some(block), bytes, uses: 0, in_main };
        let index = match self.free_slots.pop() {
            Some(index) => {
                self.slots[index as usize] = slot;
                index
            }
            None => {
                self.slots.push(slot);
                self.slots.len() as u32 - 1
            }
        };
        self.map.insert(key, index);
        if in_main {
            self.main.push_back(index);
            self.main_bytes += bytes;
        } else {
            self.small.push_back(index);
            self.small_bytes += bytes;
        }
        None
    }

    /// Evicts one block and returns it with what it was charged; `None` when there is none.
    pub(super) fn evict(&mut self) -> Option<(Arc<V>, u64)> {
        // Ends: each turn takes a slot off a queue for good, moves one from small to main, or uses up one of at most three uses.
        loop {
            let small_is_over = self.small_bytes * SMALL_SHARE >= self.small_bytes + self.main_bytes;
            let from_small = !self.small.is_empty() && (small_is_over || self.main.is_empty());
            let index = if from_small { self.small.pop_front() } else { self.main.pop_front() }?;
            let slot = &mut self.slots[index as usize];
            let Some(block) = slot.block.take() else {
                self.free_slots.push(index);
                continue;
            };
            let used_again = if from_small { slot.uses > 1 } else { slot.uses > 0 };
            if used_again {
                slot.block = Some(block);
                if from_small {
                    slot.uses = 0;
                    slot.in_main = true;
                    self.small_bytes -= slot.bytes;
                    self.main_bytes += slot.bytes;
                } else {
                    slot.uses -= 1;
                }
                self.main.push_back(index);
                continue;
            }
            let (key, bytes) = (slot.key, slot.bytes);
            self.forget(index, key, bytes, !from_small);
            self.free_slots.push(index);
            self.evicted_count += 1;
            if from_small {
                self.ghosts.add(key, self.map.len());
            }
            return Some((block, bytes));
        }
    }

    /// Takes a block whose slot has been emptied out of the map and the sums.
    fn forget(&mut self, index: u32, key: BlockKey, bytes: u64, in_main: bool) {
        let removed = self.map.remove(&key);
        debug_assert_eq!(removed, Some(index));
        if in_main {
            self.main_bytes -= bytes;
        } else {
            self.small_bytes -= bytes;
        }
    }

    /// Drops blocks of `file_num` in the slots from `from` on, and moves `from` behind those looked at.
    pub(super) fn erase_file(&mut self, file_num: FileNum, from: &mut usize) -> Erased {
        let end = self.slots.len().min(*from + ERASE_SLOTS);
        let mut erased_bytes = 0;
        for index in *from..end {
            let slot = &mut self.slots[index];
            if slot.key.file_num != file_num || slot.block.take().is_none() {
                continue;
            }
            let (key, bytes, in_main) = (slot.key, slot.bytes, slot.in_main);
            self.forget(index as u32, key, bytes, in_main);
            erased_bytes += bytes;
        }
        *from = end;
        let more = end < self.slots.len();
        if !more {
            self.free_erased_slots();
        }
        Erased { bytes: erased_bytes, more }
    }

    /// Frees the slots of erased blocks once they are a quarter of all: without evictions nothing else would.
    fn free_erased_slots(&mut self) {
        let erased_count = self.slots.len() - self.free_slots.len() - self.map.len();
        if erased_count * 4 < self.slots.len() {
            return;
        }
        let Shard { slots, free_slots, small, main, .. } = self;
        for queue in [small, main] {
            queue.retain(|&index| {
                let in_use = slots[index as usize].block.is_some();
                if !in_use {
                    free_slots.push(index);
                }
                in_use
            });
        }
    }

    pub(super) fn add_to(&self, stats: &mut CacheStats) {
        stats.entry_count += self.map.len() as u64;
        stats.hit_count += self.hit_count;
        stats.miss_count += self.miss_count;
        stats.evicted_count += self.evicted_count;
    }
}

/// Keys that left the small queue lately: one that comes back goes to the main queue at once.
#[derive(Default)]
struct Ghosts {
    /// Hashes of keys with the number of their addition, which tells renewed entries of `queue` from those that count.
    added: HashMap<u64, u64, BuildBlockHasher>,
    queue: VecDeque<(u64, u64)>,
    added_count: u64,
}

impl Ghosts {
    /// Remembers `key`; forgets the oldest beyond `count_max`.
    fn add(&mut self, key: BlockKey, count_max: usize) {
        let hash = BuildBlockHasher::default().hash_one(key);
        self.added_count += 1;
        self.added.insert(hash, self.added_count);
        self.queue.push_back((hash, self.added_count));
        while self.queue.len() > count_max.max(1) {
            let Some((oldest, number)) = self.queue.pop_front() else { break };
            if self.added.get(&oldest) == Some(&number) {
                self.added.remove(&oldest);
            }
        }
    }

    fn remove(&mut self, key: BlockKey) -> bool {
        self.added.remove(&BuildBlockHasher::default().hash_one(key)).is_some()
    }
}
