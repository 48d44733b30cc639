//! LevelDB in a real directory: durability across restarts, other owners, damage, a full queue.

use kvant_base::log::NoLog;
use kvant_base::{ErrorKind, MemoryBudget, Result};
use kvant_env::Env;
use kvant_env::rng::Rng;
use kvant_leveldb::{Batch, LevelDb, Loader, Options, Range, Resources, SyncLevel, WriteHealth};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::time::Duration;

const MEMORY_BYTES: u64 = 64 << 20;

/// A directory that is removed unless the test fails.
struct TempDir(PathBuf);

impl TempDir {
    fn new() -> TempDir {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("kvant-leveldb-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir(&path).unwrap();
        TempDir(path)
    }

    fn data(&self) -> PathBuf {
        self.0.join("data")
    }
}

impl Drop for TempDir {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            fs::remove_dir_all(&self.0).unwrap();
        }
    }
}

fn options(sync: SyncLevel) -> Options {
    Options { sync, memory_bytes: MEMORY_BYTES, compresses: true }
}

fn resources() -> Resources {
    Resources { memory: MemoryBudget::new(MEMORY_BYTES), log: Arc::new(NoLog) }
}

fn try_open(dir: &Path) -> Result<LevelDb> {
    LevelDb::open(Env::posix(), dir, options(SyncLevel::Os), resources())
}

fn open(dir: &Path) -> LevelDb {
    try_open(dir).unwrap()
}

/// The error of a start that has to fail.
fn refusal(dir: &Path) -> kvant_base::Error {
    try_open(dir).err().expect("the start is refused")
}

fn write(db: &LevelDb, batch: Batch) -> Result<()> {
    let (sender, receiver) = mpsc::channel();
    db.submit(batch, Box::new(move |result| sender.send(result).unwrap()));
    receiver.recv().expect("every batch has an outcome")
}

fn put(db: &LevelDb, key: &[u8], value: &[u8]) -> Result<()> {
    let mut batch = Batch::default();
    batch.put(key, value);
    write(db, batch)
}

fn delete(db: &LevelDb, key: &[u8]) {
    let mut batch = Batch::default();
    batch.delete(key);
    write(db, batch).unwrap();
}

fn get(db: &LevelDb, key: &[u8]) -> Option<Vec<u8>> {
    db.get(key).unwrap().map(|value| value.as_ref().to_vec())
}

fn rest(range: &mut Range) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut records = Vec::new();
    while let Some((key, value)) = range.next().unwrap() {
        records.push((key.to_vec(), value.to_vec()));
    }
    records
}

fn all(db: &LevelDb) -> Vec<(Vec<u8>, Vec<u8>)> {
    rest(&mut db.range(b"", None).unwrap())
}

#[test]
fn records_survive_a_restart_at_every_sync_level() {
    for sync in [SyncLevel::Os, SyncLevel::Interval(Duration::from_millis(1)), SyncLevel::Always] {
        let dir = TempDir::new();
        for round in 0..3u8 {
            let db = LevelDb::open(Env::posix(), &dir.data(), options(sync), resources()).unwrap();
            for before in 0..round {
                assert_eq!(get(&db, &[before]), Some(vec![before; 1000]), "{sync:?}");
            }
            put(&db, &[round], &vec![round; 1000]).unwrap();
            put(&db, b"", b"an empty key").unwrap();
            put(&db, b"empty", b"").unwrap();
            assert_eq!(get(&db, b"empty"), Some(Vec::new()));
            delete(&db, b"");
            assert_eq!(get(&db, b""), None);
            db.close().unwrap();
            db.close().unwrap();
            assert_eq!(db.get(b"empty").err().unwrap().kind(), ErrorKind::Closed);
            assert_eq!(put(&db, b"x", b"").unwrap_err().kind(), ErrorKind::Closed);
        }
    }
}

#[test]
fn a_range_has_the_records_of_its_moment_whatever_comes_after() {
    let dir = TempDir::new();
    let db = open(&dir.data());
    let new_seed = || {
        let since = std::time::UNIX_EPOCH.elapsed().unwrap();
        u64::from(since.subsec_nanos())
    };
    let seed = std::env::var("KVANT_TEST_SEED");
    let seed = seed.map_or_else(|_| new_seed(), |seed| seed.parse().unwrap());
    println!("KVANT_TEST_SEED={seed}");
    let mut rng = Rng::new(seed);
    let mut records = BTreeMap::new();
    for number in 0..3_000u32 {
        let key = format!("{:04}", rng.below(5_000)).into_bytes();
        let value = vec![b'v'; if number.is_multiple_of(500) { 200_000 } else { 100 }];
        put(&db, &key, &value).unwrap();
        records.insert(key, value);
    }
    let expected: Vec<_> = records.into_iter().collect();
    let mut range = db.range(b"", None).unwrap();
    for record in &expected[..10] {
        let (key, value) = range.next().unwrap().unwrap();
        assert!((key, value) == (&record.0[..], &record.1[..]));
    }
    for (key, _) in &expected {
        match rng.below(2) {
            0 => delete(&db, key),
            _ => put(&db, key, b"later").unwrap(),
        }
    }
    db.compact().unwrap();
    assert!(rest(&mut range) == expected[10..], "the rest of the range");
    drop(range);

    let (start, end) = (&expected[700].0, &expected[900].0);
    let mut bounded = db.range(start, Some(end)).unwrap();
    assert!(
        rest(&mut bounded)
            .iter()
            .all(|(key, value)| { (start..end).contains(&key) && value == b"later" })
    );
    assert!(rest(&mut db.range(b"9", Some(b"1")).unwrap()).is_empty());
}

/// Keeps the writer busy until the result is dropped: outcomes are reported by its thread.
fn hold_writer(db: &LevelDb) -> mpsc::Sender<()> {
    let (entered, is_entered) = mpsc::channel();
    let (release, released) = mpsc::channel::<()>();
    let mut batch = Batch::default();
    batch.put(b"first", b"");
    db.submit(
        batch,
        Box::new(move |result| {
            result.unwrap();
            entered.send(()).unwrap();
            assert!(released.recv().is_err(), "nothing is sent");
        }),
    );
    is_entered.recv().unwrap();
    release
}

#[test]
fn batches_that_wait_share_a_write_and_are_all_there() {
    let dir = TempDir::new();
    let db = open(&dir.data());
    let held = hold_writer(&db);
    let (sender, receiver) = mpsc::channel();
    for number in 0..1_000u32 {
        let mut batch = Batch::default();
        batch.put(&number.to_be_bytes(), b"value");
        let sender = sender.clone();
        db.submit(batch, Box::new(move |result| sender.send((number, result)).unwrap()));
    }
    drop(held);
    for expected in 0..1_000 {
        let (number, result) = receiver.recv().unwrap();
        result.unwrap();
        assert_eq!(number, expected, "outcomes come in the order of the batches");
    }
    let stats = db.stats().unwrap();
    assert_eq!((stats.operation_count, stats.group_count, stats.user_bytes), (1_001, 2, 9_005));
    assert_eq!(all(&db).len(), 1_001);
}

#[test]
fn a_full_queue_stalls_and_wakes_when_there_is_room() {
    let dir = TempDir::new();
    let db = open(&dir.data());
    let held = hold_writer(&db);
    let (sender, receiver) = mpsc::channel();
    for number in 0..10u8 {
        let mut batch = Batch::default();
        batch.put(&[number], &vec![b'v'; 1 << 20]);
        let sender = sender.clone();
        db.submit(batch, Box::new(move |result| sender.send(result).unwrap()));
    }
    // Those beyond 4 MiB are refused at once.
    for _ in 0..6 {
        assert_eq!(receiver.recv().unwrap().unwrap_err().kind(), ErrorKind::Stalled);
    }
    assert_eq!(db.stall(), Some("leveldb_writer"));
    let (wake, writable) = mpsc::channel();
    db.on_writable(Box::new(move || wake.send(()).unwrap()));
    assert!(writable.try_recv().is_err(), "there is no room yet");
    drop(held);
    writable.recv().unwrap();
    for _ in 0..4 {
        receiver.recv().unwrap().unwrap();
    }
    assert_eq!(db.stall(), None);
    put(&db, b"after", b"").unwrap();
    assert_eq!(all(&db).len(), 6);
}

#[test]
fn flush_and_compact_move_records_to_tables() {
    let dir = TempDir::new();
    let db = open(&dir.data());
    put(&db, b"key", b"value").unwrap();
    let tables = || db.stats().unwrap().levels.iter().map(|level| level.table_count).sum::<u64>();
    assert_eq!(tables(), 0);
    db.flush().unwrap();
    assert_eq!(tables(), 1);
    delete(&db, b"key");
    db.compact().unwrap();
    assert_eq!(tables(), 0, "{}", db.stats().unwrap().text);
    assert!(matches!(db.write_health(), WriteHealth::Good));
}

#[test]
fn a_checkpoint_is_a_database_of_its_own() {
    let dir = TempDir::new();
    let db = open(&dir.data());
    for number in 0..20_000u32 {
        put(&db, &number.to_be_bytes(), &number.to_le_bytes()).unwrap();
    }
    let target = dir.0.join("checkpoints/copy");
    let left = dir.0.join("checkpoints/copy.unfinished");
    fs::create_dir_all(&left).unwrap();
    fs::write(left.join("rest"), "of a crash").unwrap();
    db.checkpoint(&target).unwrap();
    assert!(!left.exists());
    assert_eq!(db.checkpoint(&target).unwrap_err().kind(), ErrorKind::Invalid);
    delete(&db, &0u32.to_be_bytes());
    let copy = open(&target);
    assert_eq!(all(&copy).len(), 20_000);
    assert_eq!(get(&copy, &0u32.to_be_bytes()), Some(vec![0; 4]));
    assert_eq!(all(&db).len(), 19_999);
}

/// Regression: a checkpoint `copy` removed the complete checkpoint `copy.unfinished`.
#[test]
fn a_checkpoint_has_no_name_that_the_next_one_removes() {
    let dir = TempDir::new();
    let db = open(&dir.data());
    for name in ["copy.unfinished", "copy.unfinished/inner"] {
        let refused = db.checkpoint(&dir.0.join(name)).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Invalid, "{refused}");
        assert!(refused.to_string().contains("unfinished checkpoints"), "{refused}");
    }
    assert!(!dir.0.join("copy.unfinished").exists());
}

#[test]
fn a_loader_takes_no_directory_with_files() {
    let dir = TempDir::new();
    drop(open(&dir.data()));
    let refused = Loader::create(&Env::posix(), &dir.data(), &options(SyncLevel::Os));
    let error = refused.err().expect("there is a database");
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(error.to_string().contains("not empty"), "{error}");
}

#[test]
fn a_second_owner_is_refused() {
    let dir = TempDir::new();
    let db = open(&dir.data());
    let error = refusal(&dir.data());
    assert_eq!(error.kind(), ErrorKind::Locked, "{error}");
    drop(db);
    open(&dir.data());
}

#[test]
fn a_directory_is_not_opened_again_by_another_name() {
    let dir = TempDir::new();
    let db = open(&dir.data());
    let link = dir.0.join("link");
    std::os::unix::fs::symlink(dir.data(), &link).unwrap();
    for name in [&link, &dir.0.join("link/../data")] {
        let error = refusal(name);
        assert_eq!(error.kind(), ErrorKind::Locked, "{error}");
    }
    drop(db);
    open(&link);
}

#[test]
fn a_checkpoint_of_the_engine_lsm_is_refused_and_not_repaired() {
    let dir = TempDir::new();
    let data = dir.data();
    fs::create_dir(&data).unwrap();
    for name in ["MANIFEST-000001", "000007.sst"] {
        fs::write(data.join(name), "KVANTMAN, and more").unwrap();
    }
    let options = options(SyncLevel::Os);
    let repaired = LevelDb::repair_and_open(Env::posix(), &data, options, resources());
    for error in [repaired.err().expect("it is not LevelDB's"), refusal(&data)] {
        assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
        assert!(error.to_string().contains("engine `lsm`"), "{error}");
    }
    for name in ["MANIFEST-000001", "000007.sst"] {
        assert_eq!(fs::read_to_string(data.join(name)).unwrap(), "KVANTMAN, and more");
    }
    assert_eq!(fs::read_dir(&data).unwrap().count(), 2);
}

#[test]
fn the_directory_of_another_engine_is_refused_and_left_alone() {
    let dir = TempDir::new();
    let data = dir.data();
    fs::create_dir(&data).unwrap();
    for name in ["MANIFEST-000004", "000007.sst", "000009.wal"] {
        fs::write(data.join(name), name).unwrap();
    }
    let error = refusal(&data);
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(error.to_string().contains("engine `lsm`"), "{error}");
    for name in ["MANIFEST-000004", "000007.sst", "000009.wal"] {
        assert_eq!(fs::read_to_string(data.join(name)).unwrap(), name);
    }
}

#[test]
fn a_database_without_its_current_file_is_not_taken_for_a_new_one() {
    let dir = TempDir::new();
    let db = open(&dir.data());
    put(&db, b"key", b"value").unwrap();
    db.flush().unwrap();
    db.close().unwrap();
    fs::remove_file(dir.data().join("CURRENT")).unwrap();
    let error = refusal(&dir.data());
    assert_eq!(error.kind(), ErrorKind::Corruption);
    assert!(error.to_string().contains("CURRENT is missing"), "{error}");
    let repaired =
        LevelDb::repair_and_open(Env::posix(), &dir.data(), options(SyncLevel::Os), resources())
            .unwrap();
    assert_eq!(get(&repaired, b"key"), Some(b"value".to_vec()));
}

/// A database whose records are in one table, and the path of the table.
fn with_one_table(dir: &TempDir) -> PathBuf {
    let options = Options { compresses: false, ..options(SyncLevel::Os) };
    let db = LevelDb::open(Env::posix(), &dir.data(), options, resources()).unwrap();
    for number in 0..2_000u32 {
        put(&db, format!("{number:04}").as_bytes(), &[b'v'; 100]).unwrap();
    }
    db.flush().unwrap();
    db.close().unwrap();
    let mut names = fs::read_dir(dir.data()).unwrap().map(|entry| entry.unwrap().path());
    names.find(|path| path.extension().is_some_and(|end| end == "ldb")).unwrap()
}

fn change(path: &Path, change: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = fs::read(path).unwrap();
    change(&mut bytes);
    fs::write(path, bytes).unwrap();
}

#[test]
fn a_damaged_block_is_an_error_for_its_keys_and_ranges_only() {
    let dir = TempDir::new();
    let table = with_one_table(&dir);
    change(&table, |bytes| bytes[50_000] ^= 1);
    let db = open(&dir.data());
    let found: Vec<_> = (0..2_000u32).map(|n| db.get(format!("{n:04}").as_bytes())).collect();
    let damaged: Vec<_> = found.iter().filter_map(|found| found.as_ref().err()).collect();
    assert!((1..100).contains(&damaged.len()), "{} keys are damaged", damaged.len());
    assert!(damaged.iter().all(|error| error.kind() == ErrorKind::Corruption), "{damaged:?}");
    assert!(found.iter().flatten().all(Option::is_some), "no key is absent");
    let mut range = db.range(b"", None).unwrap();
    let error = loop {
        match range.next() {
            Ok(Some(_)) => {}
            Ok(None) => panic!("the range left records out"),
            Err(error) => break error,
        }
    };
    assert_eq!(error.kind(), ErrorKind::Corruption);
    assert_eq!(db.range(b"1990", None).map(|mut range| rest(&mut range).len()).unwrap(), 10);
}

#[test]
fn damage_that_a_start_meets_is_an_error_and_repair_saves_the_rest() {
    for damage in ["table cut", "table missing", "manifest", "log"] {
        let dir = TempDir::new();
        let table = with_one_table(&dir);
        let db = open(&dir.data());
        for number in 0..1_000u32 {
            put(&db, format!("late {number}").as_bytes(), &[b'v'; 100]).unwrap();
        }
        db.close().unwrap();
        drop(db);
        let newest = |start: &str, end: &str| {
            let names = fs::read_dir(dir.data()).unwrap().map(|entry| entry.unwrap().path());
            let is_one = |path: &PathBuf| {
                let name = path.file_name().unwrap().to_str().unwrap();
                name.starts_with(start) && name.ends_with(end)
            };
            names.filter(is_one).max().unwrap()
        };
        match damage {
            "table cut" => change(&table, |bytes| bytes.truncate(1_000)),
            "table missing" => fs::remove_file(&table).unwrap(),
            "manifest" => change(&newest("MANIFEST-", ""), |bytes| bytes[10] ^= 1),
            _ => change(&newest("", ".log"), |bytes| bytes[40_000] ^= 1),
        }
        match try_open(&dir.data()) {
            // A table that is only cut is found when it is read.
            Ok(db) => {
                assert_eq!(damage, "table cut");
                let error = db.get(b"0001").err().expect("the key is in the table");
                assert_eq!(error.kind(), ErrorKind::Corruption, "{error}");
                assert_eq!(get(&db, b"late 1"), Some(vec![b'v'; 100]));
            }
            Err(error) => assert_eq!(error.kind(), ErrorKind::Corruption, "{damage}: {error}"),
        }
        let repaired = LevelDb::repair_and_open(
            Env::posix(),
            &dir.data(),
            options(SyncLevel::Os),
            resources(),
        );
        let db = repaired.unwrap();
        assert_eq!(get(&db, b"late 1"), Some(vec![b'v'; 100]), "{damage}");
    }
}

#[test]
fn a_torn_end_of_the_log_is_no_damage() {
    let dir = TempDir::new();
    let db = open(&dir.data());
    for number in 0..10u8 {
        put(&db, &[number], &[b'v'; 1_000]).unwrap();
    }
    db.close().unwrap();
    drop(db);
    let mut names = fs::read_dir(dir.data()).unwrap().map(|entry| entry.unwrap().path());
    let log = names.find(|path| path.extension().is_some_and(|end| end == "log")).unwrap();
    change(&log, |bytes| bytes.truncate(bytes.len() - 10));
    let db = open(&dir.data());
    assert_eq!(all(&db).len(), 9);
}

#[test]
fn a_failed_sync_of_the_logs_fences_writes() {
    let dir = TempDir::new();
    let interval = SyncLevel::Interval(Duration::from_millis(1));
    let db = LevelDb::open(Env::posix(), &dir.data(), options(interval), resources()).unwrap();
    put(&db, b"key", b"value").unwrap();
    while db.stats().unwrap().log_sync_count == 0 {
        std::thread::sleep(Duration::from_millis(1));
    }
    // The logs are looked up by the directory's name.
    let moved = dir.0.join("moved");
    fs::rename(dir.data(), &moved).unwrap();
    let error = loop {
        match put(&db, b"key", b"later") {
            Ok(()) => std::thread::sleep(Duration::from_millis(1)),
            Err(error) => break error,
        }
    };
    assert_eq!(error.kind(), ErrorKind::Fenced, "{error}");
    assert!(matches!(db.write_health(), WriteHealth::Fenced(_)));
    assert_eq!(get(&db, b"key"), Some(b"later".to_vec()));
    db.close().unwrap();
    assert_eq!(get(&open(&moved), b"key"), Some(b"later".to_vec()));
}
