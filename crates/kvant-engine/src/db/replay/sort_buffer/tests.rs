use super::*;
use crate::cursor::InternalIterator;
use crate::format::{SeqNum, ValueKind, key_hash};
use crate::memtable::{ChunkPool, Memtable};
use crate::version::test_support::test_rng;
use kvant_env::rng::Rng;

type Entry = (Vec<u8>, u64, Vec<u8>);

fn entries(memtable: &Memtable) -> Vec<Entry> {
    let mut found = Vec::new();
    let mut iter = memtable.iter();
    iter.seek_to_first().unwrap();
    while iter.valid() {
        let key = iter.key();
        found.push((key.user_key.to_vec(), key.trailer, iter.value().to_vec()));
        iter.next().unwrap();
    }
    found
}

/// Inserts `keys` through a buffer of `bytes_max` and one by one: the memtables must be the same.
fn check(keys: &[Vec<u8>], bytes_max: usize) {
    let memory = MemoryBudget::new(1 << 30);
    let chunks = ChunkPool::new(&memory, 4096);
    let [mut sorted, mut direct] =
        std::array::from_fn(|_| MemtableWriter::new(&chunks, 4096, usize::MAX));
    let mut buffer = SortBuffer::new(&memory, bytes_max);
    for (seq, key) in (1..).zip(keys) {
        let kind = [ValueKind::Put, ValueKind::Delete][usize::from(seq % 7 == 0)];
        let value = if kind == ValueKind::Put { &key[key.len() / 2..] } else { &[] };
        let key = InternalKeyRef::new(key, SeqNum(seq), kind);
        direct.insert(std::iter::once((key, value)));
        buffer.push(key, value);
        if buffer.is_full() {
            buffer.insert_into(&mut sorted);
        }
    }
    buffer.insert_into(&mut sorted);
    buffer.insert_into(&mut sorted);
    let (sorted_writer, direct_writer) = (sorted, direct);
    let (sorted, direct) = (sorted_writer.memtable(), direct_writer.memtable());
    let found = entries(sorted);
    assert!(found.is_sorted_by_key(|(key, trailer, _)| (key.clone(), !trailer)));
    assert_eq!(found, entries(direct));
    assert_eq!(sorted.entry_count(), keys.len() as u64);
    assert_eq!(sorted.seq_range(), direct.seq_range());
    for key in keys {
        let newest = |memtable: &Memtable| {
            let (seq, kind, value) = memtable.get(key, key_hash(key), SeqNum::MAX).unwrap();
            (seq, kind, value.to_vec())
        };
        assert_eq!(newest(sorted), newest(direct));
    }
    drop((buffer, sorted_writer, direct_writer));
    assert_eq!(memory.used_bytes_total(), 0);
}

#[test]
fn buffered_and_single_inserts_make_the_same_memtable() {
    let mut rng = test_rng();
    for _ in 0..200 {
        let shared_bytes = rng.below(40) as usize;
        let shared = rng.bytes(shared_bytes);
        // Few different bytes, zero among them: padding must differ from bytes of the key.
        let (symbols, len_max) = (1 + rng.below(3), 1 + rng.below(100));
        let key = |rng: &mut Rng| {
            let len = 1 + rng.below(len_max);
            let own = (0..len).map(|_| rng.below(symbols) as u8);
            shared.iter().copied().chain(own).collect()
        };
        let count = rng.below(500);
        let keys: Vec<Vec<u8>> = (0..count).map(|_| key(&mut rng)).collect();
        check(&keys, 1 << rng.below(20));
    }
}

#[test]
fn keys_with_long_common_prefixes_are_sorted() {
    let len = 144;
    // Key `n` equals its neighbours up to byte `n`, so most handles are equal.
    let mut keys: Vec<Vec<u8>> =
        (0..len).map(|n| (0..len).map(|at| u8::from(at >= n)).collect()).collect();
    keys.extend(keys.clone());
    check(&keys, 1 << 30);
}

#[test]
fn one_key_written_often_keeps_its_newest_value_first() {
    check(&vec![b"counter".to_vec(); 1000], 1 << 30);
    check(&vec![b"a counter with a longer name".to_vec(); 1000], 4096);
}
