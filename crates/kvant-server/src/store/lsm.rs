//! The log-structured merge tree of `kvant-engine`, as the server sees it.

use super::{
    Capability, Completion, LocalStore, Lookup, ReadTrace, Records, Store, Write, WriteHealth,
    lsm_metrics,
};
use crate::memory::SMALL_BYTES;
use kvant_base::Result;
use kvant_engine::{Db, RangeIter, StallReason, Value, WriteBatch};
use std::path::Path;
use std::time::Duration;

/// A [`Db`] behind the HTTP interface.
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
    fn name(&self) -> &'static str {
        "lsm"
    }

    fn has(&self, _capability: Capability) -> bool {
        true
    }

    fn range(&self, start: &[u8], end: Option<&[u8]>, _count_max: u64) -> Result<Box<dyn Records>> {
        Ok(Box::new(self.db.range(start, end)?))
    }

    fn stats_json(&self) -> serde_json::Result<serde_json::Value> {
        serde_json::to_value(self.db.stats())
    }

    fn write_metrics(&self, out: &mut String) {
        lsm_metrics::write(&self.db.stats(), out);
    }

    fn write_health(&self) -> WriteHealth {
        match self.db.write_health() {
            kvant_engine::WriteHealth::Good => WriteHealth::Good,
            kvant_engine::WriteHealth::NoSpace => WriteHealth::NoSpace,
            kvant_engine::WriteHealth::Failing(cause) => WriteHealth::Failing(cause),
            kvant_engine::WriteHealth::Fenced(cause) => WriteHealth::Fenced(cause),
        }
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

    fn pause(&self, time: Duration) -> Result<bool> {
        self.db.pause_background(time)
    }

    fn close(&self) -> Result<()> {
        self.db.close()
    }
}

impl LocalStore for LsmStore {
    fn get(&self, key: &[u8], block_bytes_max: u32, trace: &mut ReadTrace) -> Result<Lookup> {
        let mut touched = kvant_engine::ReadTrace::default();
        let found = self.db.get_bounded(key, block_bytes_max, &mut touched);
        *trace = touched.into();
        found.map(Lookup::from)
    }

    #[inline]
    fn try_get(
        &self,
        key: &[u8],
        buffer: Option<&mut Vec<u8>>,
        trace: &mut ReadTrace,
    ) -> Result<Lookup> {
        let mut touched = kvant_engine::ReadTrace::default();
        let found = match buffer {
            Some(buffer) => {
                let appended_max = usize::try_from(SMALL_BYTES).unwrap_or(usize::MAX);
                let found = self.db.try_get_into(key, buffer, appended_max, &mut touched);
                found.map(Lookup::from)
            }
            None => self.db.try_get(key, &mut touched).map(Lookup::from),
        };
        *trace = touched.into();
        found
    }

    fn submit(&self, writes: &mut dyn Iterator<Item = &Write>, done: Completion) {
        let mut batch = WriteBatch::new();
        for write in writes {
            match &write.value {
                Some(value) => batch.put(&write.key, value, write.expires_at_ms),
                None => batch.delete(&write.key),
            }
        }
        let complete = Box::new(move |result| done.complete(result));
        if let Err(refused) = self.db.submit(batch, complete) {
            (refused.done)(Err(refused.error));
        }
    }

    fn on_writable(&self, wake: Box<dyn FnOnce() + Send>) {
        self.db.on_writable(wake);
    }

    fn stall(&self) -> Option<&'static str> {
        self.db.stall().map(StallReason::name)
    }
}

impl From<kvant_engine::Lookup> for Lookup {
    #[inline]
    fn from(found: kvant_engine::Lookup) -> Lookup {
        match found {
            kvant_engine::Lookup::Known(value) => Lookup::Known(value),
            kvant_engine::Lookup::NeedsDisk { block_bytes } => Lookup::NeedsDisk { block_bytes },
        }
    }
}

impl From<kvant_engine::Lookup<Value>> for Lookup {
    #[inline]
    fn from(found: kvant_engine::Lookup<Value>) -> Lookup {
        match found {
            kvant_engine::Lookup::Known(Some(Value::Appended)) => Lookup::Appended,
            kvant_engine::Lookup::Known(Some(Value::Bytes(value))) => Lookup::Known(Some(value)),
            kvant_engine::Lookup::Known(None) => Lookup::Known(None),
            kvant_engine::Lookup::NeedsDisk { block_bytes } => Lookup::NeedsDisk { block_bytes },
        }
    }
}

impl From<kvant_engine::ReadTrace> for ReadTrace {
    #[inline]
    fn from(touched: kvant_engine::ReadTrace) -> ReadTrace {
        ReadTrace {
            table_count: touched.table_count,
            block_count: touched.block_count,
            block_read_count: touched.block_read_count,
            block_read_bytes: touched.block_read_bytes,
            block_read_ns: touched.block_read_ns,
        }
    }
}

impl Records for RangeIter {
    fn next(&mut self) -> Result<Option<(&[u8], &[u8])>> {
        Ok(RangeIter::next(self)?.map(|record| (record.key, record.value)))
    }

    fn trace(&self) -> ReadTrace {
        RangeIter::trace(self).into()
    }
}
