//! Kvant's own engine.

use super::{Completion, Records, Store, Write, lsm_metrics};
use bytes::Bytes;
use kvant_base::Result;
use kvant_engine::{Db, Lookup, RangeIter, ReadTrace, StallReason, WriteBatch, WriteHealth};
use std::path::Path;

/// A [`Db`] as the routes see it.
pub struct LsmStore {
    db: Db,
}

impl LsmStore {
    /// Serves `db`.
    pub fn new(db: Db) -> LsmStore {
        LsmStore { db }
    }
}

impl Store for LsmStore {
    fn get(&self, key: &[u8], trace: &mut ReadTrace) -> Result<Option<Bytes>> {
        self.db.get_traced(key, trace)
    }

    fn try_get(&self, key: &[u8], trace: &mut ReadTrace) -> Result<Lookup> {
        self.db.try_get(key, trace)
    }

    fn get_bounded(
        &self,
        key: &[u8],
        block_bytes_max: u32,
        trace: &mut ReadTrace,
    ) -> Result<Lookup> {
        self.db.get_bounded(key, block_bytes_max, trace)
    }

    fn stall(&self) -> Option<&'static str> {
        self.db.stall().map(StallReason::name)
    }

    fn submit(&self, writes: &mut dyn Iterator<Item = &Write>, done: Completion) -> Result<()> {
        let mut batch = WriteBatch::new();
        for write in writes {
            match &write.value {
                Some(value) => batch.put(&write.key, value, write.expires_at_ms),
                None => batch.delete(&write.key),
            }
        }
        self.db.submit(batch, done).map_err(|(error, _batch)| error)
    }

    fn on_writable(&self, wake: Box<dyn FnOnce() + Send>) {
        self.db.on_writable(wake);
    }

    fn range(&self, start: &[u8], end: Option<&[u8]>) -> Result<Box<dyn Records>> {
        Ok(Box::new(LsmRecords(self.db.range(start, end)?)))
    }

    fn stats_json(&self) -> serde_json::Result<serde_json::Value> {
        serde_json::to_value(self.db.stats())
    }

    fn write_metrics(&self, out: &mut String) {
        lsm_metrics::write(&self.db.stats(), out);
    }

    fn write_health(&self) -> WriteHealth {
        self.db.write_health()
    }

    fn flush(&self) -> Result<()> {
        self.db.flush()
    }

    fn compact(&self) -> Result<()> {
        self.db.compact()
    }

    fn checkpoint(&self, dir: &Path) -> Result<()> {
        self.db.checkpoint(dir)
    }

    fn close(&self) -> Result<()> {
        self.db.close()
    }
}

struct LsmRecords(RangeIter);

impl Records for LsmRecords {
    fn next(&mut self) -> Result<Option<(&[u8], &[u8])>> {
        Ok(self.0.next()?.map(|record| (record.key, record.value)))
    }

    fn trace(&self) -> ReadTrace {
        self.0.trace()
    }
}
