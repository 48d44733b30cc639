//! Replay of a log with settings other than those with which it was written.

use crate::common::{World, all_records, small_options};
use kvant_engine::{Db, Options, SyncLevel};
use kvant_env::testing::FaultyFs;
use std::sync::Arc;

/// Opens the database, uses it, and kills the process.
fn life(disk: &FaultyFs, options: &Options, live: impl FnOnce(&World, &Db)) {
    let world = World::new(1, Arc::new(disk.clone()));
    let db = world.open(options);
    live(&world, &db);
    world.spawner.abandon_tasks();
    std::mem::forget(db);
    disk.release_locks();
}

fn key(number: usize) -> Vec<u8> {
    format!("key{number:03}").into_bytes()
}

fn value(number: usize) -> Vec<u8> {
    vec![number as u8; 400]
}

fn put(db: &Db, numbers: std::ops::Range<usize>) {
    for number in numbers {
        db.put(&key(number), &value(number), None).expect("written");
    }
}

#[test]
fn a_memtable_that_fills_up_in_its_second_log_is_sealed_after_that_log() {
    let disk = FaultyFs::new(1);
    let large = Options { memtable_bytes: 256 << 10, ..small_options(SyncLevel::Os) };
    let small = Options { memtable_bytes: 16 << 10, ..large.clone() };
    // The small memtable is not full after the first log, and full well before the end of the
    // second.
    life(&disk, &large, |_, db| put(db, 0..2));
    life(&disk, &large, |_, db| put(db, 2..50));
    // Both logs of the first memtable are needed until it has been flushed.
    life(&disk, &small, |world, _| world.spawner.run_until_idle());
    life(&disk, &small, |_, db| {
        let expected: Vec<_> = (0..50).map(|number| (key(number), value(number))).collect();
        assert_eq!(all_records(db).expect("read"), expected);
    });
}

#[test]
fn values_of_all_sizes_are_replayed_in_order() {
    let disk = FaultyFs::new(1);
    let options = small_options(SyncLevel::Os);
    // Around the size from which values are replayed separately.
    let sizes = [0, 1, 65_535, 65_536, 65_537, 300_000];
    let write = |db: &Db| {
        for round in 0..3 {
            for (number, size) in sizes.iter().enumerate() {
                db.put(&key(number), &vec![round; size + usize::from(round)], None)
                    .expect("written");
            }
            db.delete(&key(usize::from(round))).expect("deleted");
        }
    };
    life(&disk, &options, |_, db| write(db));
    life(&disk, &options, |_, db| {
        let expected = sizes.iter().enumerate().filter(|(number, _)| *number != 2);
        let expected: Vec<_> =
            expected.map(|(number, size)| (key(number), vec![2; size + 2])).collect();
        assert_eq!(all_records(db).expect("read"), expected);
    });
}

/// Regression: a memtable that filled up in the middle of a file was sealed there, and its flush
/// made that file the oldest needed one. The next recovery rejected the log, which started before
/// the flushed sequence number.
#[test]
fn a_log_file_that_fills_a_memtable_is_flushed_as_a_whole() {
    // Various sizes, as the memtable decides when it is full.
    for records_per_log in (5..200).step_by(5) {
        two_logs(records_per_log);
    }
}

/// Writes two log files that do not fill a memtable, then recovers with smaller memtables, which
/// one of the files overfills.
fn two_logs(records_per_log: usize) {
    let disk = FaultyFs::new(1);
    for (session, memtable_bytes) in [64 << 10, 64 << 10, 8 << 10, 8 << 10].into_iter().enumerate()
    {
        let options = Options { memtable_bytes, ..small_options(SyncLevel::Os) };
        let world = World::new(1, Arc::new(disk.clone()));
        let db = world.open(&options);
        let records = all_records(&db).expect("read");
        assert_eq!(records.len(), records_per_log * session.min(2), "session {session}");
        if session < 2 {
            for number in 0..records_per_log {
                db.put(format!("{session}-{number}").as_bytes(), &[b'v'; 100], None)
                    .expect("written");
            }
        } else {
            world.spawner.run_until_idle();
        }
        // The process is killed.
        world.spawner.abandon_tasks();
        std::mem::forget(db);
        disk.release_locks();
    }
}
