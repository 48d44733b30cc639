//! A full disk: single writes without space, deletes that free space, opens without space.

use crate::common::{DIR, World, all_records, put, seed, small_options};
use kvant_base::{ErrorKind, Result};
use kvant_engine::tools::{DumpTarget, dump};
use kvant_engine::{Db, Options, SyncLevel, WriteBatch};
use kvant_env::Fs;
use kvant_env::rng::Rng;
use kvant_env::testing::{CrashMoment, CrashStyle, FaultOp, FaultyFs};
use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// The name of a batch, and its result.
type Outcome = (&'static str, Result<()>);

fn world() -> (World, FaultyFs) {
    let disk = FaultyFs::new(3);
    (World::new(3, Arc::new(disk.clone())), disk)
}

fn names(disk: &FaultyFs, part: &str) -> Vec<String> {
    let names = disk.files().into_iter().map(|(path, _)| path);
    names
        .map(|path| path.to_string_lossy().into_owned())
        .filter(|name| name.contains(part))
        .collect()
}

#[test]
fn a_flush_without_space_for_its_edit_leaves_no_table() {
    let (world, disk) = world();
    let db = world.open(&small_options(SyncLevel::Os));
    db.put(b"key", b"value", None).expect("written");
    // The manifest, by its temporary name. Each attempt appends two edits: the next log, then the
    // table.
    disk.fail_next(FaultOp::Write, ".tmp", io::ErrorKind::StorageFull, 10);
    for _ in 0..5 {
        let error = db.flush().expect_err("the edit cannot be written");
        assert_eq!(error.kind(), ErrorKind::NoSpace, "{error}");
        world.clock.advance(Duration::from_secs(1));
    }
    db.flush().expect("space has returned");
    world.spawner.run_until_idle();
    assert_eq!(names(&disk, ".sst").len(), 1, "one table of the tree");
    assert_eq!(all_records(&db).expect("read").len(), 1);
}

#[test]
fn a_delete_succeeds_without_space_to_start_a_log() {
    let (world, disk) = world();
    let options = Options { memtable_bytes: 4096, ..small_options(SyncLevel::Os) };
    let db = world.open(&options);
    let mut number = 0;
    while db.stats().memtables.active_bytes < options.memtable_bytes {
        db.put(format!("key{number}").as_bytes(), &[b'v'; 100], None).expect("written");
        number += 1;
    }
    disk.fail_next(FaultOp::Write, ".wal", io::ErrorKind::StorageFull, 1);
    db.delete(b"key0").expect("deletes continue");
    assert!(db.stats().disk_full);
    assert_eq!(db.get(b"key0").expect("read"), None);
}

#[test]
fn a_delete_succeeds_beside_a_put_that_finds_no_space() {
    let (world, disk) = world();
    let db = world.open(&small_options(SyncLevel::Os));
    db.put(b"old", b"1", None).expect("written");
    let outcomes: Arc<Mutex<Vec<Outcome>>> = Arc::default();
    let mut delete = WriteBatch::new();
    delete.delete(b"old");
    let batches = [("put", put(b"new", b"2")), ("delete", delete)];
    let (then, outcomes_of, full) = (db.clone(), Arc::clone(&outcomes), disk.clone());
    // Batches submitted while a group completes form the next group.
    let submit_both = Box::new(move |first: Result<()>| {
        first.expect("written");
        // Fails the group, then the put alone.
        full.fail_next(FaultOp::Write, ".wal", io::ErrorKind::StorageFull, 2);
        for (name, batch) in batches {
            let outcomes = Arc::clone(&outcomes_of);
            let done = Box::new(move |result| outcomes.lock().expect("whole").push((name, result)));
            then.submit(batch, done).map_err(|refused| refused.error).expect("submitted");
        }
    });
    db.submit(put(b"first", b""), submit_both).map_err(|refused| refused.error).expect("submitted");
    let outcomes = std::mem::take(&mut *outcomes.lock().expect("whole"));
    let kinds: Vec<_> = outcomes
        .iter()
        .map(|(name, result)| (*name, result.as_ref().err().map(kvant_base::Error::kind)))
        .collect();
    assert_eq!(kinds, [("put", Some(ErrorKind::NoSpace)), ("delete", None)]);
    assert_eq!(db.get(b"old").expect("read"), None);
    assert_eq!(db.get(b"new").expect("read"), None);
}

#[test]
fn close_succeeds_on_a_full_disk_if_everything_is_durable() {
    let (world, disk) = world();
    let options = small_options(SyncLevel::Always);
    let db = world.open(&options);
    db.put(b"key", b"value", None).expect("written");
    disk.fail_next(FaultOp::Write, ".wal", io::ErrorKind::StorageFull, 1);
    db.close().expect("what was acknowledged is durable");
    drop(db);
    let db = World::new(4, Arc::new(disk)).open(&options);
    assert_eq!(all_records(&db).expect("read").len(), 1);
}

/// Keys are scattered over the key space, so all tables of level 0 overlap each other.
fn key(number: usize) -> Vec<u8> {
    format!("{:08x}", (number as u32).wrapping_mul(0x9e37_79b1)).into_bytes()
}

/// Puts values of 1,000 random bytes, which do not compress, until one is rejected. Returns the
/// records.
fn fill(world: &World, db: &Db, rng: &mut Rng) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let mut records = BTreeMap::new();
    for number in 0..100_000 {
        let value = rng.bytes(1_000);
        match db.put(&key(number), &value, None) {
            Ok(()) => records.insert(key(number), value),
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::NoSpace, "{error}");
                assert_eq!(db.stall(), None, "a delete would wait");
                return records;
            }
        };
        world.spawner.run_until_idle();
    }
    panic!("the disk never fills");
}

/// Retries a put until it is accepted, advancing the clock.
fn put_when_healed(world: &World, db: &Db) {
    for _ in 0..100 {
        world.clock.advance(Duration::from_millis(300));
        world.spawner.run_until_idle();
        match db.put(b"healed", b"1", None) {
            Ok(()) => return,
            Err(error) => assert_eq!(error.kind(), ErrorKind::NoSpace, "{error}"),
        }
    }
    panic!("puts are not accepted again: {:#?}", db.stats());
}

fn assert_records(db: &Db, records: &BTreeMap<Vec<u8>, Vec<u8>>) {
    let found: BTreeMap<_, _> = all_records(db).expect("read").into_iter().collect();
    assert!(found == *records, "{} records of {}", found.len(), records.len());
}

fn brim_options() -> Options {
    Options { memtable_bytes: 64 << 10, table_bytes: 256 << 10, ..small_options(SyncLevel::Os) }
}

#[test]
fn deletes_make_room_for_puts_on_a_disk_filled_by_the_database() {
    deletes_make_room_for_puts(seed("deletes_make_room_for_puts_on_a_disk_filled_by_the_database"));
}

/// Merges as a whole took, for their time, the room that puts need, and tables that were about to
/// be removed counted as used: puts were refused on a disk that was half empty after it.
#[test]
fn puts_are_not_refused_for_the_room_of_a_merge() {
    for seed in [4, 290, 302] {
        deletes_make_room_for_puts(seed);
    }
}

/// Merges took the reserve while tables were about to be removed, and nothing filled it again
/// before the disk was full; then the edits of many steps had no room either.
#[test]
fn the_reserve_is_whole_when_puts_are_refused() {
    for seed in [72, 345, 9_462_072_145_975_022_728] {
        deletes_make_room_for_puts(seed);
    }
}

fn deletes_make_room_for_puts(seed: u64) {
    let mut rng = Rng::new(seed);
    for restarts in [false, true] {
        let disk = FaultyFs::new(seed);
        disk.set_capacity_bytes(Some(2 << 20));
        let mut world = World::new(seed, Arc::new(disk.clone()));
        let mut db = world.open(&brim_options());
        let mut records = BTreeMap::new();
        for _ in 0..3 {
            records.extend(fill(&world, &db, &mut rng));
            assert!(records.len() > 1_300, "{} records fit", records.len());
            if restarts {
                db.close().expect("closed");
                drop(db);
                world = World::new(seed, Arc::new(disk.clone()));
                db = world.open(&brim_options());
            }
            assert_records(&db, &records);
            let deleted: Vec<_> = records.keys().filter(|_| !rng.one_in(10)).cloned().collect();
            for key in deleted {
                db.delete(&key).expect("deletes continue");
                records.remove(&key);
                world.spawner.run_until_idle();
            }
            put_when_healed(&world, &db);
            db.delete(b"healed").expect("deleted");
            assert_records(&db, &records);
        }
    }
}

#[test]
fn a_close_on_a_full_disk_does_not_wait_for_an_early_seal() {
    for seed in 0..10 {
        let mut rng = Rng::new(seed);
        let disk = FaultyFs::new(seed);
        disk.set_capacity_bytes(Some(2 << 20));
        let world = World::new(seed, Arc::new(disk.clone()));
        let db = world.open(&brim_options());
        let records = fill(&world, &db, &mut rng);
        disk.set_capacity_bytes(Some(disk.used_bytes()));
        let (first, _) = records.first_key_value().expect("some records fit");
        db.delete(first).expect("deletes continue");
        // The next refused put asks for an early seal.
        world.clock.advance(Duration::from_secs(2));
        let error = db.put(b"more", b"1", None).expect_err("no space");
        assert_eq!(error.kind(), ErrorKind::NoSpace, "{error}");
        db.close().expect("closed");
    }
}

#[test]
fn deletes_succeed_with_a_full_level_0_and_no_room_for_compaction() {
    let (world, disk) = world();
    let options =
        Options { l0_compact_count: 2, l0_slow_count: 2, l0_stop_count: 4, ..brim_options() };
    let db = world.open(&options);
    let mut rng = Rng::new(4);
    let value = rng.bytes(1_000);
    for number in 0..400 {
        db.put(&key(number), &value, None).expect("written");
    }
    db.compact().expect("compacted");
    // Another program repeatedly takes all free space, also that of flushes and compactions.
    let mut number = 0;
    let take_all = || disk.set_capacity_bytes(Some(disk.used_bytes()));
    take_all();
    while db.stats().levels[0].table_count < 4 && number < 4_000 {
        disk.set_capacity_bytes(Some(disk.used_bytes() + (64 << 10)));
        db.delete(format!("{:x}-{}", number % 16, "k".repeat(100)).as_bytes())
            .expect("deletes continue");
        number += 1;
        world.spawner.run_until_idle();
    }
    take_all();
    for number in 0..300 {
        db.delete(&key(number)).expect("deletes continue");
        assert_eq!(db.stall(), None);
    }
    let error = db.put(b"more", &value, None).expect_err("no space");
    assert_eq!(error.kind(), ErrorKind::NoSpace, "{error}");
    assert_eq!(all_records(&db).expect("read").len(), 100);
    disk.set_capacity_bytes(None);
    put_when_healed(&world, &db);
    assert_eq!(all_records(&db).expect("read").len(), 101);
}

#[test]
fn the_reserve_suffices_for_a_hundred_thousand_deletes_without_free_space() {
    let (world, disk) = world();
    let db = world.open(&Options { sync: SyncLevel::Os, ..Options::for_memory(64 << 20) });
    db.put(b"key", &[b'v'; 100], None).expect("written");
    let long_key = |number: usize| format!("{number:064}");
    let mut number = 0;
    let error = loop {
        // All but the rest of the last block of each log.
        let logs = disk
            .files()
            .into_iter()
            .filter(|(path, _)| path.extension().is_some_and(|extension| extension == "wal"));
        let rests: u64 = logs.map(|(_, bytes)| bytes.next_multiple_of(4096) - bytes).sum();
        disk.set_capacity_bytes(Some(disk.used_bytes() + rests));
        match db.delete(long_key(number).as_bytes()) {
            Ok(()) => number += 1,
            Err(error) => break error,
        }
    };
    assert_eq!(error.kind(), ErrorKind::NoSpace, "{error}");
    assert!(number >= 100_000, "only {number} deletes");
    assert_eq!(db.get(b"key").expect("reads continue").as_deref(), Some(&[b'v'; 100][..]));
}

/// Cuts logs behind their last record, as if no space had been reserved ahead.
fn give_unused_logs_back(world: &World, disk: &FaultyFs) {
    for (path, _) in disk.files() {
        if path.extension().is_some_and(|extension| extension == "wal") {
            let num = path.file_stem().and_then(|stem| stem.to_str()?.parse().ok());
            let target = DumpTarget::Wal(num.expect("a number"));
            let mut text = Vec::new();
            dump(&world.env, Path::new(DIR), target, &mut text).expect("a log");
            let text = String::from_utf8(text).expect("text");
            let end = text.lines().last().and_then(|line| line.split(' ').next()?.parse().ok());
            let file = disk.open_writable(&path).expect("there");
            file.set_len(end.expect("good bytes")).expect("cut");
        }
    }
}

/// As on a file system that copies on writes.
#[test]
fn a_start_that_finds_no_space_to_cut_or_write_the_log_again_serves_it() {
    for (op, kind) in [
        (FaultOp::Write, io::ErrorKind::StorageFull),
        (FaultOp::Write, io::ErrorKind::QuotaExceeded),
        (FaultOp::SetLen, io::ErrorKind::StorageFull),
    ] {
        let (first, disk) = world();
        let options = small_options(SyncLevel::Interval(Duration::from_secs(1)));
        let db = first.open(&options);
        db.put(b"key", b"value", None).expect("written");
        let killed = disk.crash_image(1, CrashStyle::KeepAll);
        drop(db);
        let open = || World::new(1, Arc::new(killed.clone())).open(&options);
        killed.fail_next(op, "", kind, u64::MAX);
        let db = open();
        assert_eq!(all_records(&db).expect("read").len(), 1, "{op:?}");
        killed.clear_faults();
        db.put(b"healed", b"1", None).expect("there is space");
        drop(db);
        assert_eq!(all_records(&open()).expect("read").len(), 2, "{op:?}");
    }
}

/// Restarts that write little leave several logs for one memtable, which the next start flushes.
#[test]
fn a_start_without_free_space_after_many_restarts_leaves_a_database_that_opens() {
    let disk = FaultyFs::new(1);
    let world = || World::new(1, Arc::new(disk.clone()));
    let mut records = BTreeMap::new();
    for number in 0..4 {
        let db = world().open(&brim_options());
        records.insert(key(number), vec![b'v'; 100]);
        db.put(&key(number), &records[&key(number)], None).expect("written");
        db.close().expect("closed");
    }
    disk.set_capacity_bytes(Some(disk.used_bytes()));
    let full = world();
    let db = full.open(&brim_options());
    full.spawner.run_until_idle();
    assert_records(&db, &records);
    disk.set_capacity_bytes(None);
    put_when_healed(&full, &db);
    records.insert(b"healed".to_vec(), b"1".to_vec());
    full.spawner.run_until_idle();
    let killed = disk.crash_image(1, CrashStyle::KeepAll);
    assert_records(&World::new(1, Arc::new(killed)).open(&brim_options()), &records);
}

#[test]
fn a_database_opens_for_reading_without_free_space() {
    let seed = seed("a_database_opens_for_reading_without_free_space");
    let mut rng = Rng::new(seed);
    for is_stopped in [false, true] {
        let (world, disk) = world();
        let db = world.open(&brim_options());
        let mut records = BTreeMap::new();
        for number in 0..rng.below(600) as usize {
            records.insert(key(number), [rng.bytes(999), vec![1]].concat());
            db.put(&key(number), &records[&key(number)], None).expect("written");
            world.spawner.run_until_idle();
        }
        if is_stopped {
            db.close().expect("closed");
        }
        let disk = disk.crash_image(seed, CrashStyle::KeepAll);
        drop(db);
        let reserve = Path::new(DIR).join("RESERVE");
        disk.remove_file(&reserve).expect("there is a reserve");
        if !is_stopped {
            give_unused_logs_back(&World::new(seed, Arc::new(disk.clone())), &disk);
        }
        for _ in 0..3 {
            disk.set_capacity_bytes(Some(disk.used_bytes()));
            let world = World::new(seed, Arc::new(disk.clone()));
            let db = world.open(&brim_options());
            world.spawner.run_until_idle();
            assert_records(&db, &records);
            for attempt in [db.put(b"new", b"1", None), db.delete(&key(0))] {
                let error = attempt.expect_err("no space");
                assert_eq!(error.kind(), ErrorKind::NoSpace, "{error}");
            }
            db.close().expect("closed");
        }
        let world = World::new(seed, Arc::new(disk.clone()));
        let db = world.open(&brim_options());
        disk.set_capacity_bytes(None);
        put_when_healed(&world, &db);
        records.insert(b"healed".to_vec(), b"1".to_vec());
        db.close().expect("closed");
        drop(db);
        let db = World::new(seed, Arc::new(disk.clone())).open(&brim_options());
        assert_records(&db, &records);
    }
}

#[test]
fn a_failed_open_leaves_no_files() {
    let list = |disk: &FaultyFs| disk.files();
    let refused = |disk: &FaultyFs| {
        let world = World::new(3, Arc::new(disk.clone()));
        let opened = world.try_open(&brim_options());
        opened.err().expect("the open fails").kind()
    };
    let (world, disk) = world();
    disk.set_capacity_bytes(Some(10));
    assert_eq!(refused(&disk), ErrorKind::NoSpace);
    assert_eq!(list(&disk), []);
    assert!(!disk.exists(Path::new(DIR)).expect("checked"));

    disk.set_capacity_bytes(None);
    let db = world.open(&brim_options());
    db.put(b"key", b"value", None).expect("written");
    db.close().expect("closed");
    drop(db);
    let manifest = names(&disk, "MANIFEST").pop().expect("a manifest");
    disk.flip_byte(Path::new(&manifest), 30, 1).expect("a byte to flip");
    disk.remove_file(&Path::new(DIR).join("LOCK")).expect("there is a lock");
    let before = list(&disk);
    assert_eq!(refused(&disk), ErrorKind::Corruption);
    assert_eq!(list(&disk), before);
}

/// A database with five tables of at least 256 KiB in the last level and overwrites of their keys
/// above, on a disk with space for little more than one of these tables.
fn world_with_little_room(base: &FaultyFs) -> (World, FaultyFs, Db) {
    let disk = base.crash_image(1, CrashStyle::KeepAll);
    disk.set_capacity_bytes(Some(disk.used_bytes() + (400 << 10)));
    let world = World::new(5, Arc::new(disk.clone()));
    let db = world.open(&brim_options());
    (world, disk, db)
}

#[test]
fn a_power_loss_during_a_compaction_in_steps_loses_nothing() {
    let seed = seed("a_power_loss_during_a_compaction_in_steps_loses_nothing");
    let mut rng = Rng::new(seed);
    let (world, base) = world();
    // The overwrites are not merged before the copies are made.
    let db = world.open(&Options { l0_compact_count: 8, ..brim_options() });
    let mut records = BTreeMap::new();
    for number in (0..1_200).chain(0..120) {
        if number == 0 && !records.is_empty() {
            db.compact().expect("there is room");
        }
        let value = rng.bytes(1_000);
        db.put(&key(number), &value, None).expect("written");
        records.insert(key(number), value);
    }
    db.flush().expect("flushed");
    // Replaced tables would leave more room than the copies below are to have.
    world.spawner.run_until_idle();
    db.close().expect("closed");
    drop(db);

    let (_world, disk, db) = world_with_little_room(&base);
    let begun = disk.sync_point_count();
    db.compact().expect("each step has room");
    let levels = db.stats().levels;
    let (last, above) = levels.split_last().expect("levels");
    assert!(above.iter().all(|level| level.table_count == 0), "{levels:?}");
    assert_eq!(last.entry_count, 1_200, "no entry is duplicated");
    assert_records(&db, &records);
    let sync_points = disk.sync_point_count() - begun;
    assert!(sync_points > 12, "{sync_points} sync points: one step");

    for sync_point in 1..=sync_points {
        let (_world, disk, db) = world_with_little_room(&base);
        disk.crash_at_sync_point(disk.sync_point_count() + sync_point);
        drop(db.compact());
        let moment = [CrashMoment::BeforeSync, CrashMoment::AfterSync][rng.below(2) as usize];
        let Some(image) = disk.take_crash_image(moment, rng.next_u64(), CrashStyle::Random) else {
            continue;
        };
        let db = World::new(seed, Arc::new(image)).open(&brim_options());
        assert_records(&db, &records);
        db.compact().expect("there is room");
        assert_records(&db, &records);
        assert_eq!(db.stats().levels[6].entry_count, 1_200, "no entry is duplicated");
    }
}
