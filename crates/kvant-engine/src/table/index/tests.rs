use super::*;
use crate::format::{SeqNum, ValueKind};
use kvant_env::rng::Rng;

/// Short keys over few byte values: many are prefixes of each other.
fn random_key(rng: &mut Rng) -> Vec<u8> {
    (0..rng.below(12)).map(|_| [0, 1, b'a', 0xfe, 0xff][rng.below(5) as usize]).collect()
}

#[test]
fn separators_lie_between_their_keys_and_are_short() {
    let mut rng = Rng::new(crate::table::tests::seed());
    let mut separator = Vec::new();
    for _ in 0..100_000 {
        let (mut last, mut next) = (random_key(&mut rng), random_key(&mut rng));
        if last == next {
            continue;
        }
        if last > next {
            std::mem::swap(&mut last, &mut next);
        }
        shortest_separator(&last, &next, &mut separator);
        assert!(last <= separator && separator < next, "{last:?} {separator:?} {next:?}");
        assert!(separator.len() <= last.len(), "{last:?} {separator:?} {next:?}");
    }
    for (last, next, expected) in [
        (&b"user00000017"[..], &b"user00000021"[..], &b"user0000002"[..]),
        (b"abcdef", b"abz", b"abd"),
        (b"abc\xff\xff12", b"abd", b"abc\xff\xff2"),
        (b"abc\xff1234", b"abd", b"abc\xff2"),
        (b"ab", b"abc", b"ab"),
    ] {
        shortest_separator(last, next, &mut separator);
        assert_eq!(separator, expected);
    }
}

/// An index over the given keys (with trailer where one is given), every block of 10 stored bytes.
fn build(keys: &[(Vec<u8>, Option<u64>)]) -> Index {
    let mut builder = IndexBuilder::default();
    for (key, trailer) in keys {
        builder.add(key, *trailer, 10);
    }
    Index::decode(&builder.finish(), keys.len() as u64 * 10).expect("undamaged")
}

#[test]
fn searches_agree_with_a_linear_search() {
    let seed = crate::table::tests::seed();
    for round in 0..300 {
        let mut rng = Rng::new(seed.wrapping_add(round));
        let prefix = vec![b'p'; rng.below(20) as usize];
        let random = |rng: &mut Rng| [prefix.as_slice(), &random_key(rng)].concat();
        let mut keys: Vec<(Vec<u8>, Option<u64>)> = (0..1 + rng.below(60))
            .map(|_| (random(&mut rng), rng.one_in(4).then(|| rng.below(100) << 8 | 1)))
            .collect();
        // Equal heads, of which more than one is in the samples.
        let equal = (0..rng.below(60)).map(|last| [&*prefix, b"abcdefgh", &[last as u8]].concat());
        keys.extend(equal.map(|key| (key, None)));
        let order =
            |key: &(Vec<u8>, Option<u64>)| (key.0.clone(), std::cmp::Reverse(key.1.unwrap_or(0)));
        keys.sort_by_key(order);
        keys.dedup_by_key(|key| order(key));
        let index = build(&keys);
        assert!(
            index.heap_bytes() as u64
                <= Index::heap_bytes_max(
                    keys.len() as u64,
                    keys.iter().map(|key| key.0.len() as u64).sum()
                )
        );
        for _ in 0..200 {
            let user_key = match rng.below(3) {
                0 => keys[rng.below(keys.len() as u64) as usize].0.clone(),
                1 => random(&mut rng),
                _ => random_key(&mut rng),
            };
            let target = InternalKeyRef::new(&user_key, SeqNum(rng.below(100)), ValueKind::Put);
            let expected = keys
                .iter()
                .position(|(key, trailer)| {
                    InternalKeyRef { user_key: key, trailer: trailer.unwrap_or(0) } >= target
                })
                .unwrap_or(keys.len());
            assert_eq!(index.find(target), expected, "{user_key:?} in {keys:?}");
        }
    }
}

#[test]
fn malformed_indexes_are_rejected() {
    let mut builder = IndexBuilder::default();
    builder.add(b"b", None, 10);
    builder.add(b"d", Some(5 << 8), 20);
    builder.add(b"e", None, 30);
    let good = builder.finish();
    assert!(Index::decode(&good, 60).is_ok());
    assert!(Index::decode(&good, 61).is_err(), "the blocks end at another offset");
    for len in 0..good.len() {
        assert!(Index::decode(&good[..len], 60).is_err(), "cut to {len}");
    }
    let mut unordered = IndexBuilder::default();
    unordered.add(b"b", None, 10);
    unordered.add(b"a", None, 10);
    assert!(Index::decode(&unordered.finish(), 20).is_err());
    let mut many = good.clone();
    let at = many.len() - 4;
    many[at..].copy_from_slice(&u32::MAX.to_le_bytes());
    assert!(Index::decode(&many, 60).is_err());
}
