//! Disk failures and a full disk.

use crate::common::{World, all_records, put, small_options};
use bytes::Bytes;
use kvant_base::ErrorKind;
use kvant_engine::{Options, SyncLevel, WriteHealth};
use kvant_env::rng::Rng;
use kvant_env::testing::{CrashStyle, FaultOp, FaultyFs};
use std::io;
use std::sync::Arc;
use std::time::Duration;

fn world() -> (World, FaultyFs) {
    let disk = FaultyFs::new(3);
    (World::new(3, Arc::new(disk.clone())), disk)
}

#[test]
fn a_failed_fsync_leaves_the_outcome_unknown_and_fences_later_writes() {
    let (world, disk) = world();
    let options = small_options(SyncLevel::Always);
    let db = world.open(&options);
    db.put(b"before", b"1", None).expect("written");
    disk.fail_next(FaultOp::SyncData, ".wal", io::ErrorKind::Other, 1);
    let error = db.put(b"during", b"2", None).expect_err("the fsync failed");
    assert_eq!(error.kind(), ErrorKind::OutcomeUnknown, "{error}");
    for attempt in [db.put(b"after", b"3", None), db.delete(b"before"), db.flush(), db.compact()] {
        let error = attempt.expect_err("writes are fenced");
        assert_eq!(error.kind(), ErrorKind::Fenced, "{error}");
    }
    assert!(db.stats().fenced.is_some());
    assert!(matches!(db.write_health(), WriteHealth::Fenced(_)));
    assert_eq!(db.get(b"before").expect("reads continue"), Some(Bytes::from_static(b"1")));
    assert_eq!(db.get(b"after").expect("reads continue"), None);
    drop(db);
    let db = World::new(4, Arc::new(disk)).open(&options);
    assert_eq!(db.get(b"before").expect("read"), Some(Bytes::from_static(b"1")));
    db.put(b"after", b"3", None).expect("a restart lifts the fence");
}

/// The restarted process reads what the failed fsync has left in memory only.
#[test]
fn what_a_restart_finds_after_a_failed_fsync_survives_a_power_loss() {
    for style in [CrashStyle::DropUnsynced, CrashStyle::KeepAll] {
        let (world, disk) = world();
        let options = small_options(SyncLevel::Always);
        let db = world.open(&options);
        db.put(b"before", b"1", None).expect("written");
        disk.fail_next(FaultOp::SyncData, ".wal", io::ErrorKind::Other, 1);
        db.put(b"during", b"2", None).expect_err("the fsync failed");
        drop(db);
        let db = World::new(4, Arc::new(disk.clone())).open(&options);
        let during = db.get(b"during").expect("read");
        db.put(b"after", b"3", None).expect("written");
        let image = disk.crash_image(1, style);
        drop(db);
        let db = World::new(4, Arc::new(image)).open(&options);
        assert_eq!(db.get(b"before").expect("read"), Some(Bytes::from_static(b"1")));
        assert_eq!(db.get(b"during").expect("read"), during, "readers have seen it");
        assert_eq!(db.get(b"after").expect("read"), Some(Bytes::from_static(b"3")));
    }
}

/// At `os` the only fsync of the log is that of a close, and a start writes nothing again.
#[test]
fn what_a_clean_stop_leaves_after_a_failed_one_survives_a_power_loss() {
    for level in [SyncLevel::Os, SyncLevel::Always] {
        let (world, disk) = world();
        let options = small_options(SyncLevel::Os);
        let db = world.open(&options);
        db.put(b"before", b"1", None).expect("written");
        disk.fail_next(FaultOp::SyncData, ".wal", io::ErrorKind::Other, 1);
        db.close().expect_err("the fsync failed");
        drop(db);
        let db = World::new(4, Arc::new(disk.clone())).open(&options);
        db.put(b"between", b"2", None).expect("written");
        db.close().expect("a clean stop");
        drop(db);
        let db = World::new(4, Arc::new(disk.clone())).open(&small_options(level));
        db.put(b"after", b"3", None).expect("written");
        let image = disk.crash_image(1, CrashStyle::DropUnsynced);
        drop(db);
        let db = World::new(4, Arc::new(image)).open(&options);
        assert_eq!(db.get(b"before").expect("read"), Some(Bytes::from_static(b"1")));
        assert_eq!(db.get(b"between").expect("read"), Some(Bytes::from_static(b"2")));
        if level == SyncLevel::Always {
            assert_eq!(db.get(b"after").expect("read"), Some(Bytes::from_static(b"3")));
        }
    }
}

/// On a file system that copies on writes, after a start without space for that.
#[test]
fn a_log_that_a_start_could_not_write_again_is_written_again_before_a_write_counts_as_synced() {
    for level in [SyncLevel::Always, SyncLevel::Interval(Duration::from_millis(1))] {
        let (world, disk) = world();
        let options = small_options(level);
        let db = world.open(&options);
        db.put(b"before", b"1", None).expect("written");
        disk.fail_next(FaultOp::SyncData, ".wal", io::ErrorKind::Other, 1);
        // At the interval the put has succeeded, and the close fails.
        let _failed = db.put(b"during", b"2", None).and_then(|()| db.close());
        drop(db);
        // The first write of the start.
        disk.fail_next(FaultOp::Write, ".wal", io::ErrorKind::StorageFull, 1);
        let db = World::new(4, Arc::new(disk.clone())).open(&options);
        let during = db.get(b"during").expect("read");
        db.put(b"after", b"3", None).expect("written");
        if level != SyncLevel::Always {
            db.close().expect("closed");
        }
        let image = disk.crash_image(1, CrashStyle::DropUnsynced);
        drop(db);
        let db = World::new(4, Arc::new(image)).open(&options);
        assert_eq!(db.get(b"during").expect("read"), during);
        assert_eq!(db.get(b"after").expect("read"), Some(Bytes::from_static(b"3")));
    }
}

#[test]
fn a_close_that_has_no_space_to_write_a_log_again_says_so() {
    let (world, disk) = world();
    let options = small_options(SyncLevel::Os);
    let db = world.open(&options);
    db.put(b"key", b"value", None).expect("written");
    disk.fail_next(FaultOp::SyncData, ".wal", io::ErrorKind::Other, 1);
    db.close().expect_err("the fsync failed");
    drop(db);
    let db = World::new(4, Arc::new(disk.clone())).open(&options);
    disk.fail_next(FaultOp::Write, ".wal", io::ErrorKind::StorageFull, 1);
    let error = db.close().expect_err("the log is not durable");
    assert_eq!(error.kind(), ErrorKind::NoSpace, "{error}");
    drop(db);
    let db = World::new(4, Arc::new(disk)).open(&options);
    assert_eq!(db.get(b"key").expect("read"), Some(Bytes::from_static(b"value")));
    db.close().expect("there is space again");
}

#[test]
fn a_failed_fsync_of_a_table_fences_writes_and_loses_nothing() {
    let (world, disk) = world();
    let options = small_options(SyncLevel::Os);
    let db = world.open(&options);
    for number in 0..50 {
        db.put(format!("key{number}").as_bytes(), &[b'v'; 100], None).expect("written");
    }
    disk.fail_next(FaultOp::SyncData, ".sst", io::ErrorKind::Other, 1);
    assert_eq!(db.flush().expect_err("the flush fails").kind(), ErrorKind::Fenced);
    assert_eq!(all_records(&db).expect("reads continue").len(), 50);
    drop(db);
    let db = World::new(4, Arc::new(disk)).open(&options);
    assert_eq!(all_records(&db).expect("read").len(), 50);
}

#[test]
fn a_failed_log_write_is_undone_and_the_next_one_succeeds() {
    let (world, disk) = world();
    let options = small_options(SyncLevel::Os);
    let db = world.open(&options);
    db.put(b"first", b"1", None).expect("written");
    disk.fail_next(FaultOp::Write, ".wal", io::ErrorKind::Other, 1);
    assert_eq!(
        db.put(b"rejected", b"2", None).expect_err("the write failed").kind(),
        ErrorKind::Io
    );
    db.put(b"second", b"3", None).expect("written");
    db.close().expect("closed");
    let db = World::new(4, Arc::new(disk)).open(&options);
    let keys: Vec<_> = all_records(&db).expect("read").into_iter().map(|(key, _)| key).collect();
    assert_eq!(keys, [b"first".to_vec(), b"second".to_vec()]);
}

/// If the whole record was written before the error, it is there after a restart.
#[test]
fn a_log_write_that_cannot_be_undone_has_an_unknown_outcome() {
    let options = small_options(SyncLevel::Os);
    let mut found_after_restart = 0;
    for seed in 0..400 {
        let disk = FaultyFs::new(seed);
        let db = World::new(seed, Arc::new(disk.clone())).open(&options);
        db.put(b"before", b"1", None).expect("written");
        disk.fail_next(FaultOp::Write, ".wal", io::ErrorKind::Other, 1);
        disk.fail_next(FaultOp::SetLen, ".wal", io::ErrorKind::Other, 1);
        let error = db.put(b"during", b"2", None).expect_err("the write failed");
        assert_eq!(error.kind(), ErrorKind::OutcomeUnknown, "{error}");
        let error = db.put(b"after", b"3", None).expect_err("writes are fenced");
        assert_eq!(error.kind(), ErrorKind::Fenced, "{error}");
        assert!(error.to_string().contains("truncate"), "{error}");
        assert!(
            matches!(db.write_health(), WriteHealth::Fenced(cause) if cause.to_string().contains("truncate"))
        );
        drop(db);
        let db = World::new(seed, Arc::new(disk)).open(&options);
        assert!(db.get(b"before").expect("read").is_some());
        assert!(db.get(b"after").expect("read").is_none());
        found_after_restart += usize::from(db.get(b"during").expect("read").is_some());
    }
    assert!(found_after_restart > 0, "no seed wrote the whole record");
}

#[test]
fn health_reports_failed_writes_until_one_succeeds_or_none_is_tried() {
    let (world, disk) = world();
    let db = world.open(&small_options(SyncLevel::Os));
    let is_good = || matches!(db.write_health(), WriteHealth::Good);
    let fail = || {
        disk.fail_next(FaultOp::Write, ".wal", io::ErrorKind::Other, 1);
        db.put(b"key", b"1", None).expect_err("the write failed");
        match db.write_health() {
            WriteHealth::Failing(cause) => assert_eq!(cause.kind(), ErrorKind::Io, "{cause}"),
            health => panic!("{health:?}"),
        }
    };
    assert!(is_good());
    fail();
    db.put(b"key", b"2", None).expect("written");
    assert!(is_good());
    fail();
    world.clock.advance(Duration::from_secs(29));
    assert!(!is_good());
    world.clock.advance(Duration::from_secs(1));
    assert!(is_good());
}

#[test]
fn health_reports_failed_flushes_once_they_stall_writes() {
    let (world, disk) = world();
    let db = world.open(&small_options(SyncLevel::Os));
    disk.fail_next(FaultOp::Write, ".sst", io::ErrorKind::Other, u64::MAX);
    let fill = || {
        let (done, batch) = (Box::new(|_| ()), put(b"key", &[b'v'; 1_000]));
        let refused = db.submit(batch, done).is_err();
        for _ in 0..20 {
            if !world.spawner.step() {
                break;
            }
        }
        refused
    };
    assert!((0..1_000).any(|_| fill()), "memory never fills");
    assert!(
        matches!(db.write_health(), WriteHealth::Failing(cause) if cause.to_string().contains(".sst"))
    );
    disk.clear_faults();
    world.clock.advance(Duration::from_secs(1));
    db.flush().expect("flushed");
    assert!(matches!(db.write_health(), WriteHealth::Good));
}

#[test]
fn a_full_disk_rejects_puts_accepts_deletes_and_recovers() {
    let (world, disk) = world();
    let options = Options { memtable_bytes: 64 << 10, ..small_options(SyncLevel::Os) };
    disk.set_capacity_bytes(Some(1 << 20));
    let db = world.open(&options);
    let mut rng = Rng::new(9);
    let mut values = Vec::new();
    let error = loop {
        // Random bytes do not compress.
        let value = rng.bytes(1_000);
        match db.put(format!("key{:06}", values.len()).as_bytes(), &value, None) {
            Ok(()) => values.push(value),
            Err(error) => break error,
        }
        assert!(values.len() < 10_000, "the disk never fills");
    };
    let written = values.len();
    assert_eq!(error.kind(), ErrorKind::NoSpace, "{error}");
    assert!(db.stats().disk_full);
    assert!(written > 300, "{written} records fit on a disk of 1 MiB");
    for (number, value) in values.iter().enumerate() {
        let found = db.get(format!("key{number:06}").as_bytes()).expect("reads continue");
        assert_eq!(found.as_deref(), Some(value.as_slice()), "key {number}");
    }
    for number in 0..20 {
        db.delete(format!("key{number:06}").as_bytes()).expect("deletes continue");
    }
    assert_eq!(
        db.write(put(b"more", &[0; 1_000])).expect_err("still full").kind(),
        ErrorKind::NoSpace
    );

    disk.set_capacity_bytes(Some(16 << 20));
    world.clock.advance(Duration::from_secs(1));
    db.put(b"more", b"1", None).expect("space has returned");
    assert!(!db.stats().disk_full);
    db.flush().expect("flushes continue");
    assert_eq!(all_records(&db).expect("read").len(), written - 20 + 1);
    drop(db);
    let db = World::new(4, Arc::new(disk)).open(&options);
    assert_eq!(all_records(&db).expect("read").len(), written - 20 + 1);
}

#[test]
fn a_disk_that_is_full_at_the_start_still_reads() {
    let (world, disk) = world();
    let options = small_options(SyncLevel::Os);
    let db = world.open(&options);
    db.put(b"key", b"1", None).expect("written");
    db.close().expect("closed");
    drop(db);
    // Space for a log header and a manifest, not for the reserve.
    disk.set_capacity_bytes(Some(disk.used_bytes() - 8_000));
    let db = World::new(4, Arc::new(disk)).open(&options);
    assert_eq!(db.get(b"key").expect("read"), Some(Bytes::from_static(b"1")));
}
