use super::*;
use crate::format::SeqNum;
use crate::iter::test_support::{VecIter, collect, put, random_entries};
use crate::version::test_support::test_rng;
use kvant_env::rng::Rng;

fn boxed(sources: Vec<VecIter>) -> MergeIter {
    MergeIter::new(
        sources.into_iter().map(|source| Box::new(source) as Box<dyn InternalIterator>).collect(),
    )
}

#[test]
fn random_sources_merge_into_one_sorted_list() {
    let mut rng = test_rng();
    for _ in 0..200 {
        let source_count = rng.below(9);
        let mut all = Vec::new();
        let mut sources = Vec::new();
        for source in 0..source_count {
            let count = rng.below(30);
            let entries = random_entries(&mut rng, count, 1 + source * 100);
            all.extend(entries.iter().cloned());
            sources.push(VecIter::new(entries));
        }
        all.sort_by(|a, b| a.0.as_ref().cmp(&b.0.as_ref()));
        let mut merge = boxed(sources);
        assert!(!merge.valid(), "not positioned");
        merge.seek_to_first().unwrap();
        assert_eq!(collect(&mut merge), all);
        for _ in 0..10 {
            let target = random_entries(&mut rng, 1, rng_seq(source_count))[0].0.clone();
            merge.seek(target.as_ref()).unwrap();
            let from = all.partition_point(|(key, _)| key.as_ref() < target.as_ref());
            assert_eq!(collect(&mut merge), all[from..]);
        }
    }
}

/// Keys whose differences lie before, in and behind the bytes that heads cover.
fn keys_of_all_kinds(rng: &mut Rng, kind: u64) -> Vec<u8> {
    match kind {
        0 => format!("{:016}", rng.below(2_000)).into_bytes(),
        1 => format!("{:016}", rng.next_u64() % 10_000_000_000_000_000).into_bytes(),
        2 => vec![[0x00, 0xff][rng.below(2) as usize]; rng.below(24) as usize + 1],
        3 => format!("{:016}", 1_999 + rng.below(3) * 5_000).into_bytes(),
        _ => format!("{:08}/{}", rng.below(30), "x".repeat(rng.below(40) as usize)).into_bytes(),
    }
}

#[test]
fn keys_that_differ_anywhere_merge_in_order() {
    let mut rng = test_rng();
    for _ in 0..100 {
        let mut all = Vec::new();
        let mut sources = Vec::new();
        for source in 0..1 + rng.below(5) {
            let kind = rng.below(5);
            let entries: Vec<_> = (0..rng.below(400))
                .map(|index| {
                    let kind = if rng.one_in(20) { rng.below(5) } else { kind };
                    let (mut key, value) = put("", 1 + source * 1000 + index);
                    key.user_key = keys_of_all_kinds(&mut rng, kind);
                    (key, value)
                })
                .collect();
            all.extend(entries.iter().cloned());
            sources.push(VecIter::new(entries));
        }
        all.sort_by(|a, b| a.0.as_ref().cmp(&b.0.as_ref()));
        let mut merge = boxed(sources);
        merge.seek_to_first().unwrap();
        assert_eq!(collect(&mut merge), all);
        for _ in 0..5 {
            let kind = rng.below(5);
            let target = keys_of_all_kinds(&mut rng, kind);
            let target = InternalKeyRef::seek(&target, SeqNum::MAX);
            merge.seek(target).unwrap();
            let from = all.partition_point(|(key, _)| key.as_ref() < target);
            assert_eq!(collect(&mut merge), all[from..]);
        }
    }
}

/// A sequence number in the middle of those of the sources.
fn rng_seq(source_count: u64) -> u64 {
    1 + source_count / 2 * 100
}

#[test]
fn equal_internal_keys_are_in_the_order_of_their_sources() {
    let named = |name: &str| {
        let (key, _) = put("k", 5);
        VecIter::new(vec![(key, name.as_bytes().to_vec())])
    };
    let mut merge = boxed(vec![named("first"), named("second"), named("third")]);
    merge.seek(InternalKeyRef::seek(b"k", SeqNum::MAX)).unwrap();
    let values: Vec<_> = collect(&mut merge).into_iter().map(|(_, value)| value).collect();
    assert_eq!(values, [&b"first"[..], b"second", b"third"]);
}

#[test]
fn an_error_of_a_source_ends_the_merge_until_the_next_seek() {
    let good = VecIter::new(vec![put("a", 1), put("d", 2)]);
    let mut failing = VecIter::new(vec![put("b", 3), put("c", 4)]);
    failing.fail_at = Some(1);
    let mut merge = boxed(vec![good, failing]);
    merge.seek_to_first().unwrap();
    merge.next().unwrap();
    assert_eq!(merge.key().user_key, b"b");
    assert!(merge.next().is_err());
    assert!(!merge.valid());
    assert!(merge.seek(InternalKeyRef::seek(b"c", SeqNum::MAX)).is_err());
    assert!(!merge.valid());
    merge.seek_to_first().unwrap();
    assert_eq!(merge.key().user_key, b"a");
}
