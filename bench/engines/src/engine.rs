//! What the workloads require of an engine, and the engines by name.

use crate::Failure;
use crate::data::Key;
use crate::engines::{fjall, kvant, leveldb, lmdb, redb, rocksdb};
use crate::usage;
use kvant_engine::CompactionGoal;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// An open database. Every write is acknowledged once the operating system has it, without an
/// fsync, except where an engine's file says otherwise.
pub(crate) trait Engine: Send + Sync {
    fn put(&self, key: &Key, value: &[u8]) -> Result<(), Failure>;

    fn delete(&self, key: &Key) -> Result<(), Failure>;

    /// Puts all records, atomically.
    fn write_batch(&self, records: &[(Key, &[u8])]) -> Result<(), Failure>;

    /// Passes the value of `key` to `take` and returns whether there is one.
    fn get(&self, key: &Key, take: &mut dyn FnMut(&[u8])) -> Result<bool, Failure>;

    /// Passes up to `limit` records from `start` to `take`, in key order, and returns their number.
    fn scan(
        &self,
        start: &[u8],
        limit: u64,
        take: &mut dyn FnMut(&[u8], &[u8]),
    ) -> Result<u64, Failure>;

    /// Writes to tables what is in memory, so that a workload begins without it. Engines that do so
    /// when they are opened need not do it here.
    fn flush(&self) -> Result<(), Failure> {
        Ok(())
    }

    /// Waits until flushes and compactions have caught up. What is in memory stays there.
    fn settle(&self) -> Result<(), Failure> {
        usage::wait_for_quiet_threads(SETTLE_MAX)
    }

    /// Bytes that the engine has written since it was opened, by its own account; 0 if it has none.
    fn written_bytes(&self) -> u64 {
        0
    }

    /// The engine's own account, for the results file.
    fn stats(&self) -> serde_json::Value {
        serde_json::Value::Null
    }

    fn close(self: Box<Self>) -> Result<(), Failure>;
}

/// The longest wait for background work.
pub(crate) const SETTLE_MAX: Duration = Duration::from_secs(600);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Kind {
    Kvant,
    /// With `--compaction writes`.
    #[serde(rename = "kvant-writes")]
    KvantWrites,
    RocksDb,
    LevelDb,
    Fjall,
    Lmdb,
    Redb,
}

impl Kind {
    pub(crate) const ALL: [Kind; 7] = [
        Kind::Kvant,
        Kind::KvantWrites,
        Kind::RocksDb,
        Kind::LevelDb,
        Kind::Fjall,
        Kind::Lmdb,
        Kind::Redb,
    ];
    /// The peers of the same design, which Kvant is compared with.
    pub(crate) const LSM_PEERS: [Kind; 3] = [Kind::RocksDb, Kind::LevelDb, Kind::Fjall];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Kind::Kvant => "kvant",
            Kind::KvantWrites => "kvant-writes",
            Kind::RocksDb => "rocksdb",
            Kind::LevelDb => "leveldb",
            Kind::Fjall => "fjall",
            Kind::Lmdb => "lmdb",
            Kind::Redb => "redb",
        }
    }

    pub(crate) fn from_name(name: &str) -> Option<Kind> {
        Kind::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Whether it reads past the page cache if [`Setup::reads_from_disk`].
    pub(crate) fn has_direct_reads(self) -> bool {
        matches!(self, Kind::Kvant | Kind::KvantWrites | Kind::RocksDb)
    }

    pub(crate) fn open(self, dir: &Path, setup: &Setup) -> Result<Box<dyn Engine>, Failure> {
        match self {
            Kind::Kvant => kvant::open(dir, setup, CompactionGoal::Space),
            Kind::KvantWrites => kvant::open(dir, setup, CompactionGoal::Writes),
            Kind::RocksDb => rocksdb::open(dir, setup),
            Kind::LevelDb => leveldb::open(dir, setup),
            Kind::Fjall => fjall::open(dir, setup),
            Kind::Lmdb => lmdb::open(dir, setup),
            Kind::Redb => redb::open(dir, setup),
        }
    }
}

/// What every engine is given.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Setup {
    /// Memory for the block cache and two write buffers, in bytes.
    pub(crate) memory_bytes: u64,
    /// The data does not fit into the machine's memory, or its part of it.
    pub(crate) reads_from_disk: bool,
    /// RocksDB's shared library.
    pub(crate) rocksdb: PathBuf,
}

impl Setup {
    /// The block cache of the peers: two thirds of the memory.
    pub(crate) fn cache_bytes(&self) -> usize {
        (self.memory_bytes / 3 * 2) as usize
    }

    /// Each of the peers' two write buffers: a sixth of the memory.
    pub(crate) fn write_buffer_bytes(&self) -> usize {
        (self.memory_bytes / 6) as usize
    }
}
