//! Checkpoints on a disk with failures and power losses.

use crate::common::{DIR, World, all_records, small_options};
use kvant_base::ErrorKind;
use kvant_engine::tools::restore;
use kvant_engine::{Db, Options, Resources, SyncLevel};
use kvant_env::clock::SystemClock;
use kvant_env::spawner::ThreadSpawner;
use kvant_env::testing::{CrashStyle, FaultOp, FaultyFs};
use kvant_env::{Env, Fs};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

const RECORDS: usize = 60;

fn database(disk: &FaultyFs, options: &Options) -> Db {
    let db = World::new(5, Arc::new(disk.clone())).open(options);
    for number in 0..RECORDS {
        db.put(format!("key{number}").as_bytes(), &[b'v'; 300], None).expect("written");
    }
    db.flush().expect("flushed");
    db
}

fn records_of(disk: &FaultyFs, dir: &Path, options: &Options) -> usize {
    let world = World::new(6, Arc::new(disk.clone()));
    let db = Db::open(world.env.clone(), dir, options.clone(), Resources::new(options))
        .expect("it opens");
    all_records(&db).expect("readable").len()
}

/// Everything outside the data directory, and files of checkpoints inside it.
fn traces(disk: &FaultyFs) -> Vec<PathBuf> {
    let paths = disk.files().into_iter().map(|(path, _)| path);
    let mut traces: Vec<_> = paths.filter(|path| path.parent() != Some(Path::new(DIR))).collect();
    for dir in ["/copies", "/db/checkpoint.unfinished"] {
        if disk.exists(Path::new(dir)).expect("the disk has power") {
            traces.push(PathBuf::from(dir));
        }
    }
    traces
}

#[test]
fn a_failed_checkpoint_leaves_nothing() {
    let options = small_options(SyncLevel::Os);
    let target = Path::new("/copies/of/today");
    for (op, path_suffix) in [
        (FaultOp::CreateDirAll, ""),
        (FaultOp::HardLink, ""),
        (FaultOp::Create, "tmp"),
        (FaultOp::Write, "tmp"),
        (FaultOp::SyncData, "tmp"),
        (FaultOp::Rename, ""),
        (FaultOp::SyncDir, "today"),
        (FaultOp::SyncDir, "of"),
        (FaultOp::SyncDir, "unfinished"),
        (FaultOp::SyncDir, "/"),
    ] {
        let disk = FaultyFs::new(7);
        let db = database(&disk, &options);
        let mut failed = 0;
        loop {
            // Fails each operation of a checkpoint in turn.
            disk.clear_faults();
            disk.fail_after(failed, op, path_suffix, io::ErrorKind::Other, 1);
            match db.checkpoint(target) {
                Ok(()) => break,
                Err(error) => assert_eq!(
                    error.kind(),
                    ErrorKind::Io,
                    "{op:?} {path_suffix} {failed}: {error}"
                ),
            }
            assert_eq!(traces(&disk), Vec::<PathBuf>::new(), "{op:?} {path_suffix} {failed}");
            assert!(db.stats().fenced.is_none(), "{op:?} {path_suffix} {failed}");
            failed += 1;
        }
        assert!(failed > 0, "{op:?} {path_suffix} never failed");
        disk.clear_faults();
        drop(db);
        assert_eq!(records_of(&disk, target, &options), RECORDS, "{op:?}");
    }
}

#[test]
fn a_checkpoint_survives_power_loss_with_its_new_parents() {
    let options = small_options(SyncLevel::Os);
    for target in ["/copy", "/copies/today", "/copies/of/a/deep/path"] {
        let disk = FaultyFs::new(8);
        let db = database(&disk, &options);
        db.checkpoint(Path::new(target)).expect("made");
        let image = disk.crash_image(9, CrashStyle::DropUnsynced);
        assert_eq!(records_of(&image, Path::new(target), &options), RECORDS, "{target}");
    }
}

#[test]
fn the_next_open_removes_what_a_crash_left_of_a_checkpoint() {
    let options = small_options(SyncLevel::Os);
    let disk = FaultyFs::new(10);
    let db = database(&disk, &options);
    disk.fail_next(FaultOp::Rename, "copies", io::ErrorKind::Other, 1);
    disk.fail_next(FaultOp::RemoveDirAll, "", io::ErrorKind::Other, 1);
    db.checkpoint(Path::new("/copies/today")).expect_err("it fails");
    assert_ne!(traces(&disk), Vec::<PathBuf>::new(), "it could not be removed");
    drop(db);
    drop(World::new(11, Arc::new(disk.clone())).open(&options));
    assert_eq!(traces(&disk), Vec::<PathBuf>::new());
}

#[test]
fn checkpoints_to_impossible_places_are_rejected() {
    let options = small_options(SyncLevel::Os);
    let disk = FaultyFs::new(12);
    let db = database(&disk, &options);
    for target in
        ["/db/copy", "/db/new/copy", "/db", "/other/../db/copy", "/db/LOCK/copy", "/new/.."]
    {
        let error = db.checkpoint(Path::new(target)).expect_err(target);
        assert_eq!(error.kind(), ErrorKind::Invalid, "{target}: {error}");
        assert_eq!(traces(&disk), Vec::<PathBuf>::new(), "{target}");
    }
}

/// Another process that opened the directory would remove the files of the checkpoint.
#[test]
fn a_close_unlocks_the_directory_when_no_checkpoint_works_in_it() {
    let disk = FaultyFs::new(7);
    let options = small_options(SyncLevel::Os);
    let clock = Arc::new(SystemClock::new());
    let spawner = Arc::new(ThreadSpawner::new(clock.clone()));
    let env = Env { fs: Arc::new(disk.clone()), clock, spawner };
    let db =
        Db::open(env, Path::new(DIR), options.clone(), Resources::new(&options)).expect("it opens");
    db.put(b"key", b"value", None).expect("written");
    db.flush().expect("flushed");
    // More syncs than those of the close come before the rename.
    disk.set_sync_delay(Duration::from_millis(50));
    let target = Path::new("/a/b/c/d/e/f/g/h/i/j/k/l/copy");
    let making = thread::spawn({
        let db = db.clone();
        move || db.checkpoint(target)
    });
    let unfinished = Path::new("/db/checkpoint.unfinished");
    while !disk.exists(unfinished).expect("looked") {
        thread::sleep(Duration::from_millis(1));
    }
    db.close().expect("closed");
    assert!(!disk.exists(unfinished).expect("looked"), "the checkpoint has ended");
    let made = making.join().expect("no panic");
    assert_eq!(disk.exists(target).expect("looked"), made.is_ok());
    let error = db.checkpoint(Path::new("/later")).expect_err("closed");
    assert_eq!(error.kind(), ErrorKind::Closed, "{error}");
}

/// A server that started meanwhile would change files that are being copied.
#[test]
fn what_is_being_restored_cannot_be_opened() {
    assert_locked_by_a_restore(Path::new(DIR));
}

/// A server that started meanwhile would make a database of its own beside what is copied.
#[test]
fn what_is_being_restored_to_cannot_be_opened() {
    assert_locked_by_a_restore(Path::new("/restored"));
}

/// Opens `dir` while [`DIR`] is restored to `/restored`.
fn assert_locked_by_a_restore(dir: &Path) {
    let disk = FaultyFs::new(1);
    let options = small_options(SyncLevel::Os);
    database(&disk, &options).close().expect("closed");
    // Each file that is copied is synced.
    disk.set_sync_delay(Duration::from_secs(1));
    let to = Path::new("/restored");
    let world = World::new(6, Arc::new(disk.clone()));
    let restoring = thread::spawn({
        let env = world.env.clone();
        move || restore(&env, Path::new(DIR), to)
    });
    while !disk.exists(&to.join("LOCK")).expect("looked") {
        thread::sleep(Duration::from_millis(1));
    }
    let opened = Db::open(world.env.clone(), dir, options.clone(), Resources::new(&options));
    let error = opened.map(|_| ()).expect_err("it is being copied");
    assert_eq!(error.kind(), ErrorKind::Locked, "{error}");
    disk.set_sync_delay(Duration::ZERO);
    restoring.join().expect("no panic").expect("restored");
    assert_eq!(records_of(&disk, to, &options), RECORDS);
}
