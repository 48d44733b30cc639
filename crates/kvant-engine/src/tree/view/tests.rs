use super::*;
use crate::format::{InternalKeyRef, ValueKind, key_hash};
use kvant_base::MemoryBudget;

/// A full memtable after `before`, with values of `value_bytes` for the keys 0, 1, ...
fn filled(
    chunks: &Arc<ChunkPool>,
    options: &Options,
    before: Option<&Memtable>,
    value_bytes: usize,
) -> MemtableWriter {
    let mut writer = new_memtable(chunks, options, before);
    let value = vec![7; value_bytes];
    for number in 0_u64.. {
        if is_full(writer.memtable(), options) {
            break;
        }
        let key = number.to_be_bytes();
        let key = InternalKeyRef::new(&key, SeqNum(number + 1), ValueKind::Put);
        writer.insert(std::iter::once((key, value.as_slice())));
    }
    writer
}

#[test]
fn the_index_of_a_memtable_is_sized_by_the_memtable_before() {
    let options = Options { memtable_bytes: 8 << 20, ..Options::for_memory(256 << 20) };
    let chunks = ChunkPool::new(&MemoryBudget::new(1 << 30), 0);
    let bytes_after = |before: Option<&Memtable>| {
        new_memtable(&chunks, &options, before).memtable().memory_bytes()
    };
    let unknown_bytes = bytes_after(None);
    let large = filled(&chunks, &options, None, 4000);
    let large = large.memtable();
    assert!(large.entry_count() > 1000);
    assert!(bytes_after(Some(large)) < unknown_bytes / 3, "few entries need a small index");

    let largest = filled(&chunks, &options, None, 200_000);
    let largest = largest.memtable();
    assert!(largest.entry_count() < 50);
    assert!(bytes_after(Some(largest)) < bytes_after(Some(large)), "few, but they fill it");

    // More entries than the index was made for are all found.
    let small = filled(&chunks, &options, Some(large), 20);
    let small = small.memtable();
    assert!(small.entry_count() > 20 * large.entry_count());
    for number in 0..small.entry_count() {
        let key = number.to_be_bytes();
        assert!(small.get(&key, key_hash(&key), SeqNum::MAX).is_some(), "{number}");
    }
    let absent = u64::MAX.to_be_bytes();
    assert!(small.get(&absent, key_hash(&absent), SeqNum::MAX).is_none());
    assert!(bytes_after(Some(small)) > bytes_after(Some(large)));

    let hardly_used = new_memtable(&chunks, &options, Some(large));
    assert_eq!(bytes_after(Some(hardly_used.memtable())), unknown_bytes, "it tells nothing");
}
