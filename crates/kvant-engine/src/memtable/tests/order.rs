//! Entries are put in key order when that is read.

use super::*;

#[test]
fn entries_wait_for_a_read_in_key_order_which_the_writer_expects_from_then_on() {
    // All keys have room in the index.
    let chunks = ChunkPool::new(&MemoryBudget::new(1 << 30), 4096);
    let mut writer = MemtableWriter::new(&chunks, 1 << 20, usize::MAX, false);
    let memtable = Arc::clone(writer.memtable());
    let insert = |writer: &mut MemtableWriter, seq: u64| {
        // Scattered keys, each written twice.
        let key = (seq / 2).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes();
        let key_ref = InternalKeyRef::new(&key, SeqNum(seq), ValueKind::Put);
        insert_one(writer, key_ref, &seq.to_le_bytes());
        let found = writer.memtable().get(&key, key_hash(&key), SeqNum(seq));
        assert_eq!(found.map(|(found, ..)| found), Some(SeqNum(seq)));
        let before = writer.memtable().get(&key, key_hash(&key), SeqNum(seq - 1));
        assert_eq!(before.map(|(found, ..)| found), (seq % 2 == 1).then(|| SeqNum(seq - 1)));
    };
    let count = 2 * scaled(1_000);
    // Number 0 is no write's.
    (2..count).for_each(|seq| insert(&mut writer, seq));
    assert_eq!(memtable.unordered_count(), count - 2, "point reads need no order");
    assert!(!memtable.is_read_in_order());

    assert_eq!(entries(&memtable).len() as u64, count - 2);
    assert_eq!(memtable.unordered_count(), 0);
    assert!(memtable.is_read_in_order());
    (count..2 * count).for_each(|seq| insert(&mut writer, seq));
    assert_eq!(memtable.unordered_count(), 0, "the next range has nothing to sort");
}

#[test]
fn sorting_gives_way() {
    let mut writer = new_memtable();
    let mut rng = Rng::new(test_seed());
    let count = scaled(20_000);
    for seq in 1..=count {
        let key = rng.below(u64::MAX).to_be_bytes();
        insert_one(&mut writer, InternalKeyRef::new(&key, SeqNum(seq), ValueKind::Put), b"");
    }
    let mut step_count = 0;
    let mut for_flush = writer.memtable().sorted(&mut || step_count += 1);
    // At least when nodes are collected, looked at, and compared once.
    assert!(step_count > 2 * (count / 2048) + count / 32_768, "{step_count} steps");
    assert_eq!(writer.memtable().unordered_count(), count, "a flush links nothing");
    let found = entries_of(&mut *for_flush);
    assert!(found.len() as u64 == count && found.is_sorted_by(|a, b| a.0 < b.0));
}

/// Several readers need the order of what the writer has piled up, and of what it adds meanwhile.
#[test]
fn readers_that_need_the_order_at_the_same_time_help_each_other() {
    let seed = test_seed();
    println!("seed {seed}");
    let count = scaled(40_000).max(2_000);
    let mut rng = Rng::new(seed);
    let mut writer = new_memtable();
    let memtable = Arc::clone(writer.memtable());
    let mut insert = |writer: &mut MemtableWriter, seq: u64| {
        let key = rng.below(count).to_be_bytes();
        insert_one(writer, InternalKeyRef::new(&key, SeqNum(seq), ValueKind::Put), b"");
    };
    (1..=count).for_each(|seq| insert(&mut writer, seq));
    let inserted = AtomicU64::new(count);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                for _ in 0..5 {
                    let inserted = inserted.load(Ordering::Acquire);
                    let found = entries(&memtable);
                    assert!(found.is_sorted_by(|a, b| a.0 < b.0));
                    let seen = found.iter().filter(|((_, seq), _)| seq.0 <= inserted).count();
                    assert_eq!(seen as u64, inserted);
                }
            });
        }
        for seq in count + 1..=2 * count {
            insert(&mut writer, seq);
            inserted.store(seq, Ordering::Release);
        }
    });
    assert_eq!(entries(&memtable).len() as u64, 2 * count);
}

/// A range begins to link the entries while a flush collects them, or has sorted them.
#[test]
fn a_flush_beside_a_range_has_all_entries_in_order() {
    let seed = test_seed();
    println!("seed {seed}");
    let count = scaled(20_000).max(4_096);
    let mut rng = Rng::new(seed);
    for attempt in 0..scaled(50).max(4) {
        let mut writer = new_memtable();
        for seq in 1..=count {
            let key = rng.below(count).to_be_bytes();
            insert_one(&mut writer, InternalKeyRef::new(&key, SeqNum(seq), ValueKind::Put), b"v");
        }
        let memtable = writer.memtable();
        let range_begins_at = rng.below(24);
        let mut step = 0;
        let mut ranges = Vec::new();
        let mut for_flush = memtable.sorted(&mut || {
            if step == range_begins_at {
                ranges.push(entries(memtable));
            }
            step += 1;
        });
        let flushed = entries_of(&mut *for_flush);
        assert!(flushed.is_sorted_by(|a, b| a.0 < b.0), "attempt {attempt}");
        assert_eq!(flushed.len() as u64, count, "attempt {attempt}");
        ranges.push(entries(memtable));
        assert!(ranges.iter().all(|range| *range == flushed), "attempt {attempt}");
    }
}
