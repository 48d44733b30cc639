//! Repairs beside old logs, repairs that fail, and blocks that the disk cannot read.

use crate::common::{DIR, all_records};
use crate::damage::{Map, Written, several_tables};
use kvant_base::ErrorKind;
use kvant_engine::tools::repair;
use kvant_engine::{Compression, SyncLevel};
use kvant_env::Fs;
use kvant_env::testing::{CrashStyle, FaultOp, FaultyFs};
use std::io;
use std::path::{Path, PathBuf};

impl Written {
    /// The log that has this text.
    fn log_with(&self, text: &str) -> PathBuf {
        let has_text = |path: &PathBuf| {
            let bytes = self.disk.contents(path).expect("there");
            bytes.windows(text.len()).any(|part| part == text.as_bytes())
        };
        self.files("wal").into_iter().find(has_text).expect("a log")
    }

    fn damage_manifest(&self) {
        let files = self.disk.files().into_iter().map(|(path, _)| path);
        let is_manifest = |path: &PathBuf| path.to_string_lossy().contains("MANIFEST-");
        let manifest = files.filter(is_manifest).max().expect("every database has one");
        self.disk.flip_byte(&manifest, 0, 1).expect("there");
    }
}

/// A flushed log is there while it waits for its reuse, or after a power loss that undid its
/// removal.
#[test]
fn a_repair_after_a_lost_log_leaves_a_database_that_opens_beside_flushed_logs() {
    let mut written = Written::new(SyncLevel::Os);
    let db = written.world().open(&written.options);
    written.write(&db, "old");
    let expected = written.expected.clone();
    let flushed = written.log_with("old");
    let contents = written.disk.contents(&flushed).expect("there");
    db.flush().expect("flushed");
    written.write(&db, "new");
    written.disk = written.disk.crash_image(1, CrashStyle::KeepAll);
    db.close().expect("closed");
    let lost = written.log_with("new");
    assert_ne!(lost, flushed);
    written.disk.remove_file(&lost).expect("removed");
    let file = written.disk.create(&flushed).expect("created");
    file.write_all_at(&contents, 0).expect("written");

    let (report, found) = written.repair();
    assert_eq!(found, expected);
    assert!(report.moved_files.iter().any(|path| path.file_name() == flushed.file_name()));
}

/// A repair would make a database of it.
#[test]
fn a_directory_without_a_database_is_not_repaired_and_left_as_it_is() {
    for (names, words) in [
        (&["notes", "000004.tmp"][..], "there is no database"),
        (&[], "there is no database"),
        (&["MANIFEST-000004", "000005.ldb"], "belongs to LevelDB"),
    ] {
        let written = Written::new(SyncLevel::Os);
        written.disk.create_dir_all(Path::new(DIR)).expect("created");
        for name in names {
            written.disk.create(&Path::new(DIR).join(name)).expect("created");
        }
        let files = written.disk.files();
        let error = repair(&written.world().env, Path::new(DIR)).expect_err(words);
        assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
        assert!(error.message().contains(words), "{error}");
        assert_eq!(written.disk.files(), files, "{words}");
    }
}

#[test]
fn a_manifest_that_cannot_be_read_is_a_loss_even_without_tables_and_logs() {
    let written = Written::new(SyncLevel::Os);
    written.world().open(&written.options).close().expect("closed");
    for log in written.files("wal") {
        written.disk.remove_file(&log).expect("removed");
    }
    written.damage_manifest();
    let (report, found) = written.repair();
    assert!(found.is_empty());
    assert_eq!(report.losses.len(), 1, "{:?}", report.losses);
    assert!(report.losses[0].starts_with("the manifest: "), "{:?}", report.losses);
}

/// Values that a compaction leaves in the last level have no sequence numbers. A table of them that
/// was rewritten is there until it is removed: if neither has any, the file number tells which one
/// is newer.
#[test]
fn without_a_manifest_a_rewritten_table_hides_the_one_before_it() {
    let mut written = Written::new(SyncLevel::Always);
    let db = written.world().open(&written.options);
    written.write(&db, "oldest");
    db.flush().expect("flushed");
    written.write(&db, "old");
    db.compact().expect("compacted");
    let old = written.files("sst").remove(0);
    let contents = written.disk.contents(&old).expect("there");
    written.write(&db, "new");
    db.compact().expect("compacted");
    db.close().expect("closed");
    let file = written.disk.create(&old).expect("it has been removed");
    file.write_all_at(&contents, 0).expect("written");
    written.damage_manifest();
    let (report, found) = written.repair();
    assert_eq!((report.whole_table_count, found), (2, written.expected.clone()));

    let db = written.world().open(&written.options);
    db.put(b"key05", b"newest", None).expect("written");
    written.expected.insert(b"key05".to_vec(), b"newest".to_vec());
    db.compact().expect("compacted");
    let found: Map = all_records(&db).expect("readable").into_iter().collect();
    assert_eq!(found, written.expected);
    db.close().expect("closed");
}

/// A compaction copies the block of a long value, and the sequence number in it, where other values
/// lose theirs.
#[test]
fn copied_blocks_have_sequence_numbers_that_their_table_states() {
    let mut written = Written::new(SyncLevel::Always);
    let db = written.world().open(&written.options);
    for key in ["key1", "key2", "key1"] {
        let value = key.repeat(1000);
        db.put(key.as_bytes(), value.as_bytes(), None).expect("written");
        written.expected.insert(key.into(), value.into());
        db.flush().expect("flushed");
    }
    db.compact().expect("compacted");
    db.close().expect("closed");
    assert!(written.is_whole());
    let (report, found) = written.repair();
    assert_eq!((report.damaged_table_count, found), (0, written.expected));
}

#[test]
fn a_repair_that_fails_late_loses_no_damaged_file() {
    for (op, suffix) in [
        (FaultOp::CreateDirAll, "lost"),
        (FaultOp::HardLink, ".sst"),
        (FaultOp::SyncDir, "lost"),
        (FaultOp::RemoveFile, ".sst"),
    ] {
        let written = several_tables();
        let table = written.files("sst").remove(0);
        written.disk.flip_byte(&table, 20, 1).expect("there");
        let damaged = written.disk.contents(&table).expect("there");
        written.disk.fail_next(op, suffix, io::ErrorKind::Other, 1);
        repair(&written.world().env, Path::new(DIR)).expect_err("it fails");
        written.repair();
        let mut files = written.disk.files().into_iter().map(|(path, _)| path);
        let is_damaged = |path: PathBuf| written.disk.contents(&path).is_ok_and(|it| it == damaged);
        assert!(files.any(is_damaged), "{op:?}");
    }
}

#[test]
fn a_database_opens_after_a_repair_that_ended_before_it_had_removed_the_logs() {
    let mut written = Written::new(SyncLevel::Always);
    written.run("first");
    written.run("second");
    let log = written.log_with("second");
    let middle = written.disk.contents(&log).expect("there").len() as u64 / 2;
    written.disk.flip_byte(&log, middle, 1).expect("there");
    let copy = |disk: &FaultyFs, style| Written {
        disk: disk.crash_image(1, style),
        options: written.options.clone(),
        expected: Map::new(),
    };
    let (_, saved) = copy(&written.disk, CrashStyle::KeepAll).repair();
    assert_eq!(saved.len(), written.expected.len());
    assert_ne!(saved, written.expected);
    let logs = written.files("wal");
    for removed_count in 0..logs.len() as u64 {
        let ended = copy(&written.disk, CrashStyle::KeepAll);
        ended.disk.fail_after(removed_count, FaultOp::RemoveFile, ".wal", io::ErrorKind::Other, 1);
        repair(&ended.world().env, Path::new(DIR)).expect_err("it cannot remove a log");
        for style in [CrashStyle::KeepAll, CrashStyle::DropUnsynced] {
            let opened = copy(&ended.disk, style);
            let db = opened.world().open(&opened.options);
            let found: Map = all_records(&db).expect("readable").into_iter().collect();
            assert_eq!(found, saved, "{removed_count} logs removed");
            db.close().expect("closed");
            assert!(!opened.files("wal").iter().any(|log| logs.contains(log)));

            let (report, found) = copy(&ended.disk, style).repair();
            assert_eq!((found, report.losses), (saved.clone(), vec![]));
        }
    }
}

/// A manifest has no table of that number.
#[test]
fn a_repair_gives_a_table_of_number_0_another_number() {
    let written = Written::new(SyncLevel::Always);
    let contents = include_bytes!("../../../../testdata/golden/database-1/000006.sst");
    written.disk.create_dir_all(Path::new(DIR)).expect("created");
    let table = written.disk.create(&Path::new(DIR).join("000000.sst")).expect("created");
    table.write_all_at(contents, 0).expect("written");
    assert!(!written.repair().1.is_empty());
}

#[test]
fn a_second_repair_keeps_what_the_first_one_has_moved() {
    let written = several_tables();
    let table = written.files("sst").remove(0);
    let lost = Path::new(DIR).join("lost").join(table.file_name().expect("a file has a name"));
    written.disk.create_dir_all(lost.parent().expect("it has one")).expect("created");
    written.disk.create(&lost).and_then(|file| file.write_all_at(b"first", 0)).expect("written");
    written.disk.flip_byte(&table, 20, 1).expect("there");
    let (report, _) = written.repair();
    assert_eq!(report.moved_files.len(), 1);
    assert_ne!(report.moved_files[0], lost);
    assert_eq!(written.disk.contents(&lost).expect("there"), b"first");
}

#[test]
fn a_block_that_the_disk_cannot_read_costs_its_own_entries() {
    let mut written = Written::new(SyncLevel::Always);
    written.options.compression = [Compression::None; 7];
    written.options.memtable_bytes = 256 << 10;
    written.run_and_compact(1_000);
    // Not in the end of the table, which is read when it is opened.
    let table = written.files("sst").remove(0);
    written.disk.lose_byte(&table, 20);
    let db = written.world().open(&written.options);
    let unreadable = written.expected.keys().filter(|key| {
        let read = db.get(key);
        let is_corruption = |error: kvant_base::Error| {
            assert_eq!(error.kind(), ErrorKind::Corruption, "{error}");
        };
        read.map_err(is_corruption).is_err()
    });
    let unreadable_count = unreadable.count();
    assert!((1..50).contains(&unreadable_count), "{unreadable_count}");
    db.put(b"key500", b"value", None).expect("writes go on");
    assert_eq!(db.compact().expect_err("unreadable").kind(), ErrorKind::Corruption);
    db.close().expect("closed");

    let (report, found) = written.repair();
    assert_eq!(report.lost_block_count, 1, "{:?}", report.losses);
    assert_eq!(found.len(), written.expected.len() - unreadable_count);
}

#[test]
fn a_log_record_that_the_disk_cannot_read_costs_what_follows_it() {
    let mut written = Written::new(SyncLevel::Always);
    let db = written.world().open(&written.options);
    written.write(&db, "first");
    written.disk = written.disk.crash_image(1, CrashStyle::KeepAll);
    db.close().expect("closed");
    let log = written.log_with("first");
    let contents = written.disk.contents(&log).expect("there");
    let place = contents.windows(5).position(|part| part == b"key10").expect("there");
    written.disk.lose_byte(&log, place as u64);
    let error = written.world().try_open(&written.options).map(|_| ()).expect_err("unreadable");
    assert_eq!((error.kind(), error.file()), (ErrorKind::Corruption, Some(&*log)), "{error}");
    let (report, found) = written.repair();
    assert_eq!((found.len(), report.saved_record_count), (10, 10));
    assert!(!report.losses.is_empty());
}
