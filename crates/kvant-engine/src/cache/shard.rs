//! One shard of the block cache: a map, and the queues of S3-FIFO.
//!
//! Invariants:
//! 1. The key of each block in `map` is in the queue that its `in_main` names. Queues may also
//!    contain keys of erased blocks: these are skipped at the front, and removed when there are
//!    many.
//! 2. `bytes` of a queue is the sum of the charges of its data blocks. Indexes and filters, in the
//!    main queue, have `metadata_bytes` and are not weighed against data: where they have most of a
//!    shard, an eviction would always be from main, and take them between two uses.
//! 3. The shortcut of a block has it while it is in `map`; it is set and emptied under the lock.

use super::admission::Admission;
use super::block_key::{BlockKey, BuildBlockHasher};
use super::shortcut::ShortcutOf;
use crate::format::FileNum;
use crate::stats::CacheStats;
use std::collections::{HashMap, VecDeque};
use std::hash::BuildHasher;
use std::sync::Arc;

/// The small queue holds one part in this many of the shard's data, as in the paper.
const SMALL_SHARE: u64 = 10;
const USES_MAX: u8 = 3;

pub(super) struct Shard<V> {
    pub(super) map: HashMap<BlockKey, Resident<V>, BuildBlockHasher>,
    pub(super) small: Queue,
    pub(super) main: Queue,
    /// Charges of indexes and filters.
    pub(super) metadata_bytes: u64,
    ghosts: Ghosts,
    hit_count: u64,
    miss_count: u64,
    evicted_count: u64,
}

#[derive(Default)]
pub(super) struct Queue {
    pub(super) keys: VecDeque<BlockKey>,
    pub(super) bytes: u64,
}

pub(super) struct Resident<V> {
    block: Arc<V>,
    /// The charge.
    bytes: u64,
    admission: Admission,
    /// Without those of the shortcut.
    uses: u8,
    in_main: bool,
    /// Has the block as long as this is in the map.
    shortcut: Option<ShortcutOf<V>>,
}

impl<V> Resident<V> {
    pub(super) fn new(
        block: &Arc<V>,
        bytes: u64,
        admission: Admission,
        shortcut: Option<ShortcutOf<V>>,
    ) -> Resident<V> {
        let (block, in_main) = (Arc::clone(block), admission == Admission::Main);
        Resident { block, bytes, admission, uses: 0, in_main, shortcut }
    }

    /// What it adds to the bytes of its queue.
    fn data_bytes(&self) -> u64 {
        if self.admission == Admission::Probation { self.bytes } else { 0 }
    }

    fn metadata_bytes(&self) -> u64 {
        self.bytes - self.data_bytes()
    }

    /// Adds the uses of the shortcut.
    fn count_uses(&mut self) {
        if let Some(shortcut) = &self.shortcut {
            self.uses = USES_MAX.min(self.uses + shortcut.take_uses());
        }
    }
}

impl<V> Drop for Resident<V> {
    fn drop(&mut self) {
        if let Some(shortcut) = &self.shortcut {
            drop(shortcut.take());
        }
    }
}

impl<V> Shard<V> {
    /// An empty shard with room for `block_count` blocks: a map that grows is copied into fresh
    /// memory while a reader waits. The system gives the pages of that room when they are used.
    pub(super) fn new(block_count: usize) -> Shard<V> {
        Shard {
            map: HashMap::with_capacity_and_hasher(block_count, BuildBlockHasher::default()),
            small: Queue::default(),
            main: Queue::default(),
            metadata_bytes: 0,
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

    fn queue(&mut self, in_main: bool) -> &mut Queue {
        if in_main { &mut self.main } else { &mut self.small }
    }

    /// Adds a block, or returns the one that is already there.
    pub(super) fn insert(&mut self, key: BlockKey, mut added: Resident<V>) -> Option<Arc<V>> {
        if let Some(resident) = self.map.get(&key) {
            // The shortcut is that of the resident.
            added.shortcut = None;
            return Some(Arc::clone(&resident.block));
        }
        added.in_main |= self.ghosts.remove(key);
        if let Some(shortcut) = &added.shortcut {
            shortcut.set(Arc::clone(&added.block));
        }
        let queue = self.queue(added.in_main);
        queue.keys.push_back(key);
        queue.bytes += added.data_bytes();
        self.metadata_bytes += added.metadata_bytes();
        self.map.insert(key, added);
        None
    }

    /// Evicts one block and returns it with its charge; `None` if the shard is empty.
    pub(super) fn evict(&mut self) -> Option<(Arc<V>, u64)> {
        // Terminates: each iteration shortens a queue, moves a block from small to main, or uses up
        // one of at most `USES_MAX` uses.
        loop {
            let small_is_over =
                self.small.bytes * SMALL_SHARE >= self.small.bytes + self.main.bytes;
            let from_main =
                self.small.keys.is_empty() || !(small_is_over || self.main.keys.is_empty());
            let key = self.queue(from_main).keys.pop_front()?;
            let Some(resident) =
                self.map.get_mut(&key).filter(|resident| resident.in_main == from_main)
            else {
                continue;
            };
            resident.count_uses();
            let used_again = if from_main { resident.uses > 0 } else { resident.uses > 1 };
            if !used_again {
                if !from_main {
                    self.ghosts.add(key, self.map.len());
                }
                self.evicted_count += 1;
                let resident = self.map.remove(&key)?;
                self.queue(from_main).bytes -= resident.data_bytes();
                self.metadata_bytes -= resident.metadata_bytes();
                return Some((Arc::clone(&resident.block), resident.bytes));
            }
            if from_main {
                resident.uses -= 1;
            } else {
                resident.uses = 0;
                resident.in_main = true;
                self.small.bytes -= resident.data_bytes();
                self.main.bytes += resident.data_bytes();
            }
            self.main.keys.push_back(key);
        }
    }

    /// Drops the blocks of `file_num` and returns the sum of their charges.
    pub(super) fn erase_file(&mut self, file_num: FileNum) -> u64 {
        let Shard { map, small, main, metadata_bytes, .. } = self;
        let mut erased_bytes = 0;
        for (_, resident) in map.extract_if(|key, _| key.file_num == file_num) {
            let queue = if resident.in_main { &mut *main } else { &mut *small };
            queue.bytes -= resident.data_bytes();
            *metadata_bytes -= resident.metadata_bytes();
            erased_bytes += resident.bytes;
        }
        // Without evictions, nothing else removes the keys of erased blocks from the queues.
        if small.keys.len() + main.keys.len() > 2 * map.len() {
            small.keys.retain(|key| map.get(key).is_some_and(|resident| !resident.in_main));
            main.keys.retain(|key| map.get(key).is_some_and(|resident| resident.in_main));
        }
        erased_bytes
    }

    pub(super) fn add_to(&self, stats: &mut CacheStats) {
        stats.entry_count += self.map.len() as u64;
        stats.hit_count += self.hit_count;
        stats.miss_count += self.miss_count;
        stats.evicted_count += self.evicted_count;
    }
}

/// Keys evicted from the small queue recently. A block that returns goes to the main queue.
#[derive(Default)]
struct Ghosts {
    /// The latest addition of each hash of a key, which tells its entry in `queue` from older ones.
    added: HashMap<u64, u64, BuildBlockHasher>,
    /// Hashes with the number of their addition.
    queue: VecDeque<(u64, u64)>,
    added_count: u64,
}

impl Ghosts {
    /// Adds `key` and drops the oldest keys beyond `count_max`.
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
