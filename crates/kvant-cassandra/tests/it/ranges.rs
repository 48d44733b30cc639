//! Ranges, against a sorted map.

use crate::node::{self, open, wait};
use bytes::Bytes;
use kvant_cassandra::{Ask, Cluster};
use kvant_env::rng::Rng;
use std::collections::BTreeMap;

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

const HELD_BYTES_MAX: usize = 32 << 20;

async fn read(cluster: &Cluster, start: &[u8], end: Option<&[u8]>, limit: u64) -> Vec<Vec<u8>> {
    read_held(cluster, start, end, limit).await.0
}

/// The records, and the most bytes that the range has held.
async fn read_held(
    cluster: &Cluster,
    start: &[u8],
    end: Option<&[u8]>,
    limit: u64,
) -> (Vec<Vec<u8>>, usize) {
    let mut range = cluster.range(start, end, limit);
    let (mut found, mut held_bytes) = (Vec::new(), 0);
    loop {
        range.fetch().await.unwrap();
        held_bytes = held_bytes.max(range.held_bytes());
        while let Some((key, value)) = range.take_next() {
            found.push([key, b"=", value].concat());
        }
        if !range.must_fetch() {
            if limit == u64::MAX {
                assert_eq!(range.held_bytes(), 0);
            }
            return (found, held_bytes);
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

async fn put(cluster: &Cluster, map: &mut Map, key: Vec<u8>, value: Vec<u8>) {
    cluster.put(&key, Bytes::from(value.clone()), None, Ask::default()).await.0.unwrap();
    map.insert(key, value);
}

#[test]
#[ignore = "needs a node: cargo xtask cluster-check"]
fn a_range_of_values_that_do_not_fit_into_its_memory_is_whole() {
    const VALUE_BYTES: usize = 1 << 20;
    let cluster = open(&node::options()).unwrap();
    let mut map = Map::new();
    wait(async {
        for number in 0..120_u8 {
            put(&cluster, &mut map, vec![number], vec![number; VALUE_BYTES]).await;
        }
        // No range has met a record before the first of these.
        for limit in [u64::MAX, 100, u64::MAX] {
            let (found, held_bytes) = read_held(&cluster, b"\0", None, limit).await;
            assert!(found == expected(&map, b"\0", None, limit), "{} records", found.len());
            assert!(held_bytes <= HELD_BYTES_MAX + VALUE_BYTES, "{held_bytes} bytes");
        }
    });
}

#[test]
#[ignore = "needs a node: cargo xtask cluster-check"]
fn a_range_over_short_and_long_values_is_whole() {
    let cluster = open(&node::options()).unwrap();
    let mut map = Map::new();
    wait(async {
        for number in 0..900_u32 {
            let key = format!("{number:04}").into_bytes();
            let len = if (300..330).contains(&number) { 1 << 19 } else { 20 };
            put(&cluster, &mut map, key, vec![b'v'; len]).await;
        }
        for limit in [u64::MAX, 310, 500] {
            let found = read(&cluster, b"\0", None, limit).await;
            assert!(found == expected(&map, b"\0", None, limit), "{} records", found.len());
        }
    });
}

#[test]
#[ignore = "needs a node: cargo xtask cluster-check"]
fn a_range_of_more_buckets_than_there_is_room_for_is_whole() {
    const VALUE_BYTES: usize = 4 << 10;
    const BUCKETS: u32 = 4_096;
    /// Without its value: the row in the response and in memory.
    const ROW_BYTES: usize = 128;
    let options = kvant_cassandra::Options { bucket_count: Some(BUCKETS), ..node::options() };
    let cluster = open(&options).unwrap();
    let mut map = Map::new();
    wait(async {
        for number in 0..10_000_u32 {
            put(&cluster, &mut map, number.to_be_bytes().to_vec(), vec![b'v'; VALUE_BYTES]).await;
        }
        // The second range knows how long records are.
        for _ in 0..2 {
            let (found, held_bytes) = read_held(&cluster, b"\0", None, u64::MAX).await;
            assert!(found == expected(&map, b"\0", None, u64::MAX), "{} records", found.len());
            // Beyond it, a key of each bucket.
            let keys_bytes = BUCKETS as usize * ROW_BYTES;
            assert!(held_bytes <= HELD_BYTES_MAX + keys_bytes + VALUE_BYTES, "{held_bytes} bytes");
        }
    });
}

/// Requests for pages that were answered.
fn page_requests(cluster: &Cluster) -> u64 {
    let nodes = cluster.stats().nodes;
    let times = nodes.iter().flat_map(|node| &node.times);
    let of_pages = times.filter(|times| (times.kind, times.phase) == ("page", "attempt"));
    of_pages.flat_map(|times| &times.counts_up_to_us).map(|(_, count)| count).sum()
}

#[test]
#[ignore = "needs a node: cargo xtask cluster-check"]
fn a_range_asks_for_the_first_pages_of_sixteen_buckets_at_once() {
    let options = kvant_cassandra::Options { bucket_count: Some(40), ..node::options() };
    let cluster = open(&options).unwrap();
    let mut map = Map::new();
    wait(async {
        for number in 0..200_u32 {
            put(&cluster, &mut map, number.to_be_bytes().to_vec(), vec![b'v'; 50]).await;
        }
        // The first range does not know how long records are.
        for limit in [1, 2, 10] {
            let before = page_requests(&cluster);
            let found = read(&cluster, b"\0", None, limit).await;
            assert_eq!(found, expected(&map, b"\0", None, limit));
            let requests = page_requests(&cluster) - before;
            assert!(requests == 3 || limit == 1, "{requests} requests for {limit} records");
        }
    });
}
