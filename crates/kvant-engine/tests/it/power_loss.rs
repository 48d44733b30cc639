//! Power loss at every sync point of scripted workloads.
//!
//! A scripted workload runs once to count its sync points. Then it runs again for each of them, and
//! the disk fails at that point. The database is opened on what a disk may contain afterwards:
//! unsynced writes and directory entries are dropped, kept, reordered and torn at random. With
//! `--sync always` nothing acknowledged is missing; otherwise a prefix of the history is left, with
//! all that a flush, a close or a sync had made durable.

use crate::common::{START_MS, World, all_records, rounds, seed, small_options};
use kvant_engine::{Db, SyncLevel, WriteBatch};
use kvant_env::Fs;
use kvant_env::rng::Rng;
use kvant_env::testing::{CrashMoment, CrashStyle, FaultyFs};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

/// The history until the disk failed.
struct History {
    /// The state before any batch and after each submitted one.
    states: Vec<Map>,
    /// Acknowledged batches.
    acknowledged: usize,
    /// Acknowledged batches that are durable at every level.
    durable: usize,
}

#[test]
fn with_sync_always_nothing_acknowledged_is_missing() {
    sweep("always", SyncLevel::Always);
}

#[test]
fn with_sync_interval_a_prefix_of_the_history_is_left() {
    sweep("interval", SyncLevel::Interval(Duration::from_millis(50)));
}

#[test]
fn with_sync_os_a_prefix_of_the_history_is_left() {
    sweep("os", SyncLevel::Os);
}

fn sweep(name: &str, sync: SyncLevel) {
    let seed = seed(name);
    for round in 0..rounds(1) {
        let seed = seed.wrapping_add(round);
        let disk = FaultyFs::new(seed);
        workload(seed, sync, &disk);
        let sync_points = disk.sync_point_count();
        assert!(sync_points > 20, "{name}: only {sync_points} sync points");
        println!("{name}: seed {seed}, {sync_points} sync points");
        for sync_point in 1..=sync_points {
            crash(seed, sync, sync_point);
        }
    }
}

fn crash(seed: u64, sync: SyncLevel, sync_point: u64) {
    let disk = FaultyFs::new(seed);
    disk.crash_at_sync_point(sync_point);
    let history = workload(seed, sync, &disk);
    for moment in [CrashMoment::BeforeSync, CrashMoment::AfterSync] {
        for style in
            [CrashStyle::DropUnsynced, CrashStyle::KeepAll, CrashStyle::Random, CrashStyle::Random]
        {
            let image_seed = Rng::new(seed ^ sync_point << 8 ^ style as u64).next_u64();
            let what =
                format!("KVANT_TEST_SEED={seed}, {sync:?}, {moment:?} {sync_point}, {style:?}");
            let image = disk
                .take_crash_image(moment, image_seed, style)
                .expect("a workload that replays crashes again");
            recover(&what, seed, sync, image, &history);
        }
    }
}

/// Opens the database after the crash twice: the second recovery returns what the first one did.
fn recover(what: &str, seed: u64, sync: SyncLevel, image: FaultyFs, history: &History) {
    let image: Arc<dyn Fs> = Arc::new(image);
    let mut options = small_options(sync);
    options.memtable_bytes = 4096;
    let found = {
        let world = World::new(seed, Arc::clone(&image));
        let db =
            world.try_open(&options).unwrap_or_else(|error| panic!("{what}: cannot open: {error}"));
        let found = records(&db);
        db.put(b"after the crash", b"1", None)
            .unwrap_or_else(|error| panic!("{what}: cannot write: {error}"));
        found
    };
    let prefix = history.states.iter().rposition(|state| *state == found);
    let prefix = prefix.unwrap_or_else(|| {
        panic!("{what}: what is left is no state of the history: {} records", found.len())
    });
    let least = match sync {
        SyncLevel::Always => history.acknowledged,
        SyncLevel::Interval(_) | SyncLevel::Os => history.durable,
    };
    assert!(prefix >= least, "{what}: {prefix} of {least} durable batches");
    let world = World::new(seed ^ 1, image);
    let db = world
        .try_open(&options)
        .unwrap_or_else(|error| panic!("{what}: cannot open again: {error}"));
    let mut expected = found;
    expected.insert(b"after the crash".to_vec(), b"1".to_vec());
    assert!(records(&db) == expected, "{what}: the second recovery shows something else");
}

fn records(db: &Db) -> Map {
    all_records(db).expect("a recovered database reads").into_iter().collect()
}

/// Writes, overwrites, deletes, flushes, compacts and reopens at random until the end of the script
/// or until the disk fails.
fn workload(seed: u64, sync: SyncLevel, disk: &FaultyFs) -> History {
    let mut rng = Rng::new(seed);
    let mut history = History { states: vec![Map::new()], acknowledged: 0, durable: 0 };
    let clock = Arc::new(kvant_env::testing::MockClock::new(START_MS));
    let mut options = small_options(sync);
    options.memtable_bytes = 4096;
    for session in 0..2 {
        let world = World::at(rng.next_u64() ^ session, Arc::new(disk.clone()), Arc::clone(&clock));
        let Ok(db) = world.try_open(&options) else {
            assert!(disk.is_crashed(), "only a crash keeps the database from opening");
            return history;
        };
        for _ in 0..25 {
            let mut state = history.states.last().expect("there is a first state").clone();
            let batch = random_batch(&mut rng, &mut state);
            // A batch with an unknown outcome may be there or not.
            history.states.push(state);
            if db.write(batch).is_err() {
                return history;
            }
            history.acknowledged = history.states.len() - 1;
            let sync_count = || db.stats().wal.sync_count;
            match rng.below(25) {
                0 => match db.flush() {
                    Ok(()) => history.durable = history.acknowledged,
                    Err(_) => return history,
                },
                1 if db.compact().is_err() => return history,
                2..10 => {
                    let before = sync_count();
                    world.spawner.step();
                    if sync_count() > before {
                        history.durable = history.acknowledged;
                    }
                }
                10..14 => world.clock.advance(Duration::from_millis(20)),
                _ => {}
            }
        }
        if session == 0 && rng.one_in(2) {
            match db.close() {
                Ok(()) => history.durable = history.acknowledged,
                Err(_) => return history,
            }
        }
        // The process is killed: nothing more is written.
        world.spawner.abandon_tasks();
        std::mem::forget(db);
        disk.release_locks();
    }
    history
}

fn random_batch(rng: &mut Rng, state: &mut Map) -> WriteBatch {
    let mut batch = WriteBatch::new();
    for _ in 0..1 + rng.below(3) {
        let key = format!("key{:02}", rng.below(40)).into_bytes();
        if rng.one_in(4) {
            batch.delete(&key);
            state.remove(&key);
        } else {
            let length = 1 + rng.below(300) as usize;
            let value = rng.bytes(length);
            batch.put(&key, &value, None);
            state.insert(key, value);
        }
    }
    batch
}
