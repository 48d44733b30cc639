//! What a recovery makes of the log is flushed, and the next recovery goes on behind it.

use crate::common::{World, all_records, small_options};
use kvant_engine::{Options, SyncLevel};
use kvant_env::faulty::FaultyFs;
use std::sync::Arc;

/// A memtable that got full in the middle of a file was sealed there, and its flush made that file the oldest one that is needed: the
/// next recovery found a log that began before what it continued, and refused it.
#[test]
fn a_log_file_that_fills_a_memtable_is_flushed_as_a_whole() {
    // When a memtable counts as full is its own business.
    for records_per_log in (5..200).step_by(5) {
        two_logs(records_per_log);
    }
}

/// Two log files that do not fill a memtable, and then recoveries with smaller ones, which one of the files overfills.
fn two_logs(records_per_log: usize) {
    let disk = FaultyFs::new(1);
    for (session, memtable_bytes) in [64 << 10, 64 << 10, 8 << 10, 8 << 10].into_iter().enumerate() {
        let options = Options {
            memtable_bytes,
            ..small_options(SyncLevel::Os)
        };
        let world = World::new(1, Arc::new(disk.clone()));
        let db = world.open(&options);
        let records = all_records(&db).expect("read");
        assert_eq!(
            records.len(),
            records_per_log * session.min(2),
            "session {session}"
        );
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
