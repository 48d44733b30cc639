//! Records of a directory of this machine, of the engine `lsm` or `leveldb`.
//!
//! Invariant of targets: records are written and synced in key order, in batches. So the last key
//! of an unfinished target is where the copy goes on, whatever ended it: there are no gaps before.

use super::records::{Record, Records, Source, Target};
use crate::settings::Settings;
use kvant_base::log::Log;
use kvant_base::{Error, ErrorKind, Events, MemoryBudget, Result, limits};
use kvant_engine::{Db, RangeIter, SyncLevel, WriteBatch};
use kvant_env::Env;
use std::path::Path;
use std::sync::Arc;

/// Keys and values that are written and synced together.
const BATCH_BYTES: usize = 4 << 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Engine {
    Lsm,
    LevelDb,
}

/// How directories are opened.
pub(super) struct Directories<'a> {
    pub(super) env: &'a Env,
    pub(super) log: Arc<dyn Log>,
    pub(super) settings: &'a Settings,
    /// Of each directory.
    pub(super) memory_bytes: u64,
    #[cfg_attr(not(feature = "leveldb"), expect(dead_code, reason = "only LevelDB has no ttl"))]
    pub(super) forgets_ttl: bool,
}

impl Directories<'_> {
    /// The engine of a directory, by its files.
    pub(super) fn engine_of(&self, dir: &Path) -> Result<Engine> {
        #[cfg(feature = "leveldb")]
        if kvant_leveldb::is_database(&*self.env.fs, dir)? {
            return Ok(Engine::LevelDb);
        }
        crate::commands::db::require_database(self.env, dir)?;
        Ok(Engine::Lsm)
    }

    /// Opens a directory to read it.
    pub(super) fn open(&self, dir: &Path, engine: Engine) -> Result<Box<dyn Source>> {
        let opened: Result<Box<dyn Source>> = match engine {
            Engine::Lsm => self.open_lsm(dir).map(|db| Box::new(db) as Box<dyn Source>),
            #[cfg(feature = "leveldb")]
            Engine::LevelDb => self.open_leveldb(dir),
            #[cfg(not(feature = "leveldb"))]
            Engine::LevelDb => Err(not_built(dir)),
        };
        opened.map_err(|error| match error.kind() {
            ErrorKind::Locked => {
                let what = format!(
                    "{}; a server that is running can be copied by its address, as http://127.0.0.1:8080",
                    error.message()
                );
                Error::new(ErrorKind::Locked, what).with_file(dir)
            }
            _ => error,
        })
    }

    /// Opens a directory to write it, which may have records of an earlier attempt.
    pub(super) fn target(&self, dir: &Path, engine: Engine) -> Result<Box<dyn Target>> {
        match engine {
            Engine::Lsm => {
                let db = self.open_lsm(dir)?;
                Ok(Box::new(LsmTarget { db, batch: WriteBatch::new(), batch_bytes: 0 }))
            }
            #[cfg(feature = "leveldb")]
            Engine::LevelDb => self.leveldb_target(dir),
            #[cfg(not(feature = "leveldb"))]
            Engine::LevelDb => Err(not_built(dir)),
        }
    }

    fn open_lsm(&self, dir: &Path) -> Result<Db> {
        let mut options = kvant_engine::Options::for_memory(self.memory_bytes);
        options.compression.fill(self.settings.compression);
        options.sync = SyncLevel::Always;
        options.value_bytes_max = (self.memory_bytes / 4).min(limits::VALUE_BYTES_MAX_LIMIT);
        let resources = kvant_engine::Resources {
            memory: MemoryBudget::new(self.memory_bytes),
            log: Arc::clone(&self.log),
            events: Events::new(1),
            progress: Arc::default(),
        };
        Db::open(self.env.clone(), dir, options, resources)
    }
}

impl Source for Db {
    fn read(&self, start: &[u8], end: Option<&[u8]>) -> Result<Box<dyn Records + '_>> {
        Ok(Box::new(self.range(start, end)?))
    }
}

impl Records for RangeIter {
    fn next(&mut self) -> Result<Option<Record<'_>>> {
        let record = RangeIter::next(self)?;
        Ok(record.map(|record| Record {
            key: record.key,
            value: record.value,
            expires_at_ms: record.expires_at_ms,
        }))
    }
}

struct LsmTarget {
    db: Db,
    batch: WriteBatch,
    batch_bytes: usize,
}

impl Target for LsmTarget {
    fn put(&mut self, record: Record<'_>) -> Result<()> {
        self.batch.put(record.key, record.value, record.expires_at_ms);
        self.batch_bytes += record.key.len() + record.value.len();
        if self.batch_bytes < BATCH_BYTES {
            return Ok(());
        }
        self.batch_bytes = 0;
        self.db.write(std::mem::take(&mut self.batch))
    }

    fn finish(self: Box<Self>) -> Result<()> {
        self.db.write(self.batch)?;
        self.db.close()
    }
}

#[cfg(not(feature = "leveldb"))]
fn not_built(dir: &Path) -> Error {
    Error::invalid("this program was built without the engine `leveldb`").with_file(dir)
}
