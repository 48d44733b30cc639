//! Swapped, truncated and lost files: open, verify, restore and repair agree, and every loss is
//! reported.

use crate::common::{DIR, World, all_records, small_options};
use kvant_base::ErrorKind;
use kvant_engine::tools::{self, RepairReport};
use kvant_engine::{Compression, Db, Options, SyncLevel};
use kvant_env::Fs;
use kvant_env::testing::{CrashStyle, FaultyFs};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

pub(crate) type Map = BTreeMap<Vec<u8>, Vec<u8>>;

const SYNC_LEVELS: [SyncLevel; 3] =
    [SyncLevel::Os, SyncLevel::Interval(Duration::from_secs(1)), SyncLevel::Always];

/// A database on its own disk, and the records written to it.
pub(crate) struct Written {
    pub(crate) disk: FaultyFs,
    pub(crate) options: Options,
    pub(crate) expected: Map,
}

impl Written {
    pub(crate) fn new(sync: SyncLevel) -> Written {
        Written { disk: FaultyFs::new(1), options: small_options(sync), expected: Map::new() }
    }

    pub(crate) fn world(&self) -> World {
        World::new(1, Arc::new(self.disk.clone()))
    }

    /// Writes new values of one length to `key00` to `key19`.
    pub(crate) fn write(&mut self, db: &Db, value: &str) {
        for number in 0..20 {
            let (key, value) = (format!("key{number:02}"), format!("{value:>8}"));
            db.put(key.as_bytes(), value.as_bytes(), None).expect("written");
            self.expected.insert(key.into_bytes(), value.into_bytes());
        }
    }

    /// Opens the database, writes `count` records of 100 bytes, compacts and closes it.
    pub(crate) fn run_and_compact(&mut self, count: u32) {
        let db = self.world().open(&self.options);
        for number in 0..count {
            let (key, value) = (format!("key{number:03}"), format!("{number:>100}"));
            db.put(key.as_bytes(), value.as_bytes(), None).expect("written");
            self.expected.insert(key.into_bytes(), value.into_bytes());
        }
        db.compact().expect("compacted");
        db.close().expect("closed");
    }

    /// Opens the database, writes and closes it.
    pub(crate) fn run(&mut self, value: &str) {
        let db = self.world().open(&self.options);
        self.write(&db, value);
        db.close().expect("closed");
    }

    /// As `run`, but the process is killed: continues on a copy of the disk.
    fn run_and_kill(&mut self, value: &str) {
        let world = self.world();
        let db = world.open(&self.options);
        self.write(&db, value);
        self.disk = self.disk.crash_image(1, CrashStyle::KeepAll);
        db.close().expect("closed");
    }

    /// The files with this extension, in the order of their numbers.
    pub(crate) fn files(&self, extension: &str) -> Vec<PathBuf> {
        let files = self.disk.files().into_iter().map(|(path, _)| path);
        let mut files: Vec<_> = files
            .filter(|path| path.parent() == Some(Path::new(DIR)))
            .filter(|path| path.extension().is_some_and(|found| found == extension))
            .collect();
        files.sort();
        files
    }

    /// The newest log with records.
    fn last_log(&self) -> PathBuf {
        let used = |path: &PathBuf| self.disk.contents(path).is_ok_and(|bytes| !bytes.is_empty());
        self.files("wal").into_iter().rfind(used).expect("a log")
    }

    fn cut(&self, path: &Path, len_bytes: u64) {
        let file = self.disk.open_writable(path).expect("there");
        file.set_len(len_bytes).expect("cut");
    }

    pub(crate) fn is_whole(&self) -> bool {
        let report =
            tools::verify(&self.world().env, Path::new(DIR), &mut |_| ()).expect("verified");
        report.problems.is_empty()
    }

    /// Open and verify both report damage of `path`.
    fn assert_damaged(&self, what: &str, path: &Path) {
        let error = self.world().try_open(&self.options).map(|_| ());
        let error = error.expect_err(what);
        assert_eq!(
            (error.kind(), error.file()),
            (ErrorKind::Corruption, Some(path)),
            "{what}: {error}"
        );
        let report =
            tools::verify(&self.world().env, Path::new(DIR), &mut |_| ()).expect("verified");
        let found = report.problems.iter().any(|problem| problem.file() == Some(path));
        assert!(found, "{what}: {:?}", report.problems);
    }

    /// Repairs the database and reads all records.
    pub(crate) fn repair(&self) -> (RepairReport, Map) {
        let report = tools::repair(&self.world().env, Path::new(DIR)).expect("repaired");
        assert!(self.is_whole(), "a repaired database is whole");
        let db = self.world().open(&self.options);
        let found = all_records(&db).expect("readable").into_iter().collect();
        db.close().expect("closed");
        (report, found)
    }
}

/// A database with several tables in the last level.
pub(crate) fn several_tables() -> Written {
    let mut written = Written::new(SyncLevel::Always);
    written.options.table_bytes = 4096;
    written.run_and_compact(100);
    assert!(written.files("sst").len() > 1);
    written
}

/// Two tables of equal length with the same keys: old values in the last level, new ones in level
/// 0.
fn two_alike() -> (Written, [PathBuf; 2]) {
    let mut written = Written::new(SyncLevel::Always);
    written.options.compression = [Compression::None; 7];
    let db = written.world().open(&written.options);
    // Else the compaction would make the sequence numbers 0, which take fewer bytes.
    let snapshot = db.snapshot();
    // Those of the first writes take fewer bytes, too.
    (0..10).for_each(|_| written.write(&db, "none"));
    written.write(&db, "old");
    db.compact().expect("compacted");
    written.write(&db, "new");
    db.flush().expect("flushed");
    drop(snapshot);
    db.close().expect("closed");
    let tables = written.files("sst");
    let length = |path: &PathBuf| written.disk.contents(path).expect("there").len();
    assert_eq!(tables.len(), 2);
    assert_eq!(length(&tables[0]), length(&tables[1]), "the tables have equal lengths");
    let tables = [tables[0].clone(), tables[1].clone()];
    (written, tables)
}

fn swap(disk: &FaultyFs, one: &Path, other: &Path) {
    let aside = Path::new(DIR).join("aside");
    disk.rename(one, &aside).expect("renamed");
    disk.rename(other, one).expect("renamed");
    disk.rename(&aside, other).expect("renamed");
}

#[test]
fn swapped_tables_are_detected_by_all_tools_and_repaired() {
    let (written, tables) = two_alike();
    assert!(written.is_whole());
    swap(&written.disk, &tables[0], &tables[1]);
    // The newer table is opened first.
    written.assert_damaged("swapped", &tables[1]);

    let (report, found) = written.repair();
    assert_eq!(found, written.expected);
    assert_eq!((report.losses, report.problems.len()), (vec![], 2));
}

#[test]
fn a_checkpoint_with_swapped_tables_is_not_restored() {
    let (written, tables) = two_alike();
    swap(&written.disk, &tables[0], &tables[1]);
    let to = Path::new("/restored");
    let error = tools::restore(&written.world().env, Path::new(DIR), to).expect_err("damaged");
    assert_eq!(error.kind(), ErrorKind::Corruption);
    assert!(!written.disk.exists(to).expect("looked"), "nothing is created");
}

#[test]
fn a_repair_does_not_serve_a_copy_of_another_table() {
    let written = several_tables();
    let tables = written.files("sst");
    written.disk.remove_file(&tables[0]).expect("removed");
    written.disk.hard_link(&tables[1], &tables[0]).expect("linked");
    written.assert_damaged("copied", &tables[0]);
    let (report, found) = written.repair();
    assert_eq!(report.losses.len(), 1, "{:?}", report.losses);
    assert!(found.len() < written.expected.len());
    assert!(found.iter().all(|(key, value)| written.expected.get(key) == Some(value)));
}

#[test]
fn a_bad_header_of_the_second_log_keeps_the_first_log() {
    let mut written = Written::new(SyncLevel::Always);
    written.run("first");
    let first = written.expected.clone();
    written.run_and_kill("second");
    let second_log = written.last_log();
    for offset in [3, 12, 25, 30, 38] {
        let image = written.disk.crash_image(1, CrashStyle::KeepAll);
        image.flip_byte(&second_log, offset, 1).expect("there");
        let damaged =
            Written { disk: image, options: written.options.clone(), expected: first.clone() };
        damaged.assert_damaged("a flipped bit", &second_log);
        let (report, found) = damaged.repair();
        assert_eq!(found, first, "byte {offset}: the first log is undamaged");
        assert_eq!((report.saved_record_count, report.lost_op_count), (20, 20));
        assert_eq!(report.losses.len(), 1, "{:?}", report.losses);
        assert!(damaged.disk.exists(&in_lost(&second_log)).expect("looked"));
    }
}

#[test]
fn operations_after_a_damaged_record_are_counted_as_lost() {
    let mut written = Written::new(SyncLevel::Always);
    written.run("first");
    written.run("second");
    let log = written.files("wal").remove(0);
    let record_bytes = (written.disk.contents(&log).expect("there").len() - 40 - 36) / 20;
    // In the payload of the sixth record.
    let offset = (40 + 5 * record_bytes + 40) as u64;
    written.disk.flip_byte(&log, offset, 1).expect("there");
    written.assert_damaged("a flipped bit", &log);
    let (report, found) = written.repair();
    assert_eq!(found.len(), 5);
    assert_eq!(report.saved_record_count, 5);
    assert_eq!(report.lost_op_count, 15 + 20);
    assert!(report.losses[0].contains("35 operations"), "{:?}", report.losses);
}

#[test]
fn any_truncation_of_the_last_log_is_detected_after_a_close() {
    for sync in SYNC_LEVELS {
        let mut written = Written::new(sync);
        written.run("first");
        let first = written.expected.clone();
        written.run("second");
        let log = written.last_log();
        let bytes = written.disk.contents(&log).expect("there").len() as u64;
        // The closing record follows the last operation.
        for cut_bytes in [0, 1, 39, 40, bytes / 2, bytes - 37] {
            let what = format!("{sync:?}: cut to {cut_bytes} of {bytes} bytes");
            let image = Written {
                disk: written.disk.crash_image(1, CrashStyle::KeepAll),
                options: written.options.clone(),
                expected: Map::new(),
            };
            image.cut(&log, cut_bytes);
            image.assert_damaged(&what, &log);
            let (report, found) = image.repair();
            assert!(!report.losses.is_empty(), "{what}");
            let reached = |(key, value)| found.get(key) == Some(value);
            assert!(
                first.iter().all(|(key, _)| found.contains_key(key)),
                "{what}: the first log is whole"
            );
            assert!(!written.expected.iter().all(reached), "{what}");
        }
    }
}

#[test]
fn a_deleted_log_is_detected() {
    for sync in SYNC_LEVELS {
        for killed in [false, true] {
            let mut written = Written::new(sync);
            written.run("first");
            written.run("second");
            let before = written.expected.clone();
            match killed {
                false => written.run("third"),
                true => written.run_and_kill("third"),
            }
            let what = format!("{sync:?}, killed: {killed}");
            let log = written.last_log();
            written.disk.remove_file(&log).expect("removed");
            written.assert_damaged(&what, &log);
            let (report, found) = written.repair();
            assert_eq!(found, before, "{what}");
            assert!(!report.losses.is_empty(), "{what}");
        }
    }
}

#[test]
fn an_emptied_log_is_detected_after_a_kill() {
    let mut written = Written::new(SyncLevel::Always);
    written.run("first");
    let before = written.expected.clone();
    written.run_and_kill("second");
    let log = written.last_log();
    written.cut(&log, 0);
    written.assert_damaged("cut", &log);
    let (report, found) = written.repair();
    assert_eq!((found, report.losses.len()), (before, 1));
}

/// The flush task records a log in the manifest before it is put into use.
#[test]
fn a_deleted_log_of_the_active_memtable_is_detected() {
    let mut written = Written::new(SyncLevel::Always);
    let world = written.world();
    let db = world.open(&written.options);
    written.write(&db, "first");
    world.spawner.run_until_idle();
    db.flush().expect("flushed");
    world.spawner.run_until_idle();
    written.write(&db, "second");
    written.disk = written.disk.crash_image(1, CrashStyle::KeepAll);
    db.close().expect("closed");
    let log = written.last_log();
    written.disk.remove_file(&log).expect("removed");
    written.assert_damaged("deleted", &log);
}

#[test]
fn a_repair_of_a_whole_database_loses_nothing() {
    let mut written = several_tables();
    written.run("first");
    written.run_and_kill("second");
    let (report, found) = written.repair();
    assert_eq!(found, written.expected);
    assert!(
        report.problems.is_empty() && report.losses.is_empty() && report.moved_files.is_empty()
    );
    // The manifest keeps what it recorded of the logs.
    written.run_and_kill("third");
    let log = written.last_log();
    tools::repair(&written.world().env, Path::new(DIR)).expect("repaired");
    written.disk.remove_file(&log).expect("removed");
    written.assert_damaged("deleted after a repair", &log);
}

#[test]
fn a_repair_continues_after_a_damaged_index_or_filter() {
    let written = several_tables();
    let table = written.files("sst").remove(0);
    let len_bytes = written.disk.contents(&table).expect("there").len() as u64;
    let mut losses = 0;
    for offset in (len_bytes / 2..len_bytes).step_by(7) {
        let image = Written {
            disk: written.disk.crash_image(1, CrashStyle::KeepAll),
            options: written.options.clone(),
            expected: Map::new(),
        };
        image.disk.flip_byte(&table, offset, 1).expect("there");
        let (report, found) = image.repair();
        assert!(report.damaged_table_count == 1, "byte {offset}");
        assert!(found.iter().all(|(key, value)| written.expected.get(key) == Some(value)));
        assert_eq!(
            found.len() == written.expected.len(),
            report.losses.is_empty(),
            "byte {offset}"
        );
        losses += report.losses.len();
    }
    assert!(losses > 0);
}

/// A killed process with version 1 of the table and manifest formats wrote two tables on different
/// levels, and a log.
#[test]
fn a_database_of_format_version_1_opens() {
    let files: [(&str, &[u8]); 5] = [
        (
            "MANIFEST-000003",
            include_bytes!("../../../../testdata/golden/database-1/MANIFEST-000003"),
        ),
        ("000006.sst", include_bytes!("../../../../testdata/golden/database-1/000006.sst")),
        ("000008.sst", include_bytes!("../../../../testdata/golden/database-1/000008.sst")),
        ("000005.wal", include_bytes!("../../../../testdata/golden/database-1/000005.wal")),
        ("000007.wal", b""),
    ];
    let mut written = Written::new(SyncLevel::Always);
    written.disk.create_dir_all(Path::new(DIR)).expect("created");
    for (name, contents) in files {
        let file = written.disk.create(&Path::new(DIR).join(name)).expect("created");
        file.write_all_at(contents, 0).expect("written");
    }
    for (key, value) in [
        ("apple", "first apple"),
        ("banana", "second banana"),
        ("cherry", "third cherry"),
        ("elder", "second elder"),
        ("fig", "third fig"),
    ] {
        written.expected.insert(key.as_bytes().to_vec(), value.as_bytes().to_vec());
    }
    assert!(written.is_whole());
    let image = written.disk.crash_image(1, CrashStyle::KeepAll);
    swap(&image, &Path::new(DIR).join("000006.sst"), &Path::new(DIR).join("000008.sst"));
    let swapped = Written { disk: image, options: written.options.clone(), expected: Map::new() };
    assert!(!swapped.is_whole(), "tables are compared with the manifest");
    assert_eq!(swapped.repair().1, written.expected);

    for _ in 0..2 {
        let db = written.world().open(&written.options);
        let found: Map = all_records(&db).expect("readable").into_iter().collect();
        assert_eq!(found, written.expected);
        db.compact().expect("compacted");
        db.close().expect("closed");
    }
}

fn in_lost(path: &Path) -> PathBuf {
    let name = path.file_name().expect("a file has a name");
    Path::new(DIR).join("lost").join(name)
}
