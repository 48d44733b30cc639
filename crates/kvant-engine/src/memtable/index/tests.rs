use super::*;
use kvant_base::MemoryBudget;

fn index() -> HashIndex {
    HashIndex::new(64, &ChunkPool::new(&MemoryBudget::new(1 << 30), 0))
}

/// An index over "nodes" that are their own addresses: key = address / 1000, age = address % 1000.
fn publish(index: &HashIndex, hash: u64, address: u64) {
    let place = index.place(hash, |other| other / 1000 == address / 1000);
    index.publish(&place, hash, address);
}

fn find(index: &HashIndex, hash: u64, key: u64) -> Option<u64> {
    match index.find(hash, |address| address / 1000 == key) {
        Known::Node(address) => Some(address),
        Known::Absent => None,
        Known::Nothing => panic!("the index has overflowed"),
    }
}

#[test]
fn the_newest_node_of_a_key_is_found() {
    let index = index();
    for address in [7_001, 7_003, 7_005] {
        publish(&index, 5, address);
    }
    assert_eq!(find(&index, 5, 7), Some(7_005));
    assert_eq!(index.place(5, |other| other / 1000 == 7).newest, Some(7_005));
    assert_eq!(find(&index, 6, 7), None);
}

#[test]
fn keys_with_the_same_hash_are_distinguished() {
    let index = index();
    for key in 1..=20 {
        publish(&index, 9, key * 1000);
    }
    for key in 1..=20 {
        assert_eq!(find(&index, 9, key), Some(key * 1000));
    }
    assert_eq!(find(&index, 9, 21), None);
}

#[test]
fn only_an_overflow_makes_a_miss_inconclusive() {
    let index = index();
    for key in 1..=PROBE_SLOTS_MAX as u64 {
        publish(&index, 3, key * 1000);
    }
    assert_eq!(find(&index, 3, 99), None, "the bucket is full but has not overflowed");
    publish(&index, 3, 99_000);
    assert!(matches!(index.find(3, |address| address == 99_000), Known::Nothing));
    assert_eq!(find(&index, 3, 1), Some(1000), "indexed nodes are still found");
    assert!(
        matches!(index.find(40, |_| false), Known::Absent),
        "where a slot is free, nothing was left out"
    );
}

#[test]
fn an_address_that_does_not_fit_makes_a_miss_inconclusive() {
    let index = index();
    publish(&index, 1, 1 << ADDRESS_BITS);
    publish(&index, 1, 5_000);
    assert_eq!(find(&index, 1, 5), Some(5_000));
    for key in 6..=5 + PROBE_SLOTS_MAX as u64 {
        publish(&index, 1, key * 1000);
    }
    assert!(matches!(index.find(1, |_| false), Known::Nothing));
}
