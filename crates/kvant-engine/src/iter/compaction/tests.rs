use super::*;
use crate::iter::test_support::{
    Entry, VecIter, delete, entry, expiring, put, random_entries, visible,
};
use crate::version::test_support::test_rng;
use kvant_base::ErrorKind;
use std::collections::HashSet;

fn compact(entries: Vec<Entry>, horizon: Horizon) -> Vec<Entry> {
    let mut iter = CompactionIter::new(VecIter::new(entries), horizon).unwrap();
    let mut kept = Vec::new();
    while let Some(entry) = iter.next().unwrap() {
        let same_user_key =
            kept.last().is_some_and(|(last, _): &Entry| last.user_key == entry.key.user_key);
        assert_eq!(entry.starts_user_key, !same_user_key);
        kept.push((entry.key.to_owned(), entry.value.to_vec()));
    }
    kept
}

fn horizon(snapshots: &[u64], bottommost: bool, now_ms: u64) -> Horizon {
    Horizon { snapshots: snapshots.iter().map(|&seq| SeqNum(seq)).collect(), bottommost, now_ms }
}

#[test]
fn visible_records_stay_the_same_and_shadowed_versions_are_dropped() {
    let mut rng = test_rng();
    for round in 0..1000 {
        let count = rng.below(60);
        let bottommost = rng.one_in(2);
        let beneath = if bottommost { Vec::new() } else { random_entries(&mut rng, 10, 1) };
        let entries = random_entries(&mut rng, count, 11);
        let mut snapshots: Vec<_> = (0..rng.below(5)).map(|_| rng.below(80)).collect();
        snapshots.sort_unstable();
        snapshots.dedup();
        let now_ms = rng.below(100);
        let kept = compact(entries.clone(), horizon(&snapshots, bottommost, now_ms));

        let before = [entries.clone(), beneath.clone()].concat();
        let after = [kept.clone(), beneath].concat();
        for &visible_at in snapshots.iter().chain([&u64::MAX]) {
            for later_ms in [now_ms, now_ms + 10, 100] {
                let (seen, expected) =
                    (visible(&after, visible_at, later_ms), visible(&before, visible_at, later_ms));
                assert_eq!(seen, expected, "round {round}, at {visible_at}");
            }
        }

        let stripe =
            |key: &InternalKeyRef<'_>| snapshots.iter().filter(|&&seq| seq < key.seq().0).count();
        let mut kept_stripes = HashSet::new();
        for (key, value) in &kept {
            let key = key.as_ref();
            assert!(kept_stripes.insert((key.user_key, stripe(&key))), "two versions in a stripe");
            let kind = key.kind().unwrap();
            let expiry_ms = expiry_of(kind, value).unwrap();
            assert!(
                expiry_ms.is_none_or(|expiry_ms| expiry_ms > now_ms),
                "an expired value is kept"
            );
            assert!(
                kind != ValueKind::Delete
                    || (value.is_empty() && !(bottommost && stripe(&key) == 0))
            );
        }
    }
}

#[test]
fn snapshots_keep_their_versions_and_the_tombstones_they_need() {
    let history = || vec![put("k", 2), put("k", 4), delete("k", 6), put("k", 8), delete("k", 10)];
    let seqs = |snapshots: &[u64], bottommost| {
        let kept = compact(history(), horizon(snapshots, bottommost, 0));
        kept.iter().map(|(key, _)| key.as_ref().seq().0).collect::<Vec<_>>()
    };
    assert_eq!(seqs(&[], true), [0; 0]);
    assert_eq!(seqs(&[], false), [10]);
    assert_eq!(seqs(&[5], true), [10, 0]);
    assert_eq!(
        seqs(&[6], true),
        [10],
        "the tombstone at 6 shadows nothing; the one at 10 is newer than a snapshot"
    );
    assert_eq!(seqs(&[3, 7], true), [10, 6, 0]);
    assert_eq!(seqs(&[10], true), [0; 0]);
    assert_eq!(seqs(&[1], false), [10]);
}

#[test]
fn values_with_nothing_beneath_that_every_reader_sees_lose_their_sequence_numbers() {
    let entries =
        || vec![put("a", 8), put("a", 3), delete("b", 9), put("b", 2), expiring("c", 4, 200)];
    let kept_seqs = |snapshots: &[u64], bottommost| {
        let kept = compact(entries(), horizon(snapshots, bottommost, 100));
        let seqs = kept.iter().map(|(key, _)| (key.user_key[0], key.as_ref().seq().0));
        seqs.collect::<Vec<_>>()
    };
    assert_eq!(kept_seqs(&[], true), [(b'a', 0), (b'c', 4)]);
    assert_eq!(kept_seqs(&[], false), [(b'a', 8), (b'b', 9), (b'c', 4)]);
    let expected = [(b'a', 8), (b'a', 0), (b'b', 9), (b'b', 0), (b'c', 4)];
    assert_eq!(kept_seqs(&[3], true), expected);
    let for_nothing = kept_seqs(&[0], true);
    assert_eq!(for_nothing, kept_seqs(&[1], true), "a snapshot of an empty database sees none");
    assert!(for_nothing.iter().all(|&(_, seq)| seq > 0));
}

#[test]
fn expired_values_become_tombstones_or_are_dropped() {
    let entries = || vec![expiring("a", 5, 100), put("a", 3), expiring("b", 6, 101)];
    let kept = compact(entries(), horizon(&[4], false, 100));
    assert_eq!(kept, [delete("a", 5), put("a", 3), expiring("b", 6, 101)]);
    let kept = compact(entries(), horizon(&[], true, 100));
    assert_eq!(kept, [expiring("b", 6, 101)]);
}

#[test]
fn duplicate_entries_of_a_recovery_are_kept_once() {
    let kept = compact(vec![put("a", 5), put("a", 5)], horizon(&[], true, 0));
    assert_eq!(kept, [entry("a", 0, ValueKind::Put, b"a@5")]);
}

#[test]
fn a_bad_entry_is_an_error() {
    let mut bad = put("b", 1);
    bad.0.trailer |= 0x70;
    let mut iter =
        CompactionIter::new(VecIter::new(vec![put("a", 1), bad]), Horizon::default()).unwrap();
    assert!(iter.next().unwrap().is_some());
    assert_eq!(iter.next().unwrap_err().kind(), ErrorKind::Corruption);
}
