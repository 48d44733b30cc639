//! Google's LevelDB (`kvant-leveldb`), as the server sees it.
//!
//! It has no time to live: LevelDB stores keys and values as they are, without room for a moment of
//! expiry. LevelDB does not say whether a read needs the disk, so with `--dispatch hybrid` reads go
//! to workers for a second after one that took long.

use super::read_pace::ReadPace;
use super::{
    Capability, Completion, LocalStore, Lookup, ReadTrace, Records, Store, Write, WriteHealth,
};
use crate::http::metrics_text::{family, metric};
use bytes::Bytes;
use kvant_base::Result;
use kvant_env::Clock;
use kvant_leveldb::{Batch, LevelDb, LevelStats, Range};
use std::path::Path;
use std::sync::Arc;

/// A [`LevelDb`] behind the HTTP interface.
pub struct LevelDbStore {
    db: LevelDb,
    clock: Arc<dyn Clock>,
    get_pace: ReadPace,
}

impl LevelDbStore {
    /// Serves `db`.
    pub fn new(db: LevelDb, clock: Arc<dyn Clock>) -> LevelDbStore {
        LevelDbStore { db, clock, get_pace: ReadPace::default() }
    }
}

impl Store for LevelDbStore {
    fn name(&self) -> &'static str {
        "leveldb"
    }

    fn has(&self, capability: Capability) -> bool {
        !matches!(capability, Capability::Ttl | Capability::Pause)
    }

    fn range(&self, start: &[u8], end: Option<&[u8]>, _count_max: u64) -> Result<Box<dyn Records>> {
        Ok(Box::new(self.db.range(start, end)?))
    }

    fn stats_json(&self) -> serde_json::Result<serde_json::Value> {
        match self.db.stats() {
            Ok(stats) => serde_json::to_value(stats),
            Err(closed) => Ok(serde_json::json!({ "closed": closed.to_string() })),
        }
    }

    fn write_metrics(&self, out: &mut String) {
        // A closed database has no figures.
        let Ok(stats) = self.db.stats() else { return };
        for (name, help, count) in [
            ("writes", "Operations committed.", stats.operation_count),
            ("write_groups", "Groups that shared a write of the log.", stats.group_count),
            ("user_bytes", "Key and value bytes given by users.", stats.user_bytes),
            ("log_syncs", "Syncs of all logs, beside LevelDB's own.", stats.log_sync_count),
            (
                "log_sync_us",
                "Microseconds in syncs of all logs, beside LevelDB's own.",
                stats.log_sync_us_total,
            ),
        ] {
            metric(out, &format!("kvant_engine_{name}_total"), "counter", help, count);
        }
        let memory_bytes = stats.approximate_memory_bytes;
        for (name, help, value) in [
            ("memory_bytes", "Memtables and block cache, by LevelDB's estimate.", memory_bytes),
            ("queued_bytes", "Bytes that wait to be written.", stats.queued_bytes as u64),
            (
                "fenced",
                "1 while writes are refused after a failed one.",
                stats.fenced.is_some().into(),
            ),
            ("disk_full", "1 while puts find no space.", stats.disk_full.into()),
        ] {
            metric(out, &format!("kvant_engine_{name}"), "gauge", help, value);
        }
        let rows = |figure: fn(&LevelStats) -> u64| {
            let row =
                move |level: &LevelStats| (format!("level=\"{}\"", level.level), figure(level));
            stats.levels.iter().map(row)
        };
        let (tables, bytes) = ("kvant_engine_level_tables", "kvant_engine_level_bytes");
        family(out, tables, "gauge", "Tables of a level.", rows(|level| level.table_count));
        let help = "Size of a level, in whole mebibytes.";
        family(out, bytes, "gauge", help, rows(|level| level.mebibytes << 20));
    }

    fn write_health(&self) -> WriteHealth {
        match self.db.write_health() {
            kvant_leveldb::WriteHealth::Good => WriteHealth::Good,
            kvant_leveldb::WriteHealth::NoSpace => WriteHealth::NoSpace,
            kvant_leveldb::WriteHealth::Fenced(cause) => WriteHealth::Fenced(cause),
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

    fn close(&self) -> Result<()> {
        self.db.close()
    }
}

impl LocalStore for LevelDbStore {
    /// A value has no length before it is read: its memory is reserved afterwards.
    fn get(&self, key: &[u8], _block_bytes_max: u32, _trace: &mut ReadTrace) -> Result<Lookup> {
        let found = self.get_pace.observe(&*self.clock, || self.db.get(key))?;
        Ok(Lookup::Known(found.map(Bytes::from_owner)))
    }

    fn try_get(
        &self,
        key: &[u8],
        _buffer: Option<&mut Vec<u8>>,
        trace: &mut ReadTrace,
    ) -> Result<Lookup> {
        if self.get_pace.is_quick(&*self.clock) {
            self.get(key, u32::MAX, trace)
        } else {
            Ok(Lookup::NeedsDisk { block_bytes: 0 })
        }
    }

    fn submit(&self, writes: &mut dyn Iterator<Item = &Write>, done: Completion) {
        let mut batch = Batch::default();
        for write in writes {
            match &write.value {
                Some(value) => batch.put(&write.key, value),
                None => batch.delete(&write.key),
            }
        }
        self.db.submit(batch, Box::new(move |result| done.complete(result)));
    }

    fn on_writable(&self, wake: Box<dyn FnOnce() + Send>) {
        self.db.on_writable(wake);
    }

    fn stall(&self) -> Option<&'static str> {
        self.db.stall()
    }
}

impl Records for Range {
    fn next(&mut self) -> Result<Option<(&[u8], &[u8])>> {
        Range::next(self)
    }

    fn trace(&self) -> ReadTrace {
        ReadTrace::default()
    }
}
