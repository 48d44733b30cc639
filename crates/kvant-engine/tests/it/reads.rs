//! Traces of reads, point reads that do not block, and reads past the page cache.

use crate::common::{DIR, World, all_records, small_options};
use bytes::Bytes;
use kvant_base::ErrorKind;
use kvant_engine::{Db, Lookup, Options, ReadTrace, Resources, SyncLevel, WriteBatch};
use kvant_env::posix::PosixFs;
use kvant_env::rng::Rng;
use kvant_env::testing::{FaultOp, FaultyFs};
use kvant_env::{Env, Fs};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Read latency of the slow disk. Its length does not matter.
const READ_DELAY: Duration = Duration::from_millis(1);

fn key(number: u64) -> Vec<u8> {
    format!("key{number:05}").into_bytes()
}

/// One table of 100 records.
fn flushed(world: &World) -> Db {
    let db = world.open(&Options { memtable_bytes: 1 << 20, ..small_options(SyncLevel::Os) });
    for number in 0..100 {
        db.put(&key(number), b"value", None).expect("written");
    }
    db.flush().expect("flushed");
    db
}

fn traced(db: &Db, key: &[u8]) -> ReadTrace {
    let mut trace = ReadTrace::default();
    db.get_bounded(key, u32::MAX, &mut trace).expect("read");
    trace
}

#[test]
fn a_trace_counts_tables_blocks_and_cache_misses() {
    let world = World::new(1, Arc::new(FaultyFs::in_memory()));
    let db = flushed(&world);
    let before = db.stats().reads;
    let cold = traced(&db, &key(50));
    assert_eq!((cold.table_count, cold.block_count, cold.block_read_count), (1, 1, 1));
    let reads = db.stats().reads;
    assert_eq!(cold.block_read_bytes, reads.disk_read_bytes - before.disk_read_bytes);
    assert_eq!(reads.present_block_fetch_count, 1);

    let warm = traced(&db, &key(50));
    assert_eq!((warm.table_count, warm.block_count, warm.block_read_count), (1, 1, 0));
    assert_eq!(warm.block_read_bytes, 0);

    db.put(&key(50), b"newer", None).expect("written");
    assert_eq!(traced(&db, &key(50)), ReadTrace::default(), "the key is in the memtable");

    let mut both = cold;
    db.get_bounded(&key(51), u32::MAX, &mut both).expect("read");
    assert_eq!(both.table_count, 2, "traces are added");
    assert_eq!(db.stats().reads.present_block_fetch_count, 3);
}

#[test]
fn a_filtered_table_is_not_in_the_trace() {
    let world = World::new(1, Arc::new(FaultyFs::in_memory()));
    let db = flushed(&world);
    let mut trace = ReadTrace::default();
    for number in 0..1_000 {
        let absent = format!("key{number:05}x");
        db.get_bounded(absent.as_bytes(), u32::MAX, &mut trace).expect("read");
    }
    let reads = db.stats().reads;
    let let_through = reads.filter_probe_count - reads.filter_negative_count;
    assert_eq!(u64::from(trace.table_count), let_through);
    assert_eq!(u64::from(trace.block_count), reads.absent_block_fetch_count);
    assert!(trace.table_count < 100, "{trace:?}");
}

#[test]
fn the_trace_of_a_range_grows_as_it_is_read() {
    let world = World::new(1, Arc::new(FaultyFs::in_memory()));
    let db = flushed(&world);
    let before = db.stats().reads.disk_read_bytes;
    for reads_from_file in [true, false] {
        let mut range = db.range(b"", None).expect("a range opens");
        let first = range.trace();
        assert_eq!((first.table_count, first.block_count), (1, 1));
        while range.next().expect("read").is_some() {}
        let all = range.trace();
        assert_eq!(all.table_count, 1);
        assert!(all.block_count > 1, "{all:?}");
        let read_count = if reads_from_file { all.block_count } else { 0 };
        assert_eq!(all.block_read_count, read_count, "the blocks are in the cache");
        if reads_from_file {
            assert_eq!(all.block_read_bytes, db.stats().reads.disk_read_bytes - before);
        }
    }
    db.delete(&key(0)).expect("deleted");
    let range = db.range(b"zzz", None).expect("a range opens");
    assert_eq!(range.trace(), ReadTrace::default(), "no table has such keys");
}

fn tried(db: &Db, key: &[u8]) -> Lookup {
    db.try_get(key, &mut ReadTrace::default()).expect("read")
}

fn needs_disk(lookup: &Lookup) -> bool {
    matches!(lookup, Lookup::NeedsDisk { .. })
}

fn known(value: &'static [u8]) -> Lookup {
    Lookup::Known(Some(Bytes::from_static(value)))
}

#[test]
fn a_read_from_memory_needs_no_disk() {
    let disk = FaultyFs::new(1);
    let world = World::new(1, Arc::new(disk.clone()));
    let db = flushed(&world);
    db.put(&key(3), b"newer", None).expect("written");
    db.delete(&key(4)).expect("deleted");
    db.get(&key(50)).expect("the read caches the block");
    disk.set_read_delay(READ_DELAY);
    assert_eq!(tried(&db, &key(3)), known(b"newer"));
    assert_eq!(tried(&db, &key(4)), Lookup::Known(None));
    assert_eq!(tried(&db, &key(50)), known(b"value"));
    assert_eq!(tried(&db, b"behind the last key"), Lookup::Known(None));
}

#[test]
fn a_block_on_a_slow_disk_is_left_to_readers_that_may_block() {
    let disk = FaultyFs::new(1);
    let world = World::new(1, Arc::new(disk.clone()));
    let db = flushed(&world);
    disk.set_read_delay(READ_DELAY);
    let before = db.stats();
    let mut trace = ReadTrace::default();
    assert!(needs_disk(&db.try_get(&key(50), &mut trace).expect("read")));
    assert_eq!((trace.table_count, trace.block_count, trace.block_read_count), (1, 0, 0));
    let after = db.stats();
    assert_eq!(after.reads.get_count, before.reads.get_count);
    assert_eq!(after.reads.disk_read_count, before.reads.disk_read_count);
    assert_eq!(after.block_cache.miss_count, before.block_cache.miss_count);

    assert_eq!(db.get(&key(50)).expect("read").as_deref(), Some(&b"value"[..]));
    assert_eq!(tried(&db, &key(50)), known(b"value"), "the block is in the cache");
    let after = db.stats();
    assert_eq!(after.reads.get_count, before.reads.get_count + 2);
    assert_eq!(after.block_cache.miss_count, before.block_cache.miss_count + 1);
}

#[test]
fn a_non_blocking_read_fills_the_cache() {
    let disk = FaultyFs::new(1);
    let world = World::new(1, Arc::new(disk.clone()));
    let db = flushed(&world);
    let mut trace = ReadTrace::default();
    assert_eq!(db.try_get(&key(50), &mut trace).expect("read"), known(b"value"));
    assert_eq!((trace.block_count, trace.block_read_count), (1, 1));
    disk.set_read_delay(READ_DELAY);
    assert_eq!(tried(&db, &key(50)), known(b"value"));
}

#[test]
fn a_large_value_is_left_to_readers_that_may_block() {
    let world = World::new(1, Arc::new(FaultyFs::in_memory()));
    let db = world.open(&Options::for_memory(64 << 20));
    // Bytes that do not compress.
    let value = Rng::new(1).bytes(1_000_000);
    db.put(b"large", &value, None).expect("written");
    let expected = Lookup::Known(Some(Bytes::from(value)));
    // Not assert_eq, which would print a megabyte.
    assert!(tried(&db, b"large") == expected, "the key is in the memtable");
    db.flush().expect("flushed");
    assert!(needs_disk(&tried(&db, b"large")));
    let found = db.get(b"large").expect("read");
    assert!(Lookup::Known(found) == expected);
    assert!(tried(&db, b"large") == expected, "the block is in the cache");
    // A block that is short in the file and long when decompressed.
    db.put(b"zeros", &vec![0; 1_000_000], None).expect("written");
    db.flush().expect("flushed");
    assert!(needs_disk(&tried(&db, b"zeros")));
}

#[test]
fn a_long_value_is_not_copied_and_outlives_its_owner() {
    let world = World::new(1, Arc::new(FaultyFs::in_memory()));
    let db = world.open(&Options::for_memory(64 << 20));
    let mut rng = Rng::new(2);
    // With and without an expiry, which stands before the value.
    let values: Vec<Vec<u8>> = [70_000, 300_000, 3_000_000].map(|len| rng.bytes(len)).into();
    for (i, value) in values.iter().enumerate() {
        let expires_at_ms = (i == 1).then_some(u64::MAX / 2);
        db.put(&key(i as u64), value, expires_at_ms).expect("written");
    }
    let read = |i: usize| db.get(&key(i as u64)).expect("read").expect("present");
    let mut held = Vec::new();
    for source in ["memtable", "block cache"] {
        for (i, value) in values.iter().enumerate() {
            let (first, second) = (read(i), read(i));
            assert!(first == *value);
            assert_eq!(
                first.as_ptr(),
                second.as_ptr(),
                "{source}: a value of {} bytes was copied",
                value.len()
            );
            held.push((i, first));
        }
        db.flush().expect("flushed");
    }
    for i in 0..values.len() {
        db.put(&key(i as u64), b"other", None).expect("written");
    }
    db.compact().expect("compacted");
    db.close().expect("closed");
    drop(db);
    for (i, value) in held {
        assert!(value == values[i], "the value of the reader is unchanged");
    }
}

#[test]
fn a_bounded_read_does_not_read_longer_blocks() {
    let world = World::new(1, Arc::new(FaultyFs::in_memory()));
    let db = world.open(&Options::for_memory(64 << 20));
    let value = Rng::new(1).bytes(1_000_000);
    db.put(b"large", &value, None).expect("written");
    db.put(b"small", b"value", None).expect("written");
    db.compact().expect("compacted");
    let bounded = |key: &[u8], block_bytes_max| {
        db.get_bounded(key, block_bytes_max, &mut ReadTrace::default()).expect("read")
    };
    let before = db.stats().reads;
    let Lookup::NeedsDisk { block_bytes } = bounded(b"large", 64 << 10) else {
        panic!("the block was read");
    };
    assert_eq!(db.stats().reads.disk_read_bytes, before.disk_read_bytes);
    assert_eq!(db.stats().reads.get_count, before.get_count);
    assert!(block_bytes >= 1_000_000);
    assert!(bounded(b"small", 64 << 10) == known(b"value"));
    assert!(bounded(b"large", block_bytes) == Lookup::Known(Some(Bytes::from(value))));
}

#[test]
fn a_failed_read_is_an_error() {
    let disk = FaultyFs::new(1);
    let world = World::new(1, Arc::new(disk.clone()));
    let db = flushed(&world);
    disk.fail_next(FaultOp::Read, ".sst", io::ErrorKind::Other, 1);
    let error = db.try_get(&key(50), &mut ReadTrace::default());
    assert_eq!(error.expect_err("the disk failed").kind(), ErrorKind::Io);
    assert_eq!(tried(&db, &key(50)), known(b"value"));
    db.close().expect("closed");
    let error = db.try_get(&key(50), &mut ReadTrace::default());
    assert_eq!(error.expect_err("closed").kind(), ErrorKind::Closed);
}

/// A directory that is removed on drop.
struct TempDir(std::path::PathBuf);

impl Drop for TempDir {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).expect("removed");
    }
}

/// Whether the system supports non-blocking reads of a file in the page cache.
fn reads_without_waiting(file: &Path) -> bool {
    let file = PosixFs::new().open(file).expect("a file of the database");
    let mut buffer = [0; 16];
    file.read_exact_at(&mut buffer, 0).expect("read");
    file.try_read_exact_at(&mut buffer, 0).expect("read")
}

#[test]
fn a_file_in_the_page_cache_is_read_without_blocking() {
    const KEYS: u64 = 1_000;
    let dir = TempDir(std::env::temp_dir().join(format!("kvant-try-get-{}", std::process::id())));
    let options = small_options(SyncLevel::Os);
    let db =
        Db::open(Env::posix(), &dir.0, options.clone(), Resources::new(&options)).expect("opens");
    let mut batch = WriteBatch::new();
    for number in 0..KEYS {
        batch.put(&key(number), &number.to_le_bytes(), None);
    }
    db.write(batch).expect("written");
    db.compact().expect("compacted");
    let files = PosixFs::new().list(&dir.0).expect("listed");
    let table = files.iter().find(|file| file.name.ends_with(".sst")).expect("a table");
    if !reads_without_waiting(&dir.0.join(&table.name)) {
        // Without this support, readers that may block read all files.
        assert!(needs_disk(&tried(&db, &key(0))));
        return;
    }
    let mut trace = ReadTrace::default();
    let mut known_count = 0;
    for number in 0..KEYS {
        match db.try_get(&key(number), &mut trace).expect("read") {
            Lookup::Known(value) => {
                assert_eq!(value.as_deref(), Some(&number.to_le_bytes()[..]));
                known_count += 1;
            }
            Lookup::NeedsDisk { .. } => {}
        }
    }
    // Memory pressure may have evicted pages from the page cache.
    assert!(known_count > KEYS / 2, "{known_count} of {KEYS}: {trace:?}");
    assert!(trace.block_read_count > 1, "{trace:?}");
}

#[test]
fn direct_reads_find_all_records_and_wait_for_the_disk() {
    const KEYS: u64 = 1_000;
    let dir = TempDir(std::env::temp_dir().join(format!("kvant-direct-{}", std::process::id())));
    let options = Options { direct_reads: true, ..small_options(SyncLevel::Os) };
    let open = || Db::open(Env::posix(), &dir.0, options.clone(), Resources::new(&options));
    let mut db = match open() {
        Err(error) if error.kind() == ErrorKind::Invalid => {
            assert!(!dir.0.exists(), "a refused start leaves nothing");
            std::fs::create_dir(&dir.0).expect("created");
            return eprintln!("{} has no direct reads", dir.0.display());
        }
        opened => opened.expect("opens"),
    };
    let value = |number: u64, version: u64| Bytes::from(format!("{version} of {number}"));
    for version in 0..3 {
        for number in (0..KEYS).step_by(version as usize + 1) {
            db.put(&key(number), &value(number, version), None).expect("written");
        }
        match version {
            0 => db.flush().expect("flushed"),
            1 => db.compact().expect("compacted"),
            _ => {
                db.flush().expect("flushed");
                db.close().expect("closed");
                db = open().expect("opens again");
            }
        }
        // Blocks that were never read are not in memory, though the files were just written.
        assert!(needs_disk(&tried(&db, &key(0))), "version {version}");
        for number in 0..KEYS {
            let newest = (0..=version).rev().find(|version| number % (version + 1) == 0);
            let expected = newest.map(|version| value(number, version));
            assert_eq!(db.get(&key(number)).expect("read"), expected);
        }
        assert_eq!(all_records(&db).expect("read").len() as u64, KEYS);
        assert!(!needs_disk(&tried(&db, &key(0))), "the block is in the cache");
    }
}

#[test]
fn a_start_is_refused_where_files_have_no_direct_reads() {
    let disk = FaultyFs::new(1);
    let world = World::new(1, Arc::new(disk.clone()));
    let options = Options { direct_reads: true, ..small_options(SyncLevel::Os) };
    disk.create_dir_all(Path::new(DIR)).expect("created");
    disk.fail_next(FaultOp::Open, "LOCK", io::ErrorKind::InvalidInput, 1);
    let error = world.try_open(&options).err().expect("refused");
    assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
    assert!(error.to_string().contains("no direct reads (O_DIRECT)"), "{error}");
    assert_eq!(disk.list(Path::new(DIR)).expect("listed"), [], "a refused start leaves nothing");
    world.open(&options).put(b"key", b"value", None).expect("written");
}
