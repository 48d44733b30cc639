//! Single writes that find no space.

use crate::common::{World, all_records, put, small_options};
use kvant_base::{ErrorKind, Result};
use kvant_engine::{Options, SyncLevel, WriteBatch};
use kvant_env::faulty::{FaultOp, FaultyFs};
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A batch by name, and what became of it.
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
fn flushes_whose_edit_finds_no_space_leave_no_tables_behind() {
    let (world, disk) = world();
    let db = world.open(&small_options(SyncLevel::Os));
    db.put(b"key", b"value", None).expect("written");
    // The manifest, by the name under which it was made.
    disk.fail_next(FaultOp::Write, ".tmp", io::ErrorKind::StorageFull, 5);
    for _ in 0..5 {
        let error = db.flush().expect_err("the edit cannot be written");
        assert_eq!(error.kind(), ErrorKind::NoSpace, "{error}");
        world.clock.advance(Duration::from_secs(1));
    }
    db.flush().expect("there is space again");
    world.spawner.run_until_idle();
    assert_eq!(names(&disk, ".sst").len(), 1, "one table of the tree");
    assert_eq!(all_records(&db).expect("read").len(), 1);
}

#[test]
fn a_delete_passes_when_there_is_no_space_to_start_a_log() {
    let (world, disk) = world();
    let options = Options {
        memtable_bytes: 4096,
        ..small_options(SyncLevel::Os)
    };
    let db = world.open(&options);
    let mut number = 0;
    while db.stats().memtables.active_bytes < options.memtable_bytes {
        db.put(format!("key{number}").as_bytes(), &[b'v'; 100], None)
            .expect("written");
        number += 1;
    }
    disk.fail_next(FaultOp::Write, ".wal", io::ErrorKind::StorageFull, 1);
    db.delete(b"key0").expect("deletes go on");
    assert!(db.stats().disk_full);
    assert_eq!(db.get(b"key0").expect("read"), None);
}

#[test]
fn a_delete_does_not_share_the_fate_of_a_put_that_finds_no_space() {
    let (world, disk) = world();
    let db = world.open(&small_options(SyncLevel::Os));
    db.put(b"old", b"1", None).expect("written");
    let outcomes: Arc<Mutex<Vec<Outcome>>> = Arc::default();
    let mut delete = WriteBatch::new();
    delete.delete(b"old");
    let batches = [("put", put(b"new", b"2")), ("delete", delete)];
    let (then, outcomes_of, full) = (db.clone(), Arc::clone(&outcomes), disk.clone());
    // What is submitted while a group is being completed makes up the next group.
    let submit_both = Box::new(move |first: Result<()>| {
        first.expect("written");
        // The group, then the put alone.
        full.fail_next(FaultOp::Write, ".wal", io::ErrorKind::StorageFull, 2);
        for (name, batch) in batches {
            let outcomes = Arc::clone(&outcomes_of);
            let done = Box::new(move |result| outcomes.lock().expect("whole").push((name, result)));
            then.submit(batch, done)
                .map_err(|(error, _)| error)
                .expect("submitted");
        }
    });
    db.submit(put(b"first", b""), submit_both)
        .map_err(|(error, _)| error)
        .expect("submitted");
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
fn closing_on_a_full_disk_succeeds_when_all_is_durable() {
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
