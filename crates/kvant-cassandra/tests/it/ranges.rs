//! Ranges, against a sorted map.

use crate::node::{self, open, wait};
use bytes::Bytes;
use kvant_cassandra::{Ask, Cluster};
use kvant_env::rng::Rng;
use std::collections::BTreeMap;

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

async fn read(cluster: &Cluster, start: &[u8], end: Option<&[u8]>, limit: u64) -> Vec<Vec<u8>> {
    let mut range = cluster.range(start, end, limit);
    let mut found = Vec::new();
    loop {
        range.fetch().await.unwrap();
        while let Some((key, value)) = range.take_next() {
            found.push([key, b"=", value].concat());
        }
        if !range.must_fetch() {
            return found;
        }
    }
}

fn expected(map: &Map, start: &[u8], end: Option<&[u8]>, limit: u64) -> Vec<Vec<u8>> {
    let from_start = map.iter().filter(|(key, _)| &key[..] >= start);
    let to_end = from_start.filter(|(key, _)| end.is_none_or(|end| &key[..] < end));
    to_end.take(limit as usize).map(|(key, value)| [&key[..], b"=", value].concat()).collect()
}

/// Prints its seed, which `KVANT_TEST_SEED` sets.
fn rng() -> Rng {
    let seed = std::env::var("KVANT_TEST_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = seed.unwrap_or_else(|| u64::from(std::process::id()));
    println!("KVANT_TEST_SEED={seed}");
    Rng::new(seed)
}

fn random_key(rng: &mut Rng) -> Vec<u8> {
    let len = 1 + rng.below(4);
    // Few different bytes, those at the ends of the order among them.
    (0..len).map(|_| [0, 1, 0x7f, 0x80, 0xfe, 0xff][rng.below(6) as usize]).collect()
}

#[test]
#[ignore = "needs a node: cargo xtask cluster-check"]
fn ranges_have_the_records_of_a_sorted_map() {
    let cluster = open(&node::options()).unwrap();
    let mut rng = rng();
    let mut map = Map::new();
    wait(async {
        for number in 0..2_000 {
            let key = random_key(&mut rng);
            if rng.below(5) == 0 {
                cluster.delete(&key, Ask::default()).await.0.unwrap();
                map.remove(&key);
            } else {
                let value = vec![b'v'; (number * 7) % 300];
                cluster
                    .put(&key, Bytes::from(value.clone()), None, Ask::default())
                    .await
                    .0
                    .unwrap();
                map.insert(key, value);
            }
        }
        assert!(map.len() > 300);
        assert_eq!(
            read(&cluster, b"\0", None, u64::MAX).await,
            expected(&map, b"\0", None, u64::MAX)
        );
        for _ in 0..100 {
            let (start, end) = (random_key(&mut rng), random_key(&mut rng));
            let end = (end > start).then_some(&end[..]);
            let limit = 1 + rng.below(50);
            let found = read(&cluster, &start, end, limit).await;
            assert_eq!(found, expected(&map, &start, end, limit), "{start:?} {end:?} {limit}");
        }
    });
}

#[test]
#[ignore = "needs a node: cargo xtask cluster-check"]
fn a_range_of_values_that_do_not_fit_into_its_memory_is_whole() {
    let cluster = open(&node::options()).unwrap();
    let mut map = Map::new();
    wait(async {
        for number in 0..60_u8 {
            let value = vec![number; 1 << 20];
            cluster
                .put(&[number], Bytes::from(value.clone()), None, Ask::default())
                .await
                .0
                .unwrap();
            map.insert(vec![number], value);
        }
        let found = read(&cluster, b"\0", None, u64::MAX).await;
        assert!(found == expected(&map, b"\0", None, u64::MAX), "{} records", found.len());
    });
}
