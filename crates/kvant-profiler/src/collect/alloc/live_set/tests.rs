use super::*;
use std::collections::HashSet;
use std::thread;

#[test]
fn addresses_are_found_until_removed() {
    static LIVE: LiveSet = LiveSet::new();
    let addresses: Vec<usize> = (1..=20_000).map(|n| n * 48).collect();
    let added: Vec<usize> =
        addresses.iter().copied().filter(|address| LIVE.insert(*address)).collect();
    // Buckets fill unevenly, but not that much.
    assert!(added.len() > addresses.len() * 99 / 100, "{}", added.len());
    assert!(added.iter().all(|address| LIVE.may_contain(*address)));
    let added_set: HashSet<usize> = added.iter().copied().collect();
    for address in &addresses {
        assert_eq!(LIVE.remove(*address), added_set.contains(address));
    }
    assert!(!added.iter().any(|address| LIVE.remove(*address)));
    // All counts are 0 again, so that the filter works.
    assert!(!addresses.iter().any(|address| LIVE.may_contain(*address)));
}

#[test]
fn the_filter_excludes_most_other_addresses() {
    static LIVE: LiveSet = LiveSet::new();
    (1..=500).for_each(|n| assert!(LIVE.insert(n * 4_096)));
    let others = (1..=10_000_usize).map(|n| 0x7000_0000_0000 + n * 64);
    let looked = others.filter(|address| LIVE.may_contain(*address)).count();
    assert!(looked < 1_500, "{looked} of 10000");
}

#[test]
fn a_full_bucket_rejects_addresses() {
    static LIVE: LiveSet = LiveSet::new();
    let one = 1 << 20;
    let bucket =
        |address| hash(address) >> (64 - FILTER_BITS - BUCKET_BITS) & ((1 << BUCKET_BITS) - 1);
    let same = (1_usize..).map(|n| one + n * 16).filter(|address| bucket(*address) == bucket(one));
    let same: Vec<usize> = same.take(2 * BUCKET_SLOTS + 1).collect();
    let (last, first) = same.split_last().unwrap();
    assert!(first.iter().all(|address| LIVE.insert(*address)));
    assert!(!LIVE.insert(*last));
    assert!(LIVE.remove(first[3]));
    assert!(LIVE.insert(*last));
    LIVE.clear();
    assert!(!LIVE.remove(*last));
    assert!(!LIVE.may_contain(*last));
}

#[test]
fn threads_find_addresses_of_other_threads() {
    static LIVE: LiveSet = LiveSet::new();
    const COUNT: usize = 2_000;
    thread::scope(|scope| {
        for thread in 1..=4_usize {
            scope.spawn(move || {
                let own = |n: usize| thread * 0x1000_0000 + n * 32;
                for round in 0..5 {
                    let added: Vec<usize> =
                        (0..COUNT).map(own).filter(|a| LIVE.insert(*a)).collect();
                    assert!(added.len() > COUNT * 9 / 10, "round {round}: {}", added.len());
                    assert!(added.iter().all(|a| LIVE.may_contain(*a)));
                    assert!(added.iter().all(|a| LIVE.remove(*a)));
                }
            });
        }
    });
    assert!(LIVE.filter.iter().all(|count| count.load(Ordering::Relaxed) == 0));
}
