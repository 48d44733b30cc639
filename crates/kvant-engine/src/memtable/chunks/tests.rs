use super::super::arena::Slots;
use super::*;
use std::sync::atomic::AtomicU64;

const SECOND_NS: u64 = 1_000_000_000;

/// A pool for memtables of `chunk_count` chunks, its budget, and how often it called for its task.
fn pool(chunk_count: u64) -> (Arc<ChunkPool>, Arc<MemoryBudget>, Arc<AtomicU64>) {
    let memory = MemoryBudget::new(1 << 30);
    let pool = ChunkPool::new(&memory, chunk_count * CHUNK_BYTES as u64);
    let calls = Arc::new(AtomicU64::new(0));
    let called = Arc::clone(&calls);
    pool.on_work(move || {
        called.fetch_add(1, Ordering::Relaxed);
    });
    calls.store(0, Ordering::Relaxed);
    (pool, memory, calls)
}

fn spare_count(pool: &ChunkPool) -> u64 {
    pool.stats().spare_bytes / CHUNK_BYTES as u64
}

fn tend_until_idle(pool: &ChunkPool, now_ns: u64) -> Step {
    loop {
        match pool.tend(now_ns) {
            Step::Worked => {}
            step => return step,
        }
    }
}

#[test]
fn chunks_are_prepared_ahead_once_a_memtable_uses_them() {
    let (pool, memory, calls) = pool(8);
    assert_eq!(tend_until_idle(&pool, 1), Step::Idle);
    assert_eq!(spare_count(&pool), 0, "a database that is not written needs none");

    pool.expect_use();
    assert_eq!(calls.load(Ordering::Relaxed), 1);
    assert_eq!(tend_until_idle(&pool, 1), Step::Idle);
    assert_eq!(spare_count(&pool), 2);
    assert_eq!(memory.used_bytes(Consumer::Memtables), 2 * CHUNK_BYTES as u64);

    let taken = [pool.take(), pool.take(), pool.take()];
    assert_eq!(calls.load(Ordering::Relaxed), 4, "each take left too few");
    let stats = pool.stats();
    assert_eq!((stats.taken_count, stats.unprepared_count), (3, 1), "the task was late for one");
    assert_eq!(memory.used_bytes(Consumer::Memtables), 0, "the memtable counts its chunks");
    drop(taken);
}

#[test]
fn chunks_of_former_memtables_are_kept_while_they_are_needed() {
    let (pool, memory, _) = pool(8);
    pool.expect_use();
    let taken: Vec<Mapping> = (0..12).map(|_| pool.take()).collect();
    let starts: Vec<_> = taken.iter().map(Mapping::start).collect();
    let (small, huge) = (map(CHUNK_BYTES / 2), map(2 * CHUNK_BYTES));
    pool.put_back(taken.into_iter().chain([small, huge]).collect(), Vec::new());
    assert_eq!(spare_count(&pool), 8, "as many as may be kept, of one size");

    let mut now_ns = SECOND_NS;
    for _ in 0..5 {
        assert_eq!(tend_until_idle(&pool, now_ns), Step::IdleUntil(now_ns + WINDOW_NS));
        let taken: Vec<Mapping> = (0..8).map(|_| pool.take()).collect();
        assert!(taken.iter().all(|chunk| starts.contains(&chunk.start())));
        pool.put_back(taken, Vec::new());
        now_ns += WINDOW_NS;
    }
    assert_eq!(pool.stats().unprepared_count, 12, "of the first memtable");

    // Then a memtable needs three at a time.
    assert_eq!(tend_until_idle(&pool, now_ns), Step::IdleUntil(now_ns + WINDOW_NS));
    let taken: Vec<Mapping> = (0..3).map(|_| pool.take()).collect();
    pool.put_back(taken, Vec::new());
    now_ns += WINDOW_NS;
    assert_eq!(tend_until_idle(&pool, now_ns), Step::IdleUntil(now_ns + WINDOW_NS));
    assert_eq!(spare_count(&pool), 5, "three, and two that are ready");

    assert_eq!(tend_until_idle(&pool, now_ns + WINDOW_NS), Step::Idle);
    assert_eq!(spare_count(&pool), 2);
    assert_eq!(memory.used_bytes(Consumer::Memtables), 2 * CHUNK_BYTES as u64);

    // The next ones get a window of their own.
    pool.put_back((0..4).map(|_| map(CHUNK_BYTES)).collect(), Vec::new());
    let now_ns = now_ns + 10 * WINDOW_NS;
    assert_eq!(tend_until_idle(&pool, now_ns), Step::IdleUntil(now_ns + WINDOW_NS));
}

#[test]
fn a_pool_that_keeps_nothing_never_works() {
    let (pool, _, calls) = pool(0);
    pool.expect_use();
    let chunk = pool.take();
    let single = pool.take_single(100_000);
    pool.put_back(vec![chunk], vec![single]);
    assert_eq!(tend_until_idle(&pool, 1), Step::Idle);
    assert_eq!((spare_count(&pool), calls.load(Ordering::Relaxed)), (0, 0));
}

#[test]
fn a_long_piece_reuses_the_chunk_of_one_of_about_the_same_length() {
    let (pool, memory, calls) = pool(8);
    let lengths = [100_000, 300_000, 300_000, 9 << 20];
    let taken: Vec<Mapping> = lengths.iter().map(|&bytes| pool.take_single(bytes)).collect();
    assert!(taken.iter().zip(lengths).all(|(chunk, bytes)| chunk.bytes() >= bytes));
    let starts: Vec<_> = taken.iter().map(Mapping::start).collect();
    let bytes: u64 = taken.iter().map(|chunk| chunk.bytes() as u64).sum();
    pool.put_back(Vec::new(), taken);
    assert_eq!(calls.load(Ordering::Relaxed), 1, "the task releases them in the end");
    assert_eq!(memory.used_bytes(Consumer::Memtables), bytes);

    let reused = [99_000, 299_000, 250_000].map(|bytes| pool.take_single(bytes));
    assert_eq!(reused.each_ref().map(Mapping::start), [starts[0], starts[2], starts[1]]);
    let stats = pool.stats();
    assert_eq!((stats.taken_count, stats.unprepared_count), (7, 4));
    let too_long = pool.take_single(200_000);
    assert!(!starts.contains(&too_long.start()), "9 MiB for a piece of 200,000 bytes");

    // Those that no memtable needed in a window are released, whatever their length.
    assert_eq!(pool.tend(SECOND_NS), Step::IdleUntil(2 * SECOND_NS));
    let [first, _, _] = reused;
    pool.put_back(Vec::new(), vec![first]);
    assert_eq!(pool.tend(2 * SECOND_NS), Step::IdleUntil(3 * SECOND_NS));
    let left_bytes = memory.used_bytes(Consumer::Memtables);
    assert!((100_000..120_000).contains(&left_bytes), "{left_bytes} bytes");
    assert_eq!(pool.tend(3 * SECOND_NS), Step::Idle);
    assert_eq!(memory.used_bytes(Consumer::Memtables), 0);
}

#[test]
fn chunks_are_prepared_also_where_single_ones_take_the_room() {
    let (pool, _, _) = pool(2);
    let full = pool.take_single(2 * CHUNK_BYTES);
    let (one_more, full_bytes) = (pool.take_single(100_000), full.bytes() as u64);
    pool.put_back(Vec::new(), vec![full, one_more]);
    assert_eq!(pool.stats().spare_bytes, full_bytes, "there was no room for both");
    pool.expect_use();
    assert_eq!(tend_until_idle(&pool, 1), Step::IdleUntil(1 + WINDOW_NS));
    assert_eq!(pool.stats().spare_bytes, full_bytes + 2 * CHUNK_BYTES as u64);
}

/// An index of so many bytes, whose slots were 0 and are not any more.
fn use_index(pool: &Arc<ChunkPool>, bytes: usize) -> Slots {
    let slots = Slots::new(bytes / size_of::<AtomicU64>(), pool);
    assert!(slots.iter().all(|slot| slot.swap(1, Ordering::Relaxed) == 0));
    slots
}

#[test]
fn the_index_of_the_next_memtable_is_zeroed_in_the_memory_of_a_former_one() {
    let (pool, memory, _) = pool(8);
    pool.expect_use();
    let bytes = 2 * CHUNK_BYTES;
    let first = use_index(&pool, bytes);
    assert_eq!(tend_until_idle(&pool, 1), Step::Idle);
    let ready_bytes = (READY_COUNT_MAX * CHUNK_BYTES + bytes) as u64;
    assert_eq!(memory.used_bytes(Consumer::Memtables), ready_bytes, "chunks and one index");

    let second = use_index(&pool, bytes);
    let first_start = first.as_ptr();
    assert_ne!(second.as_ptr(), first_start);
    drop(first);
    tend_until_idle(&pool, 1);
    let third = use_index(&pool, bytes);
    assert_eq!(third.as_ptr(), first_start);

    // Of several that come back, one is kept besides the one that is ready, and not for long.
    tend_until_idle(&pool, 1);
    drop((second, third));
    assert_eq!(memory.used_bytes(Consumer::Memtables), ready_bytes + bytes as u64);
    let now_ns = 1 + WINDOW_NS;
    assert_eq!(tend_until_idle(&pool, now_ns), Step::IdleUntil(now_ns + WINDOW_NS));
    assert_eq!(tend_until_idle(&pool, now_ns + WINDOW_NS), Step::Idle);
    assert_eq!(memory.used_bytes(Consumer::Memtables), ready_bytes);
}

#[test]
fn an_index_of_another_length_takes_the_place_of_those_before() {
    let (pool, memory, _) = pool(8);
    pool.expect_use();
    let long = use_index(&pool, 2 * CHUNK_BYTES);
    tend_until_idle(&pool, 1);
    let short = use_index(&pool, CHUNK_BYTES);
    assert_eq!(size_of_val(&*short), CHUNK_BYTES);
    tend_until_idle(&pool, 1);
    drop(long);
    let left_bytes = ((READY_COUNT_MAX + 1) * CHUNK_BYTES) as u64;
    assert_eq!(memory.used_bytes(Consumer::Memtables), left_bytes, "the long one is of no use");
    drop(use_index(&pool, CHUNK_BYTES / 2));
    assert_eq!(memory.used_bytes(Consumer::Memtables), left_bytes, "small pages are not prepared");
}
