use super::*;
use crate::format::SeqNum;
use crate::iter::test_support::{VecIter, collect, put, random_entries};
use crate::version::test_support::test_rng;

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
