//! Random tables against a sorted vector.

use super::*;
use crate::format::key_hash;
use kvant_env::rng::Rng;
use kvant_env::testing::entropy_seed;
use std::collections::BTreeMap;

/// The seed of a random test: `KVANT_TEST_SEED`, or a new one. Printed, to replay a failure.
pub(in crate::table) fn seed() -> u64 {
    let given = std::env::var("KVANT_TEST_SEED").ok().and_then(|text| text.parse().ok());
    let seed = given.unwrap_or_else(entropy_seed);
    println!("KVANT_TEST_SEED={seed}");
    seed
}

/// Keys of one of several shapes, chosen so that they share prefixes, end in 0x00 and 0xff, and are
/// prefixes of each other.
fn random_key(rng: &mut Rng, shape: u64) -> Vec<u8> {
    match shape {
        0 => format!("user:{:06}", rng.below(2000)).into_bytes(),
        1 => (0..=rng.below(5)).map(|_| [0x00, 0x01, 0xfe, 0xff][rng.below(4) as usize]).collect(),
        2 => {
            let mut key = vec![b'p'; 300 + rng.below(3) as usize];
            key.extend_from_slice(&rng.below(500).to_be_bytes());
            key
        }
        _ => {
            let len = 1 + rng.below(40) as usize;
            rng.bytes(len)
        }
    }
}

fn random_entries(rng: &mut Rng) -> Vec<Entry> {
    let shape = rng.below(4);
    let hot = rng.one_in(3).then(|| random_key(rng, shape));
    let value_bytes_max = [1, 30, 600, 9000][rng.below(4) as usize];
    let count = 1 + rng.below(1500);
    let mut sorted = BTreeMap::new();
    for seq in 1..=count {
        let key = match &hot {
            Some(hot) if rng.one_in(2) => hot.clone(),
            _ => random_key(rng, shape),
        };
        let kind = [ValueKind::Put, ValueKind::Put, ValueKind::Delete, ValueKind::PutExpiring]
            [rng.below(4) as usize];
        let mut value = Vec::new();
        if kind == ValueKind::PutExpiring {
            value.extend_from_slice(&rng.below(1 << 40).to_le_bytes());
        }
        if kind != ValueKind::Delete {
            let len = rng.below(value_bytes_max) as usize;
            value.extend(std::iter::repeat_n(rng.next_u64() as u8, len / 2));
            value.extend(rng.bytes(len / 2));
        }
        sorted.insert((key, std::cmp::Reverse(seq)), (kind, value));
    }
    sorted.into_iter().map(|((key, seq), (kind, value))| (key, seq.0, kind, value)).collect()
}

fn random_options(rng: &mut Rng) -> TableOptions {
    TableOptions {
        block_bytes: [256, 1000, 4096, 65_536][rng.below(4) as usize],
        compression: [Compression::None, Compression::Lz4, Compression::Zstd]
            [rng.below(3) as usize],
        filter_bits_per_key: [0.0, 3.5, 10.0, 20.0][rng.below(4) as usize],
    }
}

#[test]
fn random_tables_agree_with_the_model() {
    let seed = seed();
    for round in 0..150 {
        let mut rng = Rng::new(seed.wrapping_add(round));
        let entries = random_entries(&mut rng);
        let options = random_options(&mut rng);
        let share = if rng.one_in(3) { 0 } else { 64 << 20 };
        let table = build(options, &entries, context(64 << 20, share));
        check_properties(table.properties(), &entries);
        let report = table.verify().expect("undamaged");
        assert_eq!(
            (report.entry_count, report.file_bytes),
            (entries.len() as u64, table.file_bytes())
        );

        let mut iter = table.iter(rng.one_in(2), Consumer::Iterators);
        if rng.one_in(2) {
            iter = iter.checked();
        }
        iter.seek_to_first().expect("seek");
        assert_eq!(rest_of(&mut iter).expect("iterate"), entries, "round {round}");
        for _ in 0..300 {
            let key = match rng.one_in(2) {
                true => entries[rng.below(entries.len() as u64) as usize].0.clone(),
                false => {
                    let shape = rng.below(4);
                    random_key(&mut rng, shape)
                }
            };
            let visible_at = rng.below(entries.len() as u64 + 2);
            check_key(&table, &mut iter, &entries, &key, visible_at);
        }
    }
}

fn check_key(table: &Table, iter: &mut TableIter, entries: &[Entry], key: &[u8], visible_at: u64) {
    let target = InternalKeyRef::seek(key, SeqNum(visible_at));
    let at = entries.partition_point(|entry| key_of(entry) < target);
    let expected = entries.get(at).filter(|entry| entry.0 == key);
    let mut read = PointRead::new(Wait::ALWAYS);
    let found = table.get(key, key_hash(key), SeqNum(visible_at), &mut read).expect("get");
    let found = found.map(|found| (key.to_vec(), found.seq.0, found.kind, found.to_vec()));
    assert_eq!(found.as_ref(), expected, "key {key:?} at {visible_at}");
    assert!(read.trace.block_count <= 1 && (read.trace.block_count == 1 || expected.is_none()));

    iter.seek(target).expect("seek");
    for entry in entries[at..].iter().take(3) {
        assert!(iter.valid());
        assert_eq!((iter.key(), iter.value()), (key_of(entry), entry.3.as_slice()));
        iter.next().expect("next");
    }
    assert_eq!(iter.valid(), at + 3 < entries.len());
}

fn check_properties(properties: &TableProperties, entries: &[Entry]) {
    let expiries: Vec<u64> = entries
        .iter()
        .filter(|entry| entry.2 == ValueKind::PutExpiring)
        .map(|entry| u64::from_le_bytes(entry.3[..8].try_into().expect("eight bytes")))
        .collect();
    let mut keys: Vec<&[u8]> = entries.iter().map(|entry| entry.0.as_slice()).collect();
    keys.dedup();
    assert_eq!(properties.entry_count, entries.len() as u64);
    assert_eq!(properties.distinct_key_count, keys.len() as u64);
    assert_eq!(properties.expiring_count, expiries.len() as u64);
    assert_eq!(properties.expiry_ms_min, expiries.iter().copied().min().unwrap_or(0));
    assert_eq!(properties.expiry_ms_max, expiries.iter().copied().max().unwrap_or(0));
    let tombstones = entries.iter().filter(|entry| entry.2 == ValueKind::Delete).count();
    assert_eq!(properties.tombstone_count, tombstones as u64);
    assert_eq!(Some(properties.seq_min.0), entries.iter().map(|entry| entry.1).min());
    assert_eq!(Some(properties.seq_max.0), entries.iter().map(|entry| entry.1).max());
    assert_eq!(
        properties.key_bytes,
        entries.iter().map(|entry| entry.0.len() as u64 + 8).sum::<u64>()
    );
    assert_eq!(
        properties.value_bytes,
        entries.iter().map(|entry| entry.3.len() as u64).sum::<u64>()
    );
    assert_eq!(properties.smallest.as_ref(), key_of(&entries[0]));
    assert_eq!(properties.largest.as_ref(), key_of(&entries[entries.len() - 1]));
}
