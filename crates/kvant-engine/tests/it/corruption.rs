//! Flips each byte of a small database in turn.
//!
//! Every flip must be detected (a typed error that names the file), be harmless, or lose a suffix
//! of the log after its last known-synced offset. No read returns a wrong value, and nothing
//! panics.

use crate::common::{DIR, World, put, seed, small_options};
use kvant_base::{Error, ErrorKind};
use kvant_engine::{Db, Lookup, Options, ReadTrace, SyncLevel};
use kvant_env::Fs;
use kvant_env::rng::Rng;
use kvant_env::testing::{CrashStyle, FaultyFs};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

#[derive(Default)]
struct Tally {
    refused: u64,
    partly_unreadable: u64,
    suffix_lost: u64,
    harmless: u64,
}

#[test]
fn every_flipped_byte_is_detected_harmless_or_an_unsynced_suffix() {
    let seed = seed("corruption");
    let mut rng = Rng::new(seed);
    let options = Options { memtable_bytes: 64 << 10, ..small_options(SyncLevel::Always) };
    let disk = FaultyFs::new(seed);
    let (image, states) = build(&mut rng, &options, &disk);
    let mut tally = Tally::default();
    let mut file_count = 0;
    for (path, len_bytes) in image.files() {
        let name = path.file_name().expect("a file has a name").to_string_lossy().into_owned();
        if name == "LOCK" || name == "RESERVE" {
            continue;
        }
        file_count += 1;
        for offset in 0..len_bytes {
            let xor = 1 << rng.below(8);
            let flipped = image.crash_image(seed, CrashStyle::KeepAll);
            flipped.flip_byte(&path, offset, xor).expect("the byte is there");
            let what =
                format!("KVANT_TEST_SEED={seed}, {name} byte {offset} of {len_bytes} xor {xor:#x}");
            check(&what, &options, Arc::new(flipped), &states, name.ends_with(".wal"), &mut tally);
        }
    }
    let Tally { refused, partly_unreadable, suffix_lost, harmless } = tally;
    println!(
        "{file_count} files: {refused} refused, {partly_unreadable} partly unreadable, {suffix_lost} suffixes, {harmless} harmless"
    );
    assert!(refused > 0 && partly_unreadable > 0 && suffix_lost > 0 && file_count >= 4);
}

#[test]
fn writes_continue_above_a_table_that_cannot_be_compacted() {
    let disk = FaultyFs::new(1);
    let world = World::new(1, Arc::new(disk.clone()));
    let options = small_options(SyncLevel::Os);
    let db = world.open(&options);
    let rewrite = |value: &[u8]| {
        for number in 0..10 {
            db.put(format!("key{number}").as_bytes(), value, None).expect("written");
        }
    };
    rewrite(b"first");
    db.compact().expect("compacted");
    for (path, _) in disk.files() {
        if path.extension().is_some_and(|extension| extension == "sst") {
            disk.flip_byte(&path, 0, 1).expect("the byte is there");
        }
    }
    for _ in 0..2 * options.l0_stop_count {
        rewrite(b"later");
        db.flush().expect("flushed");
        world.spawner.run_until_idle();
        assert_eq!(db.stall(), None, "this stall would never end");
    }
    assert!(db.stats().compactions.failed_count > 0, "a compaction read the damage");
    assert_eq!(
        db.get(b"key5").expect("newer tables are undamaged").as_deref(),
        Some(&b"later"[..])
    );
}

/// The database of a killed process, with tables on two levels and a log that has not been flushed;
/// and the states that a recovery may return: the last one, or an earlier one if the end of the log
/// is lost.
fn build(rng: &mut Rng, options: &Options, disk: &FaultyFs) -> (FaultyFs, Vec<Map>) {
    let world = World::new(1, Arc::new(disk.clone()));
    let db = world.open(options);
    let mut state = Map::new();
    for round in 0..2 {
        for number in 0..40 {
            let key = format!("key{:02}", (number * 7 + round) % 50).into_bytes();
            let value = if rng.one_in(2) { vec![b'x'; 60] } else { rng.bytes(25) };
            db.put(&key, &value, None).expect("a write succeeds");
            state.insert(key, value);
        }
        if round == 0 {
            db.compact().expect("a compaction succeeds");
        } else {
            db.flush().expect("a flush succeeds");
        }
    }
    world.spawner.run_until_idle();
    let mut states = vec![state.clone()];
    for number in 0..12 {
        let (key, value) = (format!("key{:02}", number * 4).into_bytes(), rng.bytes(20));
        db.write(put(&key, &value)).expect("a write succeeds");
        state.insert(key, value);
        states.push(state.clone());
    }
    world.spawner.run_until_idle();
    let image = disk.crash_image(0, CrashStyle::KeepAll);
    db.close().expect("the database closes");
    (image, states)
}

fn check(
    what: &str,
    options: &Options,
    fs: Arc<dyn Fs>,
    states: &[Map],
    in_log: bool,
    tally: &mut Tally,
) {
    let world = World::new(2, fs);
    let db = match world.try_open(options) {
        Ok(db) => db,
        Err(error) => {
            check_error(what, &error);
            tally.refused += 1;
            return;
        }
    };
    let last = states.last().expect("there are states");
    if in_log {
        let found: Map =
            crate::common::all_records(&db).expect("the tables are whole").into_iter().collect();
        let prefix = states.iter().rposition(|state| *state == found);
        let prefix =
            prefix.unwrap_or_else(|| panic!("{what}: what is left is no state of the history"));
        // Each record of the log states that the one before it was synced.
        assert!(
            prefix + 2 >= states.len(),
            "{what}: {prefix} of {} known-synced writes",
            states.len() - 2
        );
        if prefix + 1 == states.len() {
            tally.harmless += 1
        } else {
            tally.suffix_lost += 1
        }
        return;
    }
    let unreadable = read_all(what, &db, last);
    if unreadable > 0 { tally.partly_unreadable += 1 } else { tally.harmless += 1 }
}

/// Reads every key and the whole range. Returns the number of failed reads, each with an error that
/// names the place.
fn read_all(what: &str, db: &Db, expected: &Map) -> u64 {
    let mut unreadable = 0;
    for (key, value) in expected {
        // Before the block is in the cache.
        let tried = db.try_get(key, &mut ReadTrace::default());
        match db.get(key) {
            Ok(found) => {
                assert_eq!(found.as_deref(), Some(value.as_slice()), "{what}: key {key:?}");
                let tried = tried.expect("an undamaged record is readable without waiting");
                assert_eq!(tried, Lookup::Known(found), "{what}: key {key:?}");
            }
            Err(error) => {
                check_error(what, &error);
                let tried = tried.expect_err("a damaged record is an error without waiting, too");
                assert_eq!(tried.to_string(), error.to_string(), "{what}: key {key:?}");
                unreadable += 1;
            }
        }
    }
    for absent in ["a", "key99", "zzz"] {
        match db.get(absent.as_bytes()) {
            Ok(found) => assert_eq!(found, None, "{what}: absent key {absent}"),
            Err(error) => check_error(what, &error),
        }
    }
    let mut range = match db.range(b"", None) {
        Ok(range) => range,
        Err(error) => {
            check_error(what, &error);
            return unreadable + 1;
        }
    };
    let mut expected = expected.iter();
    loop {
        match range.next() {
            Ok(Some(record)) => {
                let (key, value) =
                    expected.next().unwrap_or_else(|| panic!("{what}: a record too many"));
                assert_eq!(
                    (record.key, record.value),
                    (key.as_slice(), value.as_slice()),
                    "{what}"
                );
            }
            Ok(None) => {
                assert_eq!(expected.next(), None, "{what}: the range ended early");
                return unreadable;
            }
            Err(error) => {
                check_error(what, &error);
                return unreadable + 1;
            }
        }
    }
}

fn check_error(what: &str, error: &Error) {
    let kind = error.kind();
    assert!(matches!(kind, ErrorKind::Corruption | ErrorKind::Unsupported), "{what}: {error:?}");
    assert!(
        error.file().is_some_and(|file| file.starts_with(Path::new(DIR))),
        "{what}: no file in {error:?}"
    );
    assert!(
        kind == ErrorKind::Unsupported || error.offset_bytes().is_some(),
        "{what}: no offset in {error:?}"
    );
}
