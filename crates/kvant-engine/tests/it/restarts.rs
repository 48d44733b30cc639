//! Repeated restarts.

use crate::common::{DIR, World, all_records, put, small_options};
use kvant_engine::tools::repair;
use kvant_engine::{Db, Options, SyncLevel};
use kvant_env::Fs;
use kvant_env::testing::{CrashStyle, FaultyFs};
use std::path::{Path, PathBuf};
use std::sync::Arc;

fn world(disk: &FaultyFs) -> World {
    World::new(5, Arc::new(disk.clone()))
}

fn count(disk: &FaultyFs, suffix: &str) -> usize {
    let files = disk.files();
    files.iter().filter(|(path, _)| path.to_string_lossy().ends_with(suffix)).count()
}

/// Kills the process; the operating system keeps its writes.
fn kill(world: &World, disk: &FaultyFs, db: Db) {
    world.spawner.abandon_tasks();
    std::mem::forget(db);
    disk.release_locks();
}

#[test]
fn logs_do_not_accumulate_over_restarts_that_never_fill_a_memtable() {
    let disk = FaultyFs::new(1);
    let options = small_options(SyncLevel::Os);
    for restart in 0..40 {
        let world = world(&disk);
        let db = world.open(&options);
        if restart % 2 == 0 {
            db.put(format!("key{restart:02}").as_bytes(), b"value", None).expect("written");
        }
        if restart % 3 == 0 {
            kill(&world, &disk, db);
        } else {
            world.spawner.run_until_idle();
            db.close().expect("closed");
        }
        let logs = count(&disk, ".wal");
        assert!(logs <= 8, "{logs} logs after {restart} restarts");
    }
    let db = world(&disk).open(&options);
    assert_eq!(all_records(&db).expect("read").len(), 20);
}

/// Space that logs had reserved ahead is neither reported as lost nor left behind.
#[test]
fn reserved_space_of_logs_is_no_loss_after_a_kill_and_is_given_back_by_a_close() {
    let disk = FaultyFs::new(1);
    let options = small_options(SyncLevel::Os);
    let killed = world(&disk);
    let db = killed.open(&options);
    killed.spawner.run_until_idle();
    for number in 0..100 {
        db.put(format!("key{number:03}").as_bytes(), &[7; 500], None).expect("written");
    }
    assert!(log_lengths(&disk).iter().any(|&bytes| bytes >= options.memtable_bytes), "reserved");
    kill(&killed, &disk, db);

    let world = world(&disk);
    let db = world.open(&options);
    assert_eq!(db.stats().recovery.discarded_bytes, 0);
    assert_eq!(all_records(&db).expect("read").len(), 100);
    world.spawner.run_until_idle();
    db.close().expect("closed");
    let left = log_lengths(&disk);
    assert!(left.iter().sum::<u64>() < options.memtable_bytes, "{left:?}");
}

/// A log of a flushed memtable becomes a later log: what it held is neither read again nor
/// reported as lost.
#[test]
fn a_reused_log_has_only_its_own_records_after_a_kill() {
    let options = small_options(SyncLevel::Os);
    let mut reused_count = 0;
    for put_count in (0..400).step_by(7) {
        let disk = FaultyFs::new(1);
        let killed = world(&disk);
        let db = killed.open(&options);
        for number in 0..put_count {
            let key = format!("key{number:03}");
            db.put(key.as_bytes(), &[7; 300], None).expect("written");
            if number % 10 > 0 {
                db.delete(key.as_bytes()).expect("written");
            }
            killed.spawner.run_until_idle();
        }
        // The next log is one whose header still has its former number.
        reused_count +=
            disk.files().iter().filter(|(path, _)| has_another_number(&disk, path)).count();
        kill(&killed, &disk, db);

        let db = world(&disk).open(&options);
        assert_eq!(db.stats().recovery.discarded_bytes, 0, "after {put_count} puts");
        let keys: Vec<_> =
            all_records(&db).expect("read").into_iter().map(|(key, _)| key).collect();
        let expected: Vec<_> = (0..put_count)
            .step_by(10)
            .map(|number| format!("key{number:03}").into_bytes())
            .collect();
        assert_eq!(keys, expected, "after {put_count} puts");
    }
    assert!(reused_count > 20, "{reused_count}");
}

/// Small records fill a memtable with less log than it has memory for: the first log reserves as
/// much as the memtable has, and later ones what they need.
#[test]
fn a_log_reserves_what_the_one_before_it_has_used() {
    let disk = FaultyFs::new(1);
    let options =
        Options { sync: SyncLevel::Os, memtable_bytes: 8 << 20, ..Options::for_memory(64 << 20) };
    let world = world(&disk);
    let db = world.open(&options);
    assert_eq!(log_lengths(&disk), [options.memtable_bytes], "the first log");
    for number in 0..300_000 {
        db.put(format!("key{number:06}").as_bytes(), b"v", None).expect("written");
        if number % 1000 == 0 {
            world.spawner.run_until_idle();
        }
    }
    world.spawner.run_until_idle();
    let lengths = log_lengths(&disk);
    assert!(lengths.len() >= 2, "{lengths:?}");
    assert!(lengths.iter().all(|&bytes| bytes <= 5 << 20), "{lengths:?}");
}

/// A log that fills the rest of a memtable does not say what a whole one takes; nor does one that a
/// flush has ended early.
#[test]
fn a_log_of_a_part_of_a_memtable_does_not_say_what_logs_need() {
    let disk = FaultyFs::new(1);
    let options =
        Options { sync: SyncLevel::Os, memtable_bytes: 8 << 20, ..Options::for_memory(64 << 20) };
    let killed = world(&disk);
    let db = killed.open(&options);
    let put = |db: &Db, number: u32| {
        db.put(format!("key{number:06}").as_bytes(), &[7; 500], None).expect("written");
    };
    (0..9_000).for_each(|number| put(&db, number));
    kill(&killed, &disk, db);

    let world = world(&disk);
    let db = world.open(&options);
    let mut number = 9_000;
    while db.stats().memtables.sealed_count == 0 {
        put(&db, number);
        number += 1;
    }
    assert!(
        (9_001..13_000).contains(&number),
        "the replayed records are in the active memtable: {number}"
    );
    world.spawner.run_until_idle();
    db.flush().expect("flushed");
    for _ in 0..3 {
        put(&db, number);
        db.flush().expect("flushed");
        world.spawner.run_until_idle();
    }
    let lengths = log_lengths(&disk);
    assert!(lengths.iter().all(|&bytes| bytes == options.memtable_bytes), "{lengths:?}");
}

/// To look for pages where nothing was written would have the system make them.
#[test]
fn an_old_log_is_looked_at_only_where_it_was_written() {
    let disk = FaultyFs::new(1);
    let options = small_options(SyncLevel::Os);
    let world = world(&disk);
    let db = world.open(&options);
    world.spawner.run_until_idle();
    db.put(b"key", b"value", None).expect("written");
    let (log, bytes) = logs(&disk).swap_remove(0);
    (200..bytes).for_each(|offset_bytes| disk.lose_byte(&log, offset_bytes));
    db.flush().expect("flushed");
    assert!(disk.files().contains(&(log, bytes)), "removed: {:?}", disk.files());
}

fn log_lengths(disk: &FaultyFs) -> Vec<u64> {
    logs(disk).into_iter().map(|(_, bytes)| bytes).collect()
}

fn logs(disk: &FaultyFs) -> Vec<(PathBuf, u64)> {
    let mut files = disk.files();
    files.retain(|(path, _)| path.extension().is_some_and(|extension| extension == "wal"));
    files
}

/// Whether the header of a log has another number than its name.
fn has_another_number(disk: &FaultyFs, path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).expect("a name");
    let Some(num) = name.strip_suffix(".wal").and_then(|num| num.parse::<u64>().ok()) else {
        return false;
    };
    let contents = disk.contents(path).expect("there");
    let in_header =
        contents.get(12..20).map(|bytes| u64::from_le_bytes(bytes.try_into().expect("8")));
    in_header.is_some_and(|in_header| in_header != 0 && in_header != num)
}

#[test]
fn restarts_without_writes_leave_no_logs_and_no_tables() {
    let disk = FaultyFs::new(1);
    let options = small_options(SyncLevel::Os);
    for _ in 0..10 {
        let world = world(&disk);
        let db = world.open(&options);
        world.spawner.run_until_idle();
        db.close().expect("closed");
        let (logs, tables) = (count(&disk, ".wal"), count(&disk, ".sst"));
        assert!(logs <= 3 && tables == 0, "{logs} logs, {tables} tables");
    }
}

#[test]
fn files_with_impossible_numbers_are_ignored() {
    let disk = FaultyFs::new(1);
    let options = small_options(SyncLevel::Os);
    drop(world(&disk).open(&options));
    for name in ["18446744073709551615.wal", "18446744073709551614.sst"] {
        disk.create(&Path::new(DIR).join(name)).expect("created");
    }
    let db = world(&disk).open(&options);
    db.put(b"key", b"value", None).expect("written");
    db.flush().expect("flushed");
    assert_eq!(count(&disk, "18446744073709551615.wal"), 1);
}

#[test]
fn with_sync_always_recovered_records_are_durable() {
    let disk = FaultyFs::new(1);
    let options = small_options(SyncLevel::Always);
    let first = world(&disk);
    let db = first.open(&options);
    // The process is killed between write and sync.
    db.submit(put(b"key", b"value"), Box::new(|_| ()))
        .map_err(|refused| refused.error)
        .expect("submitted");
    kill(&first, &disk, db);

    let second = world(&disk);
    let db = second.open(&options);
    let shown = db.get(b"key").expect("read");
    let image = disk.crash_image(1, CrashStyle::DropUnsynced);
    drop(db);
    let db = world(&image).open(&options);
    assert_eq!(db.get(b"key").expect("read"), shown);
}

#[test]
fn a_repair_without_a_manifest_leaves_a_database_that_opens() {
    let options = small_options(SyncLevel::Os);
    for lose_a_table in [false, true] {
        let disk = FaultyFs::new(1);
        let first = world(&disk);
        let db = first.open(&options);
        db.put(b"a", b"1", None).expect("written");
        db.flush().expect("flushed");
        db.put(b"b", b"2", None).expect("written");
        // The log of `a` becomes the next one.
        first.spawner.run_until_idle();
        kill(&first, &disk, db);
        for (path, _) in disk.files() {
            let name = path.to_string_lossy().into_owned();
            if name.contains("MANIFEST") || (lose_a_table && name.ends_with(".sst")) {
                disk.remove_file(&path).expect("removed");
            }
        }
        let second = world(&disk);
        repair(&second.env, Path::new(DIR)).expect("repaired");
        let db = second.open(&options);
        assert_eq!(db.get(b"b").expect("read").as_deref(), Some(&b"2"[..]));
        assert_eq!(db.get(b"a").expect("read").is_some(), !lose_a_table);
        db.put(b"c", b"3", None).expect("written");
    }
}
