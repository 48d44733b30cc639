//! Writes a new database, record by record: checkpoints, and copies from other engines.
//!
//! Invariants:
//! 1. The directory of [`Loader::create`] is new: one that has any file is refused, and left as it
//!    is.
//! 2. [`Loader::reopen`] goes on in one that was left unfinished: whatever ended the attempt, it
//!    has the records up to one, and none after it.
//! 3. When [`Loader::finish`] has returned, all records are durable.
//!
//! Threads: the caller's, and LevelDB's own.

use crate::directory;
use crate::ffi::{Batch, Database, Tuning};
use crate::options::Options;
use crate::status;
use kvant_base::{Error, Result};
use kvant_env::Env;
use std::path::{Path, PathBuf};

/// Keys and values that are written together.
const BATCH_BYTES: usize = 1 << 20;

/// A key after all others, which is in no table: compacting there flushes the memtable only.
pub(crate) const AFTER_ALL_KEYS: &[u8] = &[0xff; kvant_base::limits::KEY_BYTES_MAX + 1];

/// A database that is being written. Dropping it before its end leaves a part of the records.
pub struct Loader {
    env: Env,
    dir: PathBuf,
    db: Database,
    batch: Batch,
    count: u64,
    /// Whether each batch is synced: so a part that is left has no gaps.
    syncs: bool,
}

impl Loader {
    /// A new database in `dir`, which is created, or exists and has no files.
    ///
    /// # Errors
    /// The directory has files; or LevelDB cannot create its own.
    pub fn create(env: &Env, dir: &Path, options: &Options) -> Result<Loader> {
        let fs = &*env.fs;
        let is_there = fs.exists(dir).map_err(|error| Error::io("look at", dir, error))?;
        if is_there {
            let files = fs.list(dir).map_err(|error| Error::io("list", dir, error))?;
            if !files.is_empty() {
                let what = format!("the directory is not empty: it has a file {}", files[0].name);
                return Err(Error::invalid(what).with_file(dir));
            }
        }
        directory::prepare(env, dir, false)?;
        let tuning = Tuning { is_new: true, ..options.tuning(true) };
        let db = Database::open(dir, &tuning).map_err(|text| status::error(dir, &text))?;
        let (env, dir) = (env.clone(), dir.to_path_buf());
        Ok(Loader { env, dir, db, batch: Batch::default(), count: 0, syncs: false })
    }

    /// The database in `dir`, which may have records of an earlier attempt, or a new one.
    ///
    /// # Errors
    /// As of [`crate::LevelDb::open`].
    pub fn reopen(env: &Env, dir: &Path, options: &Options) -> Result<Loader> {
        let is_there = directory::prepare(env, dir, false)?;
        let db = Database::open(dir, &options.tuning(!is_there));
        let db = db.map_err(|text| directory::name_owner(dir, status::error(dir, &text)))?;
        let (env, dir) = (env.clone(), dir.to_path_buf());
        Ok(Loader { env, dir, db, batch: Batch::default(), count: 0, syncs: true })
    }

    /// Adds a record.
    ///
    /// # Errors
    /// LevelDB cannot write: the copy has failed.
    pub fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.batch.put(key, value);
        self.count += 1;
        if self.batch.bytes() >= BATCH_BYTES {
            self.write()?;
        }
        Ok(())
    }

    fn write(&mut self) -> Result<()> {
        let written = self.db.write(&mut self.batch, self.syncs);
        self.batch.clear();
        written.map_err(|text| status::error(&self.dir, &text))
    }

    /// Makes all records durable; returns their count.
    ///
    /// # Errors
    /// LevelDB, or the operating system, cannot write: the copy has failed.
    pub fn finish(mut self) -> Result<u64> {
        self.write()?;
        // Tables are synced, and a log that LevelDB has left is not.
        self.db.compact(Some((AFTER_ALL_KEYS, AFTER_ALL_KEYS)));
        // The error of a failed flush comes with the next write, of nothing here.
        self.write()?;
        let Loader { env, dir, db, count, .. } = self;
        drop(db);
        directory::sync(&*env.fs, &dir)?;
        Ok(count)
    }
}
