//! Copies into a keyspace that go on.

use crate::node::{self, cql, open};
use kvant_cassandra::{Ask, Cluster, Loader};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// One more than a window has, so that the first window is written, and its last key stored.
const COUNT: u32 = (1 << 16) + 1;

fn keys_of(cluster: &Cluster) -> Vec<Vec<u8>> {
    let mut range = cluster.scan(b"\0", None);
    let mut keys = Vec::new();
    loop {
        if range.must_fetch() {
            cluster.fetch(&mut range).unwrap();
        }
        match range.take_next() {
            Some((key, _)) => keys.push(key.to_vec()),
            None => return keys,
        }
    }
}

/// Its source may have lost records meanwhile that an interrupted copy had sent already.
#[test]
#[ignore = "needs a node: cargo xtask cluster-check"]
fn a_copy_that_goes_on_removes_what_was_written_behind_its_place() {
    let options = node::options();
    let cluster = open(&options).unwrap();
    let keyspace = &options.keyspace;
    let (mut loader, place) = Loader::open(&cluster, keyspace, "source").unwrap();
    assert_eq!(place, None);
    for number in 1..=COUNT {
        loader.put(&cluster, &number.to_be_bytes(), b"", None).unwrap();
    }
    drop(loader);
    let written = keys_of(&cluster);
    assert_eq!(written.len(), COUNT as usize - 1);
    // A client writes a record while the copy is interrupted.
    let newer = COUNT / 2;
    cluster.wait(cluster.put(&newer.to_be_bytes(), "".into(), None, Ask::default())).0.unwrap();
    // As if the copy had been interrupted before the place of the window was stored.
    cql(&[format!("UPDATE {keyspace}.copy_progress SET key = 0x00000003 WHERE name = 'copy'")]);

    let (mut loader, place) = Loader::open(&cluster, keyspace, "source").unwrap();
    assert_eq!(place, Some(3_u32.to_be_bytes().to_vec()));
    loader.put(&cluster, &7_u32.to_be_bytes(), b"", None).unwrap();
    loader.finish(&cluster).unwrap();
    let expected: Vec<_> = [1, 2, 3, 7, newer].map(|number| number.to_be_bytes().to_vec()).into();
    assert_eq!(keys_of(&cluster), expected);
}

/// Regression: a first attempt that ended when it had made its table, and before it stored its
/// source there, let a later copy of any place overwrite what clients had written since.
#[test]
#[ignore = "needs a node: cargo xtask cluster-check"]
fn a_copy_that_stored_no_place_lets_no_later_one_into_records() {
    let options = node::options();
    drop(open(&options).unwrap());
    let columns = "name text PRIMARY KEY, source text, key blob, stamp_us bigint";
    cql(&[format!("CREATE TABLE {}.copy_progress ({columns})", options.keyspace)]);
    let cluster = open(&options).unwrap();
    cluster.wait(cluster.put(b"key", "".into(), None, Ask::default())).0.unwrap();
    let refused = Loader::open(&cluster, &options.keyspace, "source").err().expect("refused");
    assert_eq!(refused.kind(), kvant_base::ErrorKind::Invalid, "{refused}");
    assert!(refused.to_string().contains("has records"), "{refused}");
    cluster.wait(cluster.delete(b"key", Ask::default())).0.unwrap();
    let (loader, place) = Loader::open(&cluster, &options.keyspace, "source").unwrap();
    assert_eq!(place, None);
    loader.finish(&cluster).unwrap();
}

#[test]
#[ignore = "needs a node: cargo xtask cluster-check"]
fn records_expire_at_the_same_time_however_long_a_copy_holds_them() {
    // Longer than seconds that are cut off may add: up to two to a write, up to one to a read.
    const HELD: Duration = Duration::from_secs(6);
    const CUT_MS: u64 = 3_000;
    let options = node::options();
    let cluster = open(&options).unwrap();
    let wall_ms = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as u64;
    let begin_ms = wall_ms();
    let (mut loader, _) = Loader::open(&cluster, &options.keyspace, "source").unwrap();
    loader.put(&cluster, b"a", b"", Some(begin_ms + 60_000)).unwrap();
    loader.put(&cluster, b"b", b"", Some(begin_ms + 1_000)).unwrap();
    std::thread::sleep(HELD);
    loader.finish(&cluster).unwrap();
    let mut range = cluster.scan(b"\0", None);
    cluster.fetch(&mut range).unwrap();
    std::thread::sleep(HELD);
    assert_eq!(range.take_next().map(|(key, _)| key.to_vec()), Some(b"a".to_vec()));
    let expires_at_ms = range.taken().2.expect("it expires");
    assert!(expires_at_ms >= begin_ms + 60_000, "{expires_at_ms}");
    // The response to the read may be slow; it may not take as long as records are held.
    let late_ms = expires_at_ms - begin_ms - 60_000;
    assert!(late_ms < CUT_MS + 2_500, "{late_ms} ms too late");
    assert!(range.take_next().is_none(), "the other one had expired before it was sent");
}
