use super::*;
use crate::format::key_hash;
use crate::format::{SeqNum, ValueKind};
use kvant_env::rng::Rng;

/// A block of `keys` (user key and sequence number). The value of a key is its index.
fn build(keys: &[(Vec<u8>, u64)]) -> DataBlock {
    let mut builder = DataBlockBuilder::default();
    let mut previous: &[u8] = b"";
    for (place, (key, seq)) in keys.iter().enumerate() {
        let internal = InternalKeyRef::new(key, SeqNum(*seq), ValueKind::Put);
        builder.add(internal, &place.to_le_bytes(), previous, key_hash(key));
        previous = key;
    }
    DataBlock::new(builder.finish().to_vec().into()).expect("undamaged")
}

fn get(block: &DataBlock, key: &[u8], seq: u64) -> Option<usize> {
    let target = InternalKeyRef::seek(key, SeqNum(seq));
    let entry = block.get(target, key_hash(key)).expect("undamaged")?;
    Some(usize::from_le_bytes(block.bytes_at(entry.value).try_into().expect("a place")))
}

#[test]
fn small_and_crowded_blocks_have_no_hash_index() {
    let numbered =
        |count: u64| (0..count).map(|n| (format!("key{n:06}").into_bytes(), 1)).collect::<Vec<_>>();
    for (count, hashed) in
        [(1, false), (16, false), (17, true), (4000, true), (254 * 16, true), (254 * 16 + 1, false)]
    {
        let keys = numbered(count);
        let block = build(&keys);
        assert_eq!(block.bucket_count > 0, hashed, "{count} entries");
        for (place, (key, _)) in keys.iter().enumerate() {
            assert_eq!(get(&block, key, 1), Some(place));
            assert_eq!(get(&block, key, 0), None);
            assert_eq!(get(&block, &[key, &b"x"[..]].concat(), 1), None);
        }
    }
    // Versions of few keys share every bucket in use, so the block has no index.
    let versions: Vec<_> = (0..100).map(|n| (vec![n / 50], 100 - u64::from(n))).collect();
    assert_eq!(build(&versions).bucket_count, 0);
}

#[test]
fn random_blocks_agree_with_a_linear_search() {
    let seed = crate::table::tests::seed();
    for round in 0..300 {
        let mut rng = Rng::new(seed.wrapping_add(round));
        let random = |rng: &mut Rng| -> Vec<u8> {
            let len = rng.below(14);
            (0..len).map(|_| [0, b'a', b'b', 0xff][rng.below(4) as usize]).collect()
        };
        let mut keys: Vec<_> =
            (0..1 + rng.below(200)).map(|_| (random(&mut rng), rng.below(10))).collect();
        keys.sort_by_key(|(key, seq)| (key.clone(), std::cmp::Reverse(*seq)));
        keys.dedup();
        let block = build(&keys);
        let mut cursor = DataBlockCursor::default();
        for _ in 0..300 {
            let key = if rng.one_in(2) {
                keys[rng.below(keys.len() as u64) as usize].0.clone()
            } else {
                random(&mut rng)
            };
            let seq = rng.below(11);
            let at = keys.partition_point(|(k, s)| {
                (k, std::cmp::Reverse(*s)) < (&key, std::cmp::Reverse(seq))
            });
            let expected = keys.get(at).filter(|found| found.0 == key).map(|_| at);
            assert_eq!(get(&block, &key, seq), expected, "{key:?} at {seq} in {keys:?}");
            cursor.seek(&block, InternalKeyRef::seek(&key, SeqNum(seq))).expect("undamaged");
            assert_eq!(cursor.valid(), at < keys.len());
            if cursor.valid() {
                assert_eq!(
                    (cursor.key().user_key, cursor.key().seq().0),
                    (keys[at].0.as_slice(), keys[at].1)
                );
            }
        }
    }
}
