//! Simulated worlds that a seed reproduces, and settings small enough to exercise every mechanism.

use kvant_engine::{CompactionGoal, Compression, Db, Options, Resources, SyncLevel, WriteBatch};
use kvant_env::rng::Rng;
use kvant_env::testing::{DeterministicSpawner, MockClock, entropy_seed};
use kvant_env::{Env, Fs};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// The directory of every simulated database.
pub(crate) const DIR: &str = "/db";

/// The wall time at the start of a simulated world.
pub(crate) const START_MS: u64 = 1_700_000_000_000;

/// The seed of a random test: `KVANT_TEST_SEED`, or a new one. Printed, to replay a failure.
pub(crate) fn seed(test: &str) -> u64 {
    let seed = match std::env::var("KVANT_TEST_SEED") {
        Ok(text) => text.parse().expect("KVANT_TEST_SEED is a number"),
        Err(_) => entropy_seed(),
    };
    println!("{test}: replay with KVANT_TEST_SEED={seed}");
    seed
}

/// Default cycles of the kill -9 test, which keep it quick.
const CYCLES_QUICK: u64 = 20;

/// Rounds of a random test: `quick`, scaled up by `KVANT_TORTURE_CYCLES`.
pub(crate) fn rounds(quick: u64) -> u64 {
    let cycles = match std::env::var("KVANT_TORTURE_CYCLES") {
        Ok(text) => text.parse().expect("KVANT_TORTURE_CYCLES is a number"),
        Err(_) => CYCLES_QUICK,
    };
    quick * (cycles / CYCLES_QUICK).max(1)
}

/// A single-threaded world with a mock clock on the given disk.
pub(crate) struct World {
    pub(crate) env: Env,
    pub(crate) clock: Arc<MockClock>,
    pub(crate) spawner: DeterministicSpawner,
}

impl World {
    pub(crate) fn new(seed: u64, fs: Arc<dyn Fs>) -> World {
        World::at(seed, fs, Arc::new(MockClock::new(START_MS)))
    }

    pub(crate) fn at(seed: u64, fs: Arc<dyn Fs>, clock: Arc<MockClock>) -> World {
        let spawner = DeterministicSpawner::new(seed, Arc::clone(&clock));
        let env = Env { fs, clock: clock.clone(), spawner: Arc::new(spawner.clone()) };
        World { env, clock, spawner }
    }

    pub(crate) fn open(&self, options: &Options) -> Db {
        self.try_open(options).expect("the database opens")
    }

    pub(crate) fn try_open(&self, options: &Options) -> kvant_base::Result<Db> {
        Db::open(self.env.clone(), Path::new(DIR), options.clone(), Resources::new(options))
    }
}

/// Settings with which a few hundred writes cause flushes and compactions on several levels.
pub(crate) fn small_options(sync: SyncLevel) -> Options {
    Options {
        sync,
        memtable_bytes: 16 << 10,
        table_bytes: 8 << 10,
        block_bytes: 512,
        ..Options::for_memory(64 << 20)
    }
}

/// Random valid settings.
pub(crate) fn random_options(rng: &mut Rng) -> Options {
    let compressions = [Compression::None, Compression::Lz4, Compression::Zstd];
    let syncs = [SyncLevel::Os, SyncLevel::Interval(Duration::from_millis(100)), SyncLevel::Always];
    let l0_compact_count = 1 + rng.below(4) as usize;
    let mut options = small_options(syncs[rng.below(3) as usize]);
    options.memtable_bytes = 4096 << rng.below(5);
    options.memtables_sealed_max = 1 + rng.below(3) as usize;
    options.table_bytes = 4096 << rng.below(5);
    options.block_bytes = 256 << rng.below(5);
    options.l0_compact_count = l0_compact_count;
    options.l0_slow_count = l0_compact_count + rng.below(3) as usize;
    options.l0_stop_count = options.l0_slow_count + 1 + rng.below(4) as usize;
    options.level_ratio = 2 + rng.below(9);
    options.goal = [CompactionGoal::Space, CompactionGoal::Writes][rng.below(2) as usize];
    options.space_amplification_share = [0.1, 0.2, 0.5, 5.0][rng.below(4) as usize];
    options.compression = std::array::from_fn(|_| compressions[rng.below(3) as usize]);
    options.direct_reads = rng.below(2) == 0;
    assert_eq!(options.problems(), Vec::<String>::new());
    options
}

/// All records of the database, in order.
pub(crate) fn all_records(db: &Db) -> kvant_base::Result<Vec<(Vec<u8>, Vec<u8>)>> {
    let mut range = db.range(b"", None)?;
    let mut records = Vec::new();
    while let Some(record) = range.next()? {
        records.push((record.key.to_vec(), record.value.to_vec()));
    }
    Ok(records)
}

/// A batch of one put.
pub(crate) fn put(key: &[u8], value: &[u8]) -> WriteBatch {
    let mut batch = WriteBatch::new();
    batch.put(key, value, None);
    batch
}
