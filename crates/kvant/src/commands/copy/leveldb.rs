//! Records of a directory of the engine `leveldb`.

use super::directory::Directories;
use super::records::{Record, Records, Source, Target};
use crate::commands::leveldb;
use kvant_base::{Error, MemoryBudget, Result};
use kvant_leveldb::{LevelDb, Loader, Options, Range, Resources};
use std::path::Path;
use std::sync::Arc;

impl Directories<'_> {
    fn leveldb_options(&self) -> Options {
        Options { memory_bytes: self.memory_bytes, ..leveldb::options(self.settings) }
    }

    pub(super) fn open_leveldb(&self, dir: &Path) -> Result<Box<dyn Source>> {
        let memory = MemoryBudget::new(self.memory_bytes);
        let resources = Resources { memory, log: Arc::clone(&self.log) };
        let options = self.leveldb_options();
        Ok(Box::new(LevelDb::open(self.env.clone(), dir, options, resources)?))
    }

    pub(super) fn leveldb_target(&self, dir: &Path) -> Result<Box<dyn Target>> {
        let loader = Loader::reopen(self.env, dir, &self.leveldb_options())?;
        Ok(Box::new(LevelDbTarget { loader, forgets_ttl: self.forgets_ttl }))
    }
}

impl Source for LevelDb {
    fn read(&self, start: &[u8], end: Option<&[u8]>) -> Result<Box<dyn Records + '_>> {
        Ok(Box::new(self.range(start, end)?))
    }
}

impl Records for Range {
    fn next(&mut self) -> Result<Option<Record<'_>>> {
        let record = Range::next(self)?;
        Ok(record.map(|(key, value)| Record { key, value, expires_at_ms: None }))
    }
}

struct LevelDbTarget {
    loader: Loader,
    forgets_ttl: bool,
}

impl Target for LevelDbTarget {
    fn put(&mut self, record: Record<'_>) -> Result<()> {
        if record.expires_at_ms.is_some() && !self.forgets_ttl {
            let key = record.key.escape_ascii();
            return Err(Error::invalid(format!(
                "the record `{key}` has a time to live, which LevelDB cannot keep: with \
                 --forget-ttl such records are copied and never expire"
            )));
        }
        self.loader.put(record.key, record.value)
    }

    fn finish(self: Box<Self>) -> Result<()> {
        self.loader.finish().map(drop)
    }
}
