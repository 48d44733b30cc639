//! Behaviour that users rely on, one per test.

use crate::common::{START_MS, World, all_records, put, small_options};
use bytes::Bytes;
use kvant_base::ErrorKind;
use kvant_engine::{Db, Options, Resources, SyncLevel, WriteBatch};
use kvant_env::Env;
use kvant_env::testing::FaultyFs;
use std::sync::Arc;
use std::time::Duration;

fn world() -> World {
    World::new(7, Arc::new(FaultyFs::in_memory()))
}

#[test]
fn the_newest_write_wins_across_memtables_and_levels() {
    let world = world();
    let db = world.open(&small_options(SyncLevel::Os));
    for version in 0..5 {
        for number in 0..200 {
            let key = format!("key{number}");
            db.put(key.as_bytes(), format!("{version}-{number}").as_bytes(), None)
                .expect("written");
        }
        db.flush().expect("flushed");
    }
    world.spawner.run_until_idle();
    for number in 0..200 {
        let value = db.get(format!("key{number}").as_bytes()).expect("read");
        assert_eq!(value, Some(Bytes::from(format!("4-{number}"))));
    }
    assert!(db.stats().compactions.count > 0, "{:?}", db.stats().levels);
}

#[test]
fn a_record_expires_when_the_clock_reaches_its_expiry() {
    let world = world();
    let db = world.open(&small_options(SyncLevel::Os));
    db.put(b"key", b"value", Some(START_MS + 1_000)).expect("written");
    for flushed in [false, true] {
        if flushed {
            db.flush().expect("flushed");
            world.clock.advance(Duration::from_millis(999));
        }
        assert_eq!(db.get(b"key").expect("read"), Some(Bytes::from_static(b"value")));
    }
    world.clock.advance(Duration::from_millis(1));
    assert_eq!(db.get(b"key").expect("read"), None);
    assert_eq!(all_records(&db).expect("read"), vec![]);
}

#[test]
fn the_space_of_expired_records_is_freed() {
    let world = world();
    let db = world.open(&small_options(SyncLevel::Os));
    for number in 0..500 {
        db.put(format!("key{number:03}").as_bytes(), &[b'v'; 100], Some(START_MS + 1_000))
            .expect("written");
    }
    db.flush().expect("flushed");
    world.spawner.run_until_idle();
    assert!(db.stats().space.live_bytes > 0);
    world.clock.advance(Duration::from_secs(2));
    // Any flush wakes up the compaction task.
    db.put(b"another", b"", None).expect("written");
    db.flush().expect("flushed");
    world.spawner.run_until_idle();
    let live: u64 = db.stats().levels.iter().map(|level| level.entry_count).sum();
    assert!(live <= 1, "{live} entries are left");
}

#[test]
fn the_space_of_deleted_records_is_freed() {
    let world = world();
    let db = world.open(&small_options(SyncLevel::Os));
    for number in 0..500 {
        db.put(format!("key{number:03}").as_bytes(), &[b'v'; 100], None).expect("written");
    }
    db.flush().expect("flushed");
    for number in 0..500 {
        db.delete(format!("key{number:03}").as_bytes()).expect("deleted");
    }
    db.flush().expect("flushed");
    world.spawner.run_until_idle();
    let stats = db.stats();
    assert_eq!(stats.space.live_bytes, 0, "{:?}", stats.levels);
    assert_eq!(stats.space.pinned_bytes + stats.space.obsolete_bytes, 0);
}

#[test]
fn a_snapshot_pins_neither_memtables_nor_tables() {
    let world = world();
    let db = world.open(&small_options(SyncLevel::Os));
    db.put(b"key", b"old", None).expect("written");
    let snapshot = db.snapshot();
    for number in 0..2_000 {
        db.put(format!("key{}", number % 100).as_bytes(), &[b'v'; 100], None).expect("written");
        db.put(b"key", b"new", None).expect("written");
    }
    db.compact().expect("compacted");
    world.spawner.run_until_idle();
    assert_eq!(db.stats().space.pinned_bytes, 0);
    assert_eq!(snapshot.get(b"key").expect("read"), Some(Bytes::from_static(b"old")));
    assert_eq!(db.get(b"key").expect("read"), Some(Bytes::from_static(b"new")));
    assert_eq!(db.stats().snapshots.open_count, 1);
    drop(snapshot);
    assert_eq!(db.stats().snapshots.open_count, 0);
}

#[test]
fn a_slow_range_releases_obsolete_tables() {
    let world = world();
    let db = world.open(&small_options(SyncLevel::Os));
    for number in 0..30_000 {
        db.put(format!("key{number:06}").as_bytes(), &[b'v'; 100], None).expect("written");
    }
    db.flush().expect("flushed");
    let mut range = db.range(b"", None).expect("a range opens");
    for _ in 0..100 {
        range.next().expect("read");
    }
    for number in 0..30_000 {
        db.put(format!("key{number:06}").as_bytes(), b"new", None).expect("written");
    }
    db.compact().expect("compacted");
    world.spawner.run_until_idle();
    let pinned_bytes = db.stats().space.pinned_bytes;
    assert!(pinned_bytes > 0, "the range reads obsolete tables");
    let mut count = 100;
    while let Some(record) = range.next().expect("read") {
        assert_eq!(record.key, format!("key{count:06}").as_bytes());
        assert_eq!(record.value, [b'v'; 100]);
        count += 1;
    }
    assert_eq!(count, 30_000);
    world.spawner.run_until_idle();
    let space = db.stats().space;
    assert_eq!(space.pinned_bytes, 0, "of {pinned_bytes}");
    assert_eq!(space.obsolete_bytes, 0, "the files are removed as well");
}

#[test]
fn a_range_over_level_0_alone_keeps_its_tables() {
    let world = world();
    let db = world.open(&small_options(SyncLevel::Os));
    for _ in 0..2 {
        db.put(b"key", b"value", None).expect("written");
        db.flush().expect("flushed");
    }
    let mut range = db.range(b"", None).expect("a range opens");
    range.next().expect("read");
    db.compact().expect("compacted");
    world.spawner.run_until_idle();
    assert!(db.stats().space.pinned_bytes > 0, "the range reads obsolete tables");
    drop(range);
    world.spawner.run_until_idle();
    assert_eq!(db.stats().space.pinned_bytes, 0);
}

#[test]
fn a_batch_with_a_key_or_value_over_its_limit_is_rejected_as_a_whole() {
    let world = world();
    let options = Options { value_bytes_max: 1_000, ..small_options(SyncLevel::Os) };
    let db = world.open(&options);
    for (key, value) in [(vec![], vec![]), (vec![0; 16_385], vec![]), (vec![0], vec![0; 1_001])] {
        let mut batch = put(b"beside", b"");
        batch.put(&key, &value, None);
        assert_eq!(db.write(batch).expect_err("rejected").kind(), ErrorKind::Invalid);
    }
    assert_eq!(db.get(b"beside").expect("read"), None);
    db.put(&[0; 16_384], &[1; 1_000], None).expect("the largest pass");
    assert_eq!(db.get(&[0; 16_384]).expect("read"), Some(Bytes::from(vec![1; 1_000])));
}

#[test]
fn all_problems_of_the_options_are_reported_at_once() {
    let options = Options { memory_bytes: 1, level_ratio: 0, ..small_options(SyncLevel::Os) };
    let error = world().try_open(&options).err().expect("refused");
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(
        error.message().contains("memory") && error.message().contains("level ratio"),
        "{error}"
    );
}

#[test]
fn a_directory_is_opened_once() {
    let dir = std::env::temp_dir().join(format!("kvant-owner-{}", std::process::id()));
    let options = Options::for_memory(64 << 20);
    let open = || Db::open(Env::posix(), &dir, options.clone(), Resources::new(&options));
    let first = open().expect("the first owner opens");
    let error = open().err().expect("a second owner is refused");
    assert_eq!(error.kind(), ErrorKind::Locked);
    assert!(error.to_string().contains(&std::process::id().to_string()), "{error}");
    first.close().expect("closed");
    drop(open().expect("after the first has closed, another opens"));
    std::fs::remove_dir_all(&dir).expect("removed");
}

#[test]
fn submitting_from_many_threads_commits_every_batch_once() {
    let dir = std::env::temp_dir().join(format!("kvant-threads-{}", std::process::id()));
    let options = Options { sync: SyncLevel::Always, ..small_options(SyncLevel::Always) };
    let db =
        Db::open(Env::posix(), &dir, options.clone(), Resources::new(&options)).expect("opens");
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let db = &db;
            scope.spawn(move || {
                for number in 0..300 {
                    let mut batch = WriteBatch::new();
                    batch.put(format!("{thread}-{number}").as_bytes(), &[b'v'; 50], None);
                    db.write(batch).expect("written");
                    assert!(
                        db.get(format!("{thread}-{number}").as_bytes()).expect("read").is_some()
                    );
                }
            });
        }
    });
    let stats = db.stats();
    assert_eq!((stats.visible_seq, stats.writes.operation_count), (1_200, 1_200));
    assert!(stats.wal.sync_count <= stats.writes.group_count + 1, "{:?}", stats.wal);
    drop(db);
    let db = Db::open(Env::posix(), &dir, options.clone(), Resources::new(&options))
        .expect("opens again");
    assert_eq!(all_records(&db).expect("read").len(), 1_200);
    drop(db);
    std::fs::remove_dir_all(&dir).expect("removed");
}
