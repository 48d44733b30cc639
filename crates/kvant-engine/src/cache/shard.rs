//! One shard of the block cache: a map, and the queues of S3-FIFO.
//!
//! Invariants:
//! 1. Each block in `map` is named in the queue that its `in_main` says. Queues may also name
//!    blocks that are gone (erased): they are skipped when they come to the front, and swept when
//!    they have become many.
//! 2. `small_bytes` and `main_bytes` are the sums of what the blocks of each queue are charged.

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

pub(super) struct Shard<V> {
    map: HashMap<BlockKey, Resident<V>, BuildBlockHasher>,
    small: VecDeque<BlockKey>,
    main: VecDeque<BlockKey>,
    small_bytes: u64,
    main_bytes: u64,
    ghosts: Ghosts,
    hit_count: u64,
    miss_count: u64,
    evicted_count: u64,
}

/// A block in the cache.
struct Resident<V> {
    block: Arc<V>,
    bytes: u64,
    uses: u8,
    in_main: bool,
}

impl<V> Shard<V> {
    pub(super) fn new() -> Shard<V> {
        Shard {
            map: HashMap::default(),
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
        let Some(resident) = self.map.get_mut(&key) else {
            self.miss_count += 1;
            return None;
        };
        self.hit_count += 1;
        if resident.uses < USES_MAX {
            resident.uses += 1;
        }
        Some(Arc::clone(&resident.block))
    }

    pub(super) fn take_back_miss(&mut self) {
        self.miss_count -= 1;
    }

    /// Adds a block charged with `bytes`, or returns the one that is there already.
    pub(super) fn insert(
        &mut self,
        key: BlockKey,
        block: Arc<V>,
        bytes: u64,
        admission: Admission,
    ) -> Option<Arc<V>> {
        if let Some(resident) = self.map.get(&key) {
            return Some(Arc::clone(&resident.block));
        }
        let in_main = self.ghosts.remove(key) || admission == Admission::Main;
        self.map.insert(key, Resident { block, bytes, uses: 0, in_main });
        if in_main {
            self.main.push_back(key);
            self.main_bytes += bytes;
        } else {
            self.small.push_back(key);
            self.small_bytes += bytes;
        }
        None
    }

    /// Evicts one block and returns it with what it was charged; `None` when there is none.
    pub(super) fn evict(&mut self) -> Option<(Arc<V>, u64)> {
        // Ends: each turn shortens a queue, moves a block from small to main, or uses up one of at
        // most three uses.
        loop {
            let small_is_over =
                self.small_bytes * SMALL_SHARE >= self.small_bytes + self.main_bytes;
            let from_main = self.small.is_empty() || !(small_is_over || self.main.is_empty());
            let key = if from_main { self.main.pop_front() } else { self.small.pop_front() }?;
            let Some(resident) =
                self.map.get_mut(&key).filter(|resident| resident.in_main == from_main)
            else {
                continue;
            };
            let used_again = if from_main { resident.uses > 0 } else { resident.uses > 1 };
            if !used_again {
                if !from_main {
                    self.ghosts.add(key, self.map.len());
                }
                self.evicted_count += 1;
                return self.remove(key);
            }
            if from_main {
                resident.uses -= 1;
            } else {
                resident.uses = 0;
                resident.in_main = true;
                self.small_bytes -= resident.bytes;
                self.main_bytes += resident.bytes;
            }
            self.main.push_back(key);
        }
    }

    /// Takes a block out of the map and the sums.
    fn remove(&mut self, key: BlockKey) -> Option<(Arc<V>, u64)> {
        let resident = self.map.remove(&key)?;
        let queue_bytes =
            if resident.in_main { &mut self.main_bytes } else { &mut self.small_bytes };
        *queue_bytes -= resident.bytes;
        Some((resident.block, resident.bytes))
    }

    /// Drops the blocks of `file_num` and returns what they were charged.
    pub(super) fn erase_file(&mut self, file_num: FileNum) -> u64 {
        let Shard { map, small, main, small_bytes, main_bytes, .. } = self;
        let before = *small_bytes + *main_bytes;
        map.retain(|key, resident| {
            let keep = key.file_num != file_num;
            if !keep {
                let queue_bytes =
                    if resident.in_main { &mut *main_bytes } else { &mut *small_bytes };
                *queue_bytes -= resident.bytes;
            }
            keep
        });
        // Without evictions, nothing else would take the names of erased blocks off the queues.
        if small.len() + main.len() > 2 * map.len() {
            small.retain(|key| map.get(key).is_some_and(|resident| !resident.in_main));
            main.retain(|key| map.get(key).is_some_and(|resident| resident.in_main));
        }
        before - *small_bytes - *main_bytes
    }

    /// Names in the queues, of blocks that are here and of some that are not.
    #[cfg(test)]
    pub(super) fn queued_count(&self) -> usize {
        self.small.len() + self.main.len()
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
    /// Hashes of keys with the number of their addition, which tells the entry of `queue` that
    /// counts from older ones.
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
        while self.queue.len() > count_max {
            let Some((oldest, number)) = self.queue.pop_front() else {
                break;
            };
            if self.added.get(&oldest) == Some(&number) {
                self.added.remove(&oldest);
            }
        }
    }

    fn remove(&mut self, key: BlockKey) -> bool {
        self.added.remove(&BuildBlockHasher::default().hash_one(key)).is_some()
    }
}
