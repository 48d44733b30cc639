//! Random damage to directories: a file is flipped, truncated, swapped, deleted, zeroed or renamed.
//! Then `verify`, an open and `repair` run, each on a copy.
//!
//! 1. A database that `verify` calls whole opens and returns correct data.
//! 2. An open database returns correct data or an error with a file. The exception: the end of the
//!    last log of a killed process may be missing, after everything recorded as synced.
//! 3. The result of `repair` opens and is whole, and `repair` reports what it could not save.
//!
//! `KVANT_MUTATIONS` is the number of mutations.

use crate::common::{DIR, START_MS, World, all_records, seed, small_options};
use kvant_engine::tools;
use kvant_engine::{Db, Options, SyncLevel};
use kvant_env::Fs;
use kvant_env::rng::Rng;
use kvant_env::testing::{CrashStyle, FaultyFs};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

/// Default number of mutations.
const MUTATIONS_QUICK: u64 = 60;
/// Mutations per database.
const MUTATIONS_PER_DATABASE: u64 = 20;
const KEY_COUNT: u64 = 120;

/// A database to damage.
struct Victim {
    disk: FaultyFs,
    options: Options,
    stop: &'static str,
    /// Every write, in order; `None` deletes.
    history: Vec<(Vec<u8>, Option<Vec<u8>>)>,
    /// The number of writes recorded as synced.
    known: usize,
}

impl Victim {
    fn state_after(&self, count: usize) -> Map {
        let mut state = Map::new();
        for (key, value) in &self.history[..count] {
            match value {
                Some(value) => state.insert(key.clone(), value.clone()),
                None => state.remove(key),
            };
        }
        state
    }

    /// Whether `found` is a prefix of the writes that includes those recorded as synced.
    fn is_allowed_prefix(&self, found: &Map) -> bool {
        (self.known..self.history.len()).rev().any(|count| self.state_after(count) == *found)
    }
}

#[test]
fn random_mutations_are_detected_or_harmless() {
    let seed = seed("mutations");
    let mut rng = Rng::new(seed);
    let count = match std::env::var("KVANT_MUTATIONS") {
        Ok(text) => text.parse().expect("KVANT_MUTATIONS is a number"),
        Err(_) => MUTATIONS_QUICK,
    };
    let mut tallies: BTreeMap<(&str, &str), Tally> = BTreeMap::new();
    let mut victim = build(&mut rng);
    for number in 0..count {
        if number > 0 && number % MUTATIONS_PER_DATABASE == 0 {
            victim = build(&mut rng);
        }
        let image = victim.disk.crash_image(seed, CrashStyle::KeepAll);
        let (kind, done) = mutate(&mut rng, &image);
        let what = format!(
            "KVANT_TEST_SEED={seed} KVANT_MUTATIONS={}, {}: {kind} {done}",
            number + 1,
            victim.stop
        );
        check(&what, &victim, &image, tallies.entry((kind, victim.stop)).or_default());
    }
    println!(
        "mutation, end: times | verify: whole | open: right, refused, errors, end cut | repair: all saved, some lost"
    );
    for ((kind, stop), tally) in tallies {
        let Tally { times, whole, right, refused, errors, end_cut, saved, lost } = tally;
        println!(
            "{kind}, {stop}: {times} | {whole} | {right}, {refused}, {errors}, {end_cut} | {saved}, {lost}"
        );
    }
}

#[derive(Default)]
struct Tally {
    times: u64,
    whole: u64,
    right: u64,
    refused: u64,
    errors: u64,
    end_cut: u64,
    saved: u64,
    lost: u64,
}

/// The result of reading everything.
#[derive(Debug, PartialEq, Eq)]
enum Read {
    Right,
    /// Some reads failed with an error that names the file; the others were correct.
    Errors,
    /// A prefix of the history.
    EndCut,
    Wrong(String),
}

fn check(what: &str, victim: &Victim, image: &FaultyFs, tally: &mut Tally) {
    tally.times += 1;
    let copy = || Arc::new(image.crash_image(0, CrashStyle::KeepAll));
    let dir = Path::new(DIR);

    let env = World::new(1, copy()).env;
    let verified =
        tools::verify(&env, dir, &mut |_| ()).unwrap_or_else(|e| panic!("{what}: verify: {e}"));
    let whole = verified.problems.is_empty();
    tally.whole += u64::from(whole);

    match World::new(2, copy()).try_open(&victim.options) {
        Err(error) => {
            assert!(!whole, "{what}: verify said whole, open {error}");
            assert!(error.file().is_some(), "{what}: no file in {error}");
            tally.refused += 1;
        }
        Ok(db) => {
            let read = read_all(victim, &db);
            match &read {
                Read::Right => tally.right += 1,
                Read::Errors => tally.errors += 1,
                Read::EndCut => tally.end_cut += 1,
                Read::Wrong(how) => panic!("{what}: wrong data are served: {how}"),
            }
            assert!(!whole || read != Read::Errors, "{what}: verify said whole, reads fail");
        }
    }

    let world = World::new(3, copy());
    let report = tools::repair(&world.env, dir).unwrap_or_else(|e| panic!("{what}: repair: {e}"));
    let verified = tools::verify(&world.env, dir, &mut |_| ()).expect("verified");
    assert!(verified.problems.is_empty(), "{what}: repaired, but {:?}", verified.problems);
    let db =
        world.try_open(&victim.options).unwrap_or_else(|e| panic!("{what}: repaired, but {e}"));
    let read = read_all(victim, &db);
    if report.losses.is_empty() {
        tally.saved += 1;
        assert!(
            matches!(read, Read::Right | Read::EndCut),
            "{what}: nothing is lost, it is said, but {read:?}"
        );
    } else {
        tally.lost += 1;
        assert_ne!(read, Read::Errors, "{what}: what was repaired is not readable");
    }
}

fn read_all(victim: &Victim, db: &Db) -> Read {
    let expected = victim.state_after(victim.history.len());
    let mut errors = 0;
    for number in 0..KEY_COUNT {
        let key = key(number);
        match db.get(&key) {
            Ok(found) if found.as_deref() == expected.get(&key).map(Vec::as_slice) => {}
            Ok(found) => {
                let whole = all_records(db);
                let state: Option<Map> = whole.ok().map(|records| records.into_iter().collect());
                if state.is_some_and(|state| victim.is_allowed_prefix(&state)) {
                    return Read::EndCut;
                }
                return Read::Wrong(format!("{} is {found:?}", key.escape_ascii()));
            }
            Err(error) => {
                assert!(error.file().is_some(), "no file in {error}");
                errors += 1;
            }
        }
    }
    match all_records(db) {
        Ok(records) if errors == 0 => {
            let found: Map = records.into_iter().collect();
            match found == expected {
                true => Read::Right,
                false => Read::Wrong("the range".to_string()),
            }
        }
        _ => Read::Errors,
    }
}

fn key(number: u64) -> Vec<u8> {
    format!("key{number:03}").into_bytes()
}

/// A database with tables on two levels and several logs, closed or killed.
fn build(rng: &mut Rng) -> Victim {
    let killed = rng.one_in(2);
    let interval = SyncLevel::Interval(Duration::from_millis(100));
    let sync = match killed {
        true => SyncLevel::Always,
        false => [SyncLevel::Os, interval, SyncLevel::Always][rng.below(3) as usize],
    };
    let disk = FaultyFs::new(rng.next_u64());
    let mut victim = Victim {
        options: Options { memtable_bytes: 8 << 10, table_bytes: 4 << 10, ..small_options(sync) },
        disk: disk.clone(),
        stop: if killed { "killed" } else { "stopped" },
        history: Vec::new(),
        known: 0,
    };
    let run_count = 2 + rng.below(3);
    for run in 0..run_count {
        let world = World::new(rng.next_u64(), Arc::new(disk.clone()));
        let db = world.open(&victim.options);
        // A recovery syncs and records what it replayed.
        victim.known = victim.history.len();
        if run == 0 {
            write(rng, &mut victim, &db, &disk, 150);
            db.compact().expect("compacted");
            write(rng, &mut victim, &db, &disk, 60);
            db.flush().expect("flushed");
            if rng.one_in(2) {
                world.spawner.run_until_idle();
            }
        }
        let write_count = 5 + rng.below(60);
        write(rng, &mut victim, &db, &disk, write_count);
        if run + 1 == run_count && killed {
            victim.disk = disk.crash_image(0, CrashStyle::KeepAll);
        }
        if !killed && rng.one_in(4) {
            world.clock.advance(Duration::from_millis(START_MS % 7));
            world.spawner.run_until_idle();
        }
        db.close().expect("closed");
    }
    if !killed {
        victim.disk = disk;
        victim.known = victim.history.len();
    }
    victim
}

fn write(rng: &mut Rng, victim: &mut Victim, db: &Db, disk: &FaultyFs, count: u64) {
    let manifest = || {
        let files = disk.files().into_iter();
        files.filter(|(path, _)| path.to_string_lossy().contains("MANIFEST-")).max()
    };
    for _ in 0..count {
        let before = (manifest(), victim.history.len());
        let key = key(rng.below(KEY_COUNT));
        let value = (!rng.one_in(5)).then(|| {
            let bytes = 10 + rng.below(90) as usize;
            rng.bytes(bytes)
        });
        match &value {
            Some(value) => db.put(&key, value, None).expect("written"),
            None => db.delete(&key).expect("written"),
        }
        victim.history.push((key, value));
        if manifest() != before.0 {
            // Every edit records what was synced before it: with `always`, all acknowledged writes.
            victim.known = before.1;
        }
    }
}

/// Damages a file. Returns the kind and the details.
fn mutate(rng: &mut Rng, image: &FaultyFs) -> (&'static str, String) {
    let files: Vec<(PathBuf, u64)> = image
        .files()
        .into_iter()
        .filter(|(path, _)| path.parent() == Some(Path::new(DIR)))
        .collect();
    let (path, len_bytes) = files[rng.below(files.len() as u64) as usize].clone();
    let name = name_of(&path);
    let open = || image.open_writable(&path).expect("there");
    match rng.below(6) {
        0 if len_bytes > 0 => {
            let (offset, bit) = (rng.below(len_bytes), rng.below(8));
            image.flip_byte(&path, offset, 1 << bit).expect("there");
            ("flip", format!("{name} byte {offset} of {len_bytes}, bit {bit}"))
        }
        1 if len_bytes > 0 => {
            let to_bytes = if rng.one_in(4) { 0 } else { rng.below(len_bytes) };
            open().set_len(to_bytes).expect("cut");
            ("truncate", format!("{name} from {len_bytes} to {to_bytes} bytes"))
        }
        2 => {
            let alike: Vec<&PathBuf> = files
                .iter()
                .map(|(other, _)| other)
                .filter(|other| {
                    **other != path && (rng.one_in(4) || other.extension() == path.extension())
                })
                .collect();
            if alike.is_empty() {
                image.remove_file(&path).expect("removed");
                return ("delete", name);
            }
            let other = alike[rng.below(alike.len() as u64) as usize];
            let aside = Path::new(DIR).join("aside");
            image.rename(&path, &aside).expect("renamed");
            image.rename(other, &path).expect("renamed");
            image.rename(&aside, other).expect("renamed");
            ("swap", format!("{name} with {}", name_of(other)))
        }
        3 if len_bytes > 0 => {
            let from = rng.below(len_bytes);
            let count = 1 + rng.below((len_bytes - from).min(2000));
            let zeros = vec![0; count as usize];
            open().write_all_at(&zeros, from).expect("written");
            ("zero", format!("{name} {count} of {len_bytes} bytes from {from}"))
        }
        4 => {
            let to = match (rng.below(4), path.extension().and_then(|ext| ext.to_str())) {
                (0, _) => format!("{name}.old"),
                (1, _) => "MANIFEST-000999".to_string(),
                (2, Some("sst")) | (3, Some("wal")) => "000998.wal".to_string(),
                _ => "000997.sst".to_string(),
            };
            image.rename(&path, &Path::new(DIR).join(&to)).expect("renamed");
            ("rename", format!("{name} to {to}"))
        }
        _ => {
            image.remove_file(&path).expect("removed");
            ("delete", name)
        }
    }
}

fn name_of(path: &Path) -> String {
    let name = path.file_name().expect("a file has a name");
    name.to_string_lossy().into_owned()
}
