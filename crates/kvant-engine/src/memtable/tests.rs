use super::*;
use crate::cursor::InternalIterator;
use crate::format::key_hash;
use crate::format::value::Owned;
use kvant_base::{Consumer, MemoryBudget};
use kvant_env::rng::Rng;
use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

mod order;

/// The order of the list: user key ascending, sequence number descending.
type ModelKey = (Vec<u8>, std::cmp::Reverse<u64>);
type Model = BTreeMap<ModelKey, (ValueKind, Vec<u8>)>;

fn test_seed() -> u64 {
    let seed = std::env::var("KVANT_TEST_SEED")
        .ok()
        .map(|text| text.parse().expect("KVANT_TEST_SEED is a number"));
    let seed = seed.unwrap_or_else(kvant_env::testing::entropy_seed);
    eprintln!("KVANT_TEST_SEED={seed}");
    seed
}

/// Iterations of a test: few under Miri, which takes a thousand times as long.
fn scaled(count: u64) -> u64 {
    if cfg!(miri) { count / 50 } else { count }
}

fn new_memtable() -> MemtableWriter {
    new_memtable_that(false)
}

fn new_memtable_that(keeps_order: bool) -> MemtableWriter {
    let chunks = ChunkPool::new(&MemoryBudget::new(1 << 30), 4096);
    MemtableWriter::new(&chunks, 4096, usize::MAX, keeps_order)
}

fn insert_one(writer: &mut MemtableWriter, key: InternalKeyRef<'_>, value: &[u8]) {
    writer.insert(std::iter::once((key, value)));
}

/// A key from a small space with many prefixes, zero bytes, and lengths around eight.
fn random_key(rng: &mut Rng) -> Vec<u8> {
    let count = rng.below(12) as usize;
    (0..count)
        .map(|_| {
            if rng.one_in(3) {
                [0x7f, 0x80, 0xff][rng.below(3) as usize]
            } else {
                rng.below(2) as u8
            }
        })
        .collect()
}

fn random_kind(rng: &mut Rng) -> ValueKind {
    [ValueKind::Delete, ValueKind::Put, ValueKind::PutExpiring][rng.below(3) as usize]
}

fn entries(memtable: &Memtable) -> Vec<(ModelKey, (ValueKind, Vec<u8>))> {
    entries_of(&mut memtable.iter())
}

fn entries_of(iter: &mut dyn InternalIterator) -> Vec<(ModelKey, (ValueKind, Vec<u8>))> {
    iter.seek_to_first().unwrap();
    let mut found = Vec::new();
    while iter.valid() {
        found.push(entry_at(iter));
        iter.next().unwrap();
    }
    found
}

fn entry_at(iter: &dyn InternalIterator) -> (ModelKey, (ValueKind, Vec<u8>)) {
    let key = iter.key();
    let model_key = (key.user_key.to_vec(), std::cmp::Reverse(key.seq().0));
    (model_key, (key.kind().unwrap(), iter.value().to_vec()))
}

/// Point reads at random numbers, and searches if `in_order`, find what the model has.
fn check_reads(memtable: &Memtable, model: &Model, rng: &mut Rng, in_order: bool) {
    let key = model.keys().nth(rng.below(model.len() as u64) as usize).unwrap().0.clone();
    let key = if rng.one_in(4) { random_key(rng) } else { key };
    let seq = rng.below(model.len() as u64 + 2);
    let at_or_after = model.range((key.clone(), std::cmp::Reverse(seq))..).next();
    let visible = at_or_after.filter(|((found, _), _)| *found == key);
    let expected =
        visible.map(|((_, seq), (kind, value))| (SeqNum(seq.0), *kind, value.as_slice()));
    assert_eq!(memtable.get(&key, key_hash(&key), SeqNum(seq)), expected);
    if in_order {
        let mut iter = memtable.iter();
        iter.seek(InternalKeyRef::seek(&key, SeqNum(seq))).unwrap();
        let found = iter.valid().then(|| entry_at(&iter));
        assert_eq!(found, at_or_after.map(|(key, value)| (key.clone(), value.clone())));
    }
}

#[test]
fn a_memtable_agrees_with_a_sorted_map() {
    let seed = test_seed();
    println!("seed {seed}");
    let mut rng = Rng::new(seed);
    for _ in 0..scaled(100) {
        let mut writer = new_memtable_that(rng.one_in(3));
        let memtable = Arc::clone(writer.memtable());
        let is_read_early = rng.one_in(2);
        let shared_bytes = rng.below(20) as usize;
        let shared = if rng.one_in(2) { vec![b'k'; shared_bytes] } else { Vec::new() };
        let mut model = Model::new();
        let count = 1 + rng.below(scaled(1_500).max(20));
        let mut group = Vec::new();
        for seq in 1..=count {
            let (key, kind) =
                ([shared.clone(), random_key(&mut rng)].concat(), random_kind(&mut rng));
            let value_bytes = if rng.one_in(50) { 3000 } else { rng.below(20) as usize };
            let value = rng.bytes(value_bytes);
            group.push((key, seq, kind, value));
            // Groups of one and of many, in order and not.
            if seq < count && !rng.one_in(12) {
                continue;
            }
            if rng.one_in(4) {
                group.sort_by_key(|(key, seq, ..): &(Vec<u8>, u64, _, _)| (key.clone(), *seq));
            }
            let mut ops = group.iter().map(|(key, seq, kind, value)| {
                (InternalKeyRef::new(key, SeqNum(*seq), *kind), value.as_slice())
            });
            if rng.one_in(4) {
                ops.for_each(|(key, value)| insert_one(&mut writer, key, value));
            } else {
                writer.insert(&mut ops);
            }
            for (key, seq, kind, value) in group.drain(..) {
                model.insert((key, std::cmp::Reverse(seq)), (kind, value));
            }
            let in_order = is_read_early && rng.one_in(8);
            check_reads(&memtable, &model, &mut rng, in_order);
        }
        let expected: Vec<_> = model.clone().into_iter().collect();
        let mut for_flush = memtable.sorted(&mut || {});
        assert_eq!(entries_of(&mut *for_flush), expected);
        assert_eq!(entries(&memtable), expected);
        assert_eq!(entries_of(&mut *for_flush), expected, "a range has put them in order");
        let (target, _) = &expected[rng.below(count) as usize];
        for_flush.seek(InternalKeyRef::seek(&target.0, SeqNum(target.1.0))).unwrap();
        assert_eq!(entry_at(&*for_flush).0, *target);
        assert_eq!(memtable.entry_count(), count);
        assert_eq!(memtable.seq_range(), Some((SeqNum(1), SeqNum(count))));
        let data_bytes: usize =
            model.iter().map(|((key, _), (_, value))| key.len() + value.len()).sum();
        assert_eq!(memtable.data_bytes(), data_bytes as u64);
        for _ in 0..scaled(300) {
            check_reads(&memtable, &model, &mut rng, true);
        }
    }
}

#[test]
fn an_empty_memtable_has_no_entries() {
    let writer = new_memtable();
    let memtable = writer.memtable();
    assert!(memtable.is_empty());
    assert_eq!((memtable.entry_count(), memtable.data_bytes(), memtable.seq_range()), (0, 0, None));
    assert_eq!(memtable.get(b"", key_hash(b""), SeqNum::MAX), None);
    let mut iter = memtable.iter();
    assert!(!iter.valid());
    iter.seek_to_first().unwrap();
    assert!(!iter.valid());
    iter.seek(InternalKeyRef::seek(b"", SeqNum::MAX)).unwrap();
    assert!(!iter.valid());
}

#[test]
fn every_version_of_a_key_is_found_at_its_sequence_number() {
    let mut writer = new_memtable();
    let count = scaled(5_000);
    // Odd numbers.
    for seq in (0..count).map(|index| 2 * index + 1) {
        let key = InternalKeyRef::new(b"key", SeqNum(seq), ValueKind::Put);
        insert_one(&mut writer, key, &seq.to_le_bytes());
    }
    let memtable = writer.memtable();
    let versions: Vec<u64> = entries(memtable).iter().map(|((_, seq), _)| seq.0).collect();
    assert!(versions.is_sorted_by(|a, b| a > b));
    for visible_at in 0..2 * count {
        let newest = versions.iter().copied().find(|&seq| seq <= visible_at);
        let found = memtable.get(b"key", key_hash(b"key"), SeqNum(visible_at));
        assert_eq!(
            found.map(|(seq, _, value)| (seq.0, value.to_vec())),
            newest.map(|s| (s, s.to_le_bytes().to_vec()))
        );
    }
    assert_eq!(memtable.get(b"ke", key_hash(b"ke"), SeqNum::MAX), None);
    assert_eq!(memtable.get(b"key\0", key_hash(b"key\0"), SeqNum::MAX), None);
}

#[test]
fn memory_is_counted_while_it_is_held() {
    let memory = MemoryBudget::new(1 << 30);
    let used = || memory.used_bytes(Consumer::Memtables);
    let mut writer =
        MemtableWriter::new(&ChunkPool::new(&memory, 1 << 20), 1 << 20, usize::MAX, false);
    let memtable = Arc::clone(writer.memtable());
    // A slot of eight bytes for each 32, and a first chunk of a sixteenth.
    let expected = (256 << 10) + (64 << 10);
    assert_eq!((used(), memtable.memory_bytes()), (expected, expected));

    let huge = vec![0xab; 16 << 20];
    insert_one(&mut writer, InternalKeyRef::new(b"huge", SeqNum(1), ValueKind::Put), &huge);
    let with_huge = used();
    assert!(
        (expected + (16 << 20)..expected + (16 << 20) + (8 << 10)).contains(&with_huge),
        "a huge entry has a chunk of its size: {with_huge}"
    );
    // The shared chunk still has room.
    for seq in 2..500 {
        let key = InternalKeyRef::new(b"small", SeqNum(seq), ValueKind::Put);
        insert_one(&mut writer, key, b"twelve bytes");
    }
    assert_eq!(used(), with_huge);
    assert_eq!(
        memtable.get(b"huge", key_hash(b"huge"), SeqNum::MAX),
        Some((SeqNum(1), ValueKind::Put, huge.as_slice()))
    );

    for seq in 500..scaled(100_000) {
        let key = seq.to_be_bytes();
        let key = InternalKeyRef::new(&key, SeqNum(seq), ValueKind::Put);
        insert_one(&mut writer, key, b"twelve bytes");
    }
    assert_eq!(used(), memtable.memory_bytes());
    assert!(used() >= memtable.data_bytes());

    let mut iter = memtable.iter();
    iter.seek_to_first().unwrap();
    drop((writer, memtable));
    assert!(used() > 0, "an iterator keeps the memory");
    assert!(iter.valid() && !iter.value().is_empty());
    drop(iter);
    assert_eq!(used(), 0);
}

#[test]
fn the_memory_of_a_long_value_is_reused_unless_a_reader_has_it() {
    let pool = ChunkPool::new(&MemoryBudget::new(1 << 30), 1 << 20);
    let memtable_with = |byte: u8| {
        let mut writer = MemtableWriter::new(&pool, 1 << 20, usize::MAX, false);
        let key = InternalKeyRef::new(b"long", SeqNum(1), ValueKind::Put);
        insert_one(&mut writer, key, &vec![byte; 100_000]);
        let memtable = Arc::clone(writer.memtable());
        let found =
            memtable.get(b"long", key_hash(b"long"), SeqNum::MAX).map(|(_, _, value)| value);
        let value = memtable.give(found.expect("it was inserted"), &mut Owned);
        assert_eq!(value, vec![byte; 100_000]);
        value
    };
    let pinned = memtable_with(1);
    assert_eq!(pool.stats().spare_bytes, 0, "a reader pins it");
    drop(memtable_with(2));
    assert_eq!(pool.stats().spare_bytes, 0, "a reader pinned it to the end");
    let unread = |byte| {
        let mut writer = MemtableWriter::new(&pool, 1 << 20, usize::MAX, false);
        let key = InternalKeyRef::new(b"long", SeqNum(1), ValueKind::Put);
        insert_one(&mut writer, key, &vec![byte; 100_000]);
    };
    for byte in 3..6 {
        unread(byte);
        assert!(pool.stats().spare_bytes > 100_000, "no reader pins it");
    }
    assert_eq!(pool.stats().unprepared_count, 3, "of five");
    assert_eq!(memtable_with(6), vec![6; 100_000]);
    assert_eq!(pinned, vec![1; 100_000]);
}

/// The writer inserts groups of few keys, many of which share the result of a search. Concurrent
/// readers must see a growing number of whole entries, in order.
#[test]
fn concurrent_readers_see_whole_entries_in_order() {
    const GROUP_LEN: u64 = 20;
    let seed = test_seed();
    let group_count = scaled(3_000);
    let mut writer = new_memtable();
    let memtable = Arc::clone(writer.memtable());
    let key_of = |rng: &mut Rng| format!("key{:04}", rng.below(2_000)).into_bytes();
    let value_of = |key: &[u8], seq: u64| {
        [key, &seq.to_le_bytes(), &vec![seq as u8; seq as usize % 40]].concat()
    };
    let (done, inserted_seq) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for reader in 0..2 {
            let (memtable, done, inserted_seq) = (&memtable, &done, &inserted_seq);
            scope.spawn(move || {
                let mut rng = Rng::new(seed.wrapping_add(reader));
                let mut seen_before = 0;
                while !done.load(Ordering::Relaxed) {
                    let inserted = inserted_seq.load(Ordering::Acquire);
                    let found = entries(memtable);
                    assert!(found.is_sorted_by(|a, b| a.0 < b.0));
                    assert!(found.len() as u64 >= inserted, "a completed insert is visible");
                    assert!(found.len() >= seen_before, "entries vanished");
                    seen_before = found.len();
                    for ((key, seq), (_, value)) in &found {
                        assert_eq!(*value, value_of(key, seq.0));
                    }
                    for _ in 0..100 {
                        let key = key_of(&mut rng);
                        // An entry is pushed before it is indexed: it may be found by a cursor
                        // alone until its insert returns.
                        let newest = found
                            .iter()
                            .find(|((found, seq), _)| *found == key && seq.0 <= inserted);
                        let got = memtable.get(&key, key_hash(&key), SeqNum::MAX);
                        assert!(
                            got.map(|(seq, ..)| seq.0) >= newest.map(|((_, seq), _)| seq.0),
                            "a point read finds what has been inserted"
                        );
                        if let Some((seq, _, stored)) = got {
                            assert_eq!(stored, value_of(&key, seq.0));
                        }
                    }
                }
            });
        }
        let mut rng = Rng::new(seed);
        for first_seq in (1..).step_by(GROUP_LEN as usize).take(group_count as usize) {
            let group: Vec<_> = (first_seq..first_seq + GROUP_LEN)
                .map(|seq| {
                    let key = key_of(&mut rng);
                    (seq, value_of(&key, seq), key)
                })
                .collect();
            writer.insert(group.iter().map(|(seq, value, key)| {
                (InternalKeyRef::new(key, SeqNum(*seq), ValueKind::Put), value.as_slice())
            }));
            inserted_seq.store(first_seq + GROUP_LEN - 1, Ordering::Release);
        }
        done.store(true, Ordering::Relaxed);
    });
    let mut seqs: Vec<u64> = entries(&memtable).iter().map(|((_, seq), _)| seq.0).collect();
    seqs.sort_unstable();
    assert_eq!(seqs, (1..=group_count * GROUP_LEN).collect::<Vec<_>>());
    assert_eq!(memtable.entry_count(), group_count * GROUP_LEN);
}

/// Ascending keys skip the search. Keys between existing ones must not.
#[test]
fn ascending_keys_interleave_with_existing_ones() {
    let mut writer = new_memtable();
    let count = scaled(20_000);
    for first in 0..2 {
        for number in (first..2 * count).step_by(2) {
            let key = number.to_be_bytes();
            insert_one(
                &mut writer,
                InternalKeyRef::new(&key, SeqNum(number + 1), ValueKind::Put),
                &key,
            );
        }
    }
    let memtable = writer.memtable();
    let found: Vec<u64> = entries(memtable).iter().map(|((_, seq), _)| seq.0).collect();
    assert_eq!(found, (1..=2 * count).collect::<Vec<_>>());
    for number in 0..2 * count {
        let key = number.to_be_bytes();
        assert!(memtable.get(&key, key_hash(&key), SeqNum::MAX).is_some());
    }
}

/// After unsorted entries, an ascending key must be linked after the entries of its own batch on
/// every level.
#[test]
fn ascending_keys_after_an_unsorted_batch_are_linked_on_all_levels() {
    let seed = test_seed();
    let mut rng = Rng::new(seed);
    let mut writer = new_memtable();
    let mut seq = 0;
    for _ in 0..scaled(5_000) {
        // An unsorted batch in one gap, then the key after its last one.
        let gap = rng.below(1 << 20) << 8;
        let mut numbers: Vec<u64> = (0..8).map(|_| gap + rng.below(200)).collect();
        numbers.sort_unstable();
        numbers.dedup();
        // All but the last key descend. The ascending key follows the end of the batch.
        let last = numbers.pop().expect("there are numbers");
        numbers.reverse();
        numbers.push(last);
        let keys: Vec<_> = numbers.iter().map(|number| number.to_be_bytes()).collect();
        writer.insert(keys.iter().map(|key| {
            seq += 1;
            (InternalKeyRef::new(key, SeqNum(seq), ValueKind::Put), &[][..])
        }));
        seq += 1;
        let next = (last + 1).to_be_bytes();
        insert_one(&mut writer, InternalKeyRef::new(&next, SeqNum(seq), ValueKind::Put), &[]);
    }
    let found = entries(writer.memtable());
    assert_eq!(found.len() as u64, seq, "seed {seed}");
    assert!(found.is_sorted_by(|a, b| a.0 < b.0));
    for ((key, key_seq), _) in &found {
        let mut iter = writer.memtable().iter();
        iter.seek(InternalKeyRef::seek(key, SeqNum(key_seq.0))).unwrap();
        assert_eq!(entry_at(&iter).0, (key.clone(), *key_seq), "seed {seed}");
    }
}

#[test]
#[should_panic(expected = "only good for seeking")]
fn a_seek_key_is_rejected() {
    insert_one(&mut new_memtable(), InternalKeyRef::seek(b"key", SeqNum(1)), b"");
}
