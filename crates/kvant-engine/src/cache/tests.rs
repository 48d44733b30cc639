use super::*;

const LIMIT_BYTES: u64 = 16 << 20;
const BLOCK_BYTES: usize = 4096;

fn key(file_num: u64, block: u64) -> BlockKey {
    BlockKey { file_num: FileNum(file_num), offset_bytes: block * 4101 }
}

fn new_cache() -> (Arc<MemoryBudget>, Arc<Cache<u64>>) {
    let memory = MemoryBudget::new(LIMIT_BYTES);
    (Arc::clone(&memory), Cache::new(memory, drop))
}

fn insert(cache: &Cache<u64>, key: BlockKey) {
    cache.insert(key, Arc::new(key.offset_bytes), BLOCK_BYTES, Admission::Probation, None);
}

/// Looks up `key` and inserts it after a miss. True for a hit.
fn read(cache: &Cache<u64>, key: BlockKey) -> bool {
    let hit = cache.get(key);
    if let Some(block) = &hit {
        assert_eq!(**block, key.offset_bytes);
    } else {
        insert(cache, key);
    }
    hit.is_some()
}

#[test]
fn the_first_of_two_inserted_blocks_is_kept() {
    let (memory, cache) = new_cache();
    let first = cache.insert(key(1, 1), Arc::new(10), 100, Admission::Probation, None);
    let second = cache.insert(key(1, 1), Arc::new(20), 100, Admission::Probation, None);
    assert_eq!((*first, *second), (10, 10));
    assert_eq!(cache.get(key(1, 1)).as_deref(), Some(&10));
    assert_eq!(cache.get(key(2, 1)), None);
    let stats = cache.stats();
    assert_eq!((stats.entry_count, stats.hit_count, stats.miss_count), (1, 1, 1));
    assert_eq!(stats.used_bytes, 100 + ENTRY_OVERHEAD_BYTES);
    assert_eq!(memory.used_bytes(Consumer::BlockCache), stats.used_bytes);
    drop(cache);
    assert_eq!(memory.used_bytes(Consumer::BlockCache), 0);
}

#[test]
fn no_reader_waits_for_a_map_to_grow_while_the_cache_fills_with_usual_blocks() {
    let (_memory, cache) = new_cache();
    let capacities = || -> Vec<usize> {
        cache.shards.iter().map(|shard| shard.0.lock().map.capacity()).collect()
    };
    let before = capacities();
    while cache.stats().evicted_count == 0 {
        insert(&cache, key(1, cache.stats().entry_count));
    }
    assert_eq!(capacities(), before);
}

#[test]
fn the_cache_fills_the_budget_and_shrinks_when_others_grow() {
    let (memory, cache) = new_cache();
    for block in 0..10_000 {
        insert(&cache, key(1, block));
        assert!(memory.used_bytes_total() <= LIMIT_BYTES - LIMIT_BYTES / 16);
    }
    let full = cache.stats();
    assert!(full.used_bytes > LIMIT_BYTES * 14 / 16 && full.evicted_count > 0, "{full:?}");

    let other = memory.reserve(Consumer::Memtables, LIMIT_BYTES / 2);
    cache.shrink_to_capacity();
    let shrunk = cache.stats();
    assert!(shrunk.used_bytes <= LIMIT_BYTES * 7 / 16, "{shrunk:?}");
    drop(other);

    let all = memory.reserve(Consumer::Requests, LIMIT_BYTES * 2);
    cache.shrink_to_capacity();
    let floor = cache.stats();
    assert_eq!(floor.capacity_bytes, LIMIT_BYTES / 16);
    assert!(
        floor.used_bytes <= LIMIT_BYTES / 16 && floor.used_bytes > LIMIT_BYTES / 20,
        "{floor:?}"
    );
    drop(all);
}

#[test]
fn reused_blocks_survive_a_scan() {
    let (_, cache) = new_cache();
    for _ in 0..4 {
        for block in 0..500 {
            read(&cache, key(1, block));
        }
    }
    for block in 0..20_000 {
        read(&cache, key(2, block));
    }
    let kept = (0..500).filter(|&block| read(&cache, key(1, block))).count();
    assert!(kept > 450, "{kept} of 500 hot blocks were kept");
}

#[test]
fn blocks_inserted_again_soon_after_eviction_go_to_the_main_queue() {
    let (_, cache) = new_cache();
    for block in 0..5_000 {
        read(&cache, key(1, block));
    }
    // They were evicted without a second use.
    let evicted: Vec<u64> =
        (0..5_000).filter(|&block| cache.get(key(1, block)).is_none()).collect();
    let lately: Vec<u64> = evicted[evicted.len() - 200..].to_vec();
    for &block in &lately {
        assert!(!read(&cache, key(1, block)));
    }
    for block in 0..5_000 {
        read(&cache, key(2, block));
    }
    let kept = lately.iter().filter(|&&block| cache.get(key(1, block)).is_some()).count();
    assert!(kept > 150, "{kept} of 200 were kept");
}

#[test]
fn indexes_in_use_stay_while_data_blocks_come_and_go() {
    const INDEX_COUNT: u64 = 60;
    const INDEX_BYTES: usize = 100_000;

    let mut rng = kvant_env::rng::Rng::new(1);
    let (_, cache) = new_cache();
    let mut lost_count = 0;
    for number in 0..300_000 {
        // The first of them are inserted, one after the other.
        let index = if number < INDEX_COUNT { number } else { rng.below(INDEX_COUNT) };
        if cache.get(key(1, index)).is_none() {
            lost_count += u64::from(number >= INDEX_COUNT);
            cache.insert(key(1, index), Arc::new(0), INDEX_BYTES, Admission::Main, None);
        }
        read(&cache, key(2, rng.below(20_000)));
    }
    assert_eq!(lost_count, 0);
}

#[test]
fn erasing_a_file_drops_only_its_blocks() {
    let (memory, cache) = new_cache();
    for round in 0..50 {
        for block in 0..40 {
            insert(&cache, key(1, block));
            insert(&cache, key(100 + round, block));
        }
        cache.erase_file(FileNum(100 + round));
        assert!(cache.get(key(100 + round, 3)).is_none() && cache.get(key(1, 3)).is_some());
    }
    let stats = cache.stats();
    assert_eq!((stats.entry_count, stats.evicted_count), (40, 0));
    assert_eq!(stats.used_bytes, 40 * (BLOCK_BYTES as u64 + ENTRY_OVERHEAD_BYTES));
    // Keys of erased blocks do not accumulate in the queues.
    let queued: usize = cache
        .shards
        .iter()
        .map(|shard| {
            let shard = shard.0.lock();
            shard.small.keys.len() + shard.main.keys.len()
        })
        .sum();
    assert!(queued <= 40 * 3 + cache.shards.len(), "{queued}");
    // The remaining blocks can still be evicted.
    let all = memory.reserve(Consumer::Requests, LIMIT_BYTES);
    for block in 0..1_000 {
        insert(&cache, key(3, block));
    }
    assert!(cache.stats().used_bytes <= LIMIT_BYTES / 16);
    drop(all);
}

#[test]
fn very_large_blocks_are_returned_but_not_cached() {
    let (memory, cache) = new_cache();
    let block =
        cache.insert(key(1, 1), Arc::new(7), LIMIT_BYTES as usize / 3, Admission::Probation, None);
    assert_eq!((*block, memory.used_bytes(Consumer::BlockCache)), (7, 0));
    cache.insert(key(1, 2), Arc::new(8), LIMIT_BYTES as usize / 3, Admission::Main, None);
    assert!(cache.get(key(1, 2)).is_some(), "an index or filter may be larger");
}

#[test]
fn concurrent_use_keeps_the_sums_consistent() {
    let (memory, cache) = new_cache();
    std::thread::scope(|scope| {
        for thread in 0..4u64 {
            let cache = &cache;
            scope.spawn(move || {
                let mut rng = kvant_env::rng::Rng::new(thread);
                for turn in 0..20_000 {
                    read(cache, key(rng.below(4), rng.below(2_000)));
                    if turn % 5_000 == 0 {
                        cache.erase_file(FileNum(thread));
                    }
                }
            });
        }
    });
    let stats = cache.stats();
    assert_eq!(stats.used_bytes, stats.entry_count * (BLOCK_BYTES as u64 + ENTRY_OVERHEAD_BYTES));
    assert_eq!(stats.used_bytes, memory.used_bytes(Consumer::BlockCache));
    assert_eq!(stats.hit_count + stats.miss_count, 80_000);
}

#[test]
fn evicted_blocks_that_nobody_reads_are_handed_over() {
    let memory = MemoryBudget::new(LIMIT_BYTES);
    let (sender, evicted) = std::sync::mpsc::channel();
    let cache = Cache::new(memory, move |block| sender.send(block).expect("received"));
    let held = cache.insert(key(1, 0), Arc::new(0), BLOCK_BYTES, Admission::Probation, None);
    for number in 1..10_000 {
        insert(&cache, key(1, number));
    }
    assert_eq!(cache.get(key(1, 0)), None, "evicted");
    let handed_over: Vec<u64> = evicted.try_iter().collect();
    assert_eq!(handed_over.len() as u64 + 1, cache.stats().evicted_count);
    assert!(!handed_over.contains(&held), "a reader has it");
}
