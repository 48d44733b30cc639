//! What a start makes durable, removes and reuses: in new directories, and after failed syncs, on
//! disks that are full and lose power.

use crate::common::{DIR, World, small_options};
use kvant_base::{ErrorKind, Result};
use kvant_engine::tools::restore;
use kvant_engine::{Db, Resources, SyncLevel};
use kvant_env::Fs;
use kvant_env::testing::{CrashStyle, FaultOp, FaultyFs};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

fn world(disk: &FaultyFs) -> World {
    World::new(4, Arc::new(disk.clone()))
}

fn open_at(disk: &FaultyFs, dir: &Path) -> Result<Db> {
    let options = small_options(SyncLevel::Always);
    Db::open(world(disk).env, dir, options.clone(), Resources::new(&options))
}

fn power_loss(disk: &FaultyFs) -> FaultyFs {
    disk.crash_image(1, CrashStyle::DropUnsynced)
}

#[track_caller]
fn assert_keys(db: &Db, keys: &[&str]) {
    for key in keys {
        assert!(db.get(key.as_bytes()).expect("read").is_some(), "{key}");
    }
}

/// A power loss leaves the record `key`, and after a flush also one written since.
#[track_caller]
fn assert_durable_now_and_after_a_flush(db: &Db, disk: &FaultyFs) {
    let left = || open_at(&power_loss(disk), Path::new(DIR)).expect("opens");
    disk.sync_all();
    assert_keys(&left(), &["key"]);
    db.put(b"after", b"1", None).expect("there is space");
    db.flush().expect("flushed");
    assert_keys(&left(), &["key", "after"]);
}

fn files(disk: &FaultyFs, part: &str) -> Vec<PathBuf> {
    let paths = disk.files().into_iter().map(|(path, _)| path);
    paths.filter(|path| path.to_string_lossy().contains(part)).collect()
}

#[test]
fn a_new_data_directory_survives_a_power_loss_with_its_new_parents() {
    let dir = Path::new("/a/b/db");
    // The last directory that an earlier attempt, which a crash ended, has created.
    for left in dir.ancestors() {
        let disk = FaultyFs::new(1);
        disk.create_dir_all(left.parent().unwrap_or(left)).expect("created");
        disk.sync_all();
        disk.create_dir_all(left).expect("created");
        let db = open_at(&disk, dir).expect("opens");
        db.put(b"key", b"value", None).expect("written");
        let db = open_at(&power_loss(&disk), dir).expect("opens");
        assert_keys(&db, &["key"]);
    }
}

/// A later sync that succeeds proves nothing of a name whose sync has failed.
#[test]
fn a_new_data_directory_whose_name_may_be_lost_is_made_anew() {
    let dir = Path::new("/a/b/db");
    for synced_count in 0.. {
        let disk = FaultyFs::new(1);
        disk.fail_after(synced_count, FaultOp::SyncDir, "", io::ErrorKind::Other, 1);
        if open_at(&disk, dir).is_ok() {
            assert!(synced_count > dir.ancestors().count() as u64);
            break;
        }
        let db = open_at(&disk, dir).expect("opens");
        db.put(b"key", b"value", None).expect("written");
        let db = open_at(&power_loss(&disk), dir).expect("opens");
        assert_keys(&db, &["key"]);
    }
}

#[test]
fn a_restored_database_survives_a_power_loss_with_its_new_parents() {
    let disk = FaultyFs::new(1);
    let db = open_at(&disk, Path::new(DIR)).expect("opens");
    db.put(b"key", b"value", None).expect("written");
    db.close().expect("closed");
    let to = Path::new("/a/b/restored");
    restore(&world(&disk).env, Path::new(DIR), to).expect("restored");
    let db = open_at(&power_loss(&disk), to).expect("opens");
    assert_keys(&db, &["key"]);
}

/// An edit whose fsync failed is in memory only, and the start has no space to write it again.
#[test]
fn a_start_removes_no_log_that_the_manifest_on_the_disk_needs() {
    let dir = Path::new(DIR);
    for synced_count in 0.. {
        let disk = FaultyFs::new(1);
        let first = world(&disk);
        let db = first.open(&small_options(SyncLevel::Always));
        db.put(b"key", b"value", None).expect("written");
        first.spawner.run_until_idle();
        // The manifest, by its temporary name.
        disk.fail_after(synced_count, FaultOp::SyncData, ".tmp", io::ErrorKind::Other, 1);
        let Err(error) = db.flush() else {
            assert!(synced_count > 0, "the flush has an edit");
            break;
        };
        assert_eq!(error.kind(), ErrorKind::Fenced, "{error}");
        drop(db);
        disk.fail_next(FaultOp::Create, ".wal", io::ErrorKind::StorageFull, 1);
        let manifest = files(&disk, "MANIFEST").pop().expect("a manifest");
        disk.fail_next(FaultOp::Write, &manifest.to_string_lossy(), io::ErrorKind::StorageFull, 1);
        let db = open_at(&disk, dir).expect("opens");
        assert_keys(&db, &["key"]);
        assert_durable_now_and_after_a_flush(&db, &disk);
    }
}

/// A new manifest whose name was not synced is in memory only.
#[test]
fn a_start_keeps_the_manifest_before_one_whose_name_may_be_lost() {
    let (disk, dir) = (FaultyFs::new(1), Path::new(DIR));
    let db = open_at(&disk, dir).expect("opens");
    db.put(b"key", b"value", None).expect("written");
    db.close().expect("closed");
    drop(db);
    // The first sync is for the name of the log.
    disk.fail_after(1, FaultOp::SyncDir, "", io::ErrorKind::Other, 1);
    let error = open_at(&disk, dir).map(|_| ()).expect_err("the sync fails");
    assert_eq!(error.kind(), ErrorKind::OutcomeUnknown, "{error}");
    disk.fail_next(FaultOp::Create, ".wal", io::ErrorKind::StorageFull, 1);
    let db = open_at(&disk, dir).expect("opens");
    assert_durable_now_and_after_a_flush(&db, &disk);
}

#[test]
fn a_first_manifest_whose_name_may_be_lost_is_made_anew() {
    let (disk, dir) = (FaultyFs::new(1), Path::new(DIR));
    disk.create_dir_all(dir).expect("created");
    disk.fail_next(FaultOp::SyncDir, DIR, io::ErrorKind::Other, 1);
    let error = open_at(&disk, dir).map(|_| ()).expect_err("the sync fails");
    assert_eq!(error.kind(), ErrorKind::OutcomeUnknown, "{error}");
    disk.fail_next(FaultOp::Create, ".wal", io::ErrorKind::StorageFull, 1);
    let db = open_at(&disk, dir).expect("opens");
    db.put(b"key", b"value", None).expect("there is space");
    assert_keys(&open_at(&power_loss(&disk), dir).expect("opens"), &["key"]);
}

#[test]
fn a_start_does_not_take_a_failed_sync_for_a_full_disk() {
    let dir = Path::new(DIR);
    // The log of before is synced first.
    for (op, suffix, synced_count) in [(FaultOp::SyncDir, "", 0), (FaultOp::SyncData, ".wal", 1)] {
        let disk = FaultyFs::new(1);
        let db = open_at(&disk, dir).expect("opens");
        db.put(b"key", b"value", None).expect("written");
        db.close().expect("closed");
        drop(db);
        disk.fail_after(synced_count, op, suffix, io::ErrorKind::StorageFull, 1);
        let error = open_at(&disk, dir).map(|_| ()).expect_err("the sync fails");
        assert_eq!((error.kind(), disk.fault_count()), (ErrorKind::Io, 1), "{error}");
    }
}

/// The sync task may be writing it again when its memtable has been flushed.
#[test]
fn a_log_of_an_earlier_process_is_not_reused() {
    let disk = FaultyFs::new(1);
    let options = small_options(SyncLevel::Interval(Duration::from_secs(1)));
    let db = world(&disk).open(&options);
    db.put(b"key", b"value", None).expect("written");
    let killed = disk.crash_image(1, CrashStyle::KeepAll);
    drop(db);
    // The numbers in the headers of logs that have one.
    let nums = |disk: &FaultyFs| {
        let logs = files(disk, ".wal").into_iter().map(|path| disk.contents(&path));
        let nums = logs.filter_map(|log| Some(log.expect("there").get(12..20)?.to_vec()));
        nums.filter(|num| num.iter().any(|&byte| byte > 0)).collect::<Vec<_>>()
    };
    let recovered = nums(&killed);
    assert_eq!(recovered.len(), 1);
    // Whether the flush or the compaction task takes old logs first depends on the seed.
    for seed in 0..10 {
        let disk = killed.crash_image(1, CrashStyle::KeepAll);
        disk.fail_next(FaultOp::Write, ".wal", io::ErrorKind::StorageFull, 1);
        let world = World::new(seed, Arc::new(disk.clone()));
        let db = world.open(&options);
        db.put(b"after", b"1", None).expect("written");
        db.flush().expect("flushed");
        world.spawner.run_until_idle();
        assert!(!nums(&disk).contains(&recovered[0]), "a later log has its file");
        assert_keys(&db, &["key", "after"]);
    }
}
