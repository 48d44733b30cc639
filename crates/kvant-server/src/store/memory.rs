//! A sorted map in memory (`--engine memory`): nothing survives the process.
//!
//! For tests, and to tell what a request costs without an engine. Beside the engine proper it shows
//! that the seam holds: it has no persistence, no time to live, no snapshots (a range is read in
//! pieces, each consistent in itself), no checkpoints, nothing to compact.
//!
//! Invariant: keys, values and [`RECORD_OVERHEAD_BYTES`] for each record are reserved in the memory
//! budget, at most half of it. A put beyond that fails with `NoSpace`; a delete never does.
//!
//! Threads: any; one lock, held while a batch is applied or some records are copied.

use super::{
    Capability, Completion, LocalStore, Lookup, ReadTrace, Records, Store, Write, WriteHealth,
};
use crate::http::metrics_text::metric;
use bytes::Bytes;
use kvant_base::lock::NamedMutex;
use kvant_base::{Consumer, Error, ErrorKind, MemoryBudget, Reservation, Result};
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

/// What the map adds to a record: its share of a node, and the allocation of key and value.
const RECORD_OVERHEAD_BYTES: u64 = 96;
/// Records that a range copies under one lock,
const RANGE_RECORDS: usize = 64;
/// and their bytes, but for the last record: a slow reader keeps them alive.
const RANGE_BYTES: usize = 64 << 10;

/// Records in memory.
pub struct MemoryStore {
    records: Arc<NamedMutex<SortedRecords>>,
}

struct SortedRecords {
    map: BTreeMap<Box<[u8]>, Bytes>,
    memory: Reservation,
    budget: Arc<MemoryBudget>,
    /// The last batch found no space.
    is_full: bool,
}

impl MemoryStore {
    /// An empty store, within half of `budget`.
    pub fn new(budget: Arc<MemoryBudget>) -> MemoryStore {
        let memory = budget.reserve(Consumer::Memtables, 0);
        let records = SortedRecords { map: BTreeMap::new(), memory, budget, is_full: false };
        MemoryStore { records: Arc::new(NamedMutex::new("memory_store", records)) }
    }
}

fn record_bytes(key: &[u8], value: &[u8]) -> u64 {
    key.len() as u64 + value.len() as u64 + RECORD_OVERHEAD_BYTES
}

impl SortedRecords {
    /// All of `writes`, or none of them: near the limit, puts of one turn fail together.
    fn apply(&mut self, writes: &[&Write]) -> Result<()> {
        let put_bytes: u64 = writes
            .iter()
            .filter_map(|write| Some(record_bytes(&write.key, write.value.as_ref()?)))
            .sum();
        let share_bytes = self.budget.limit_bytes() / 2;
        // Counted twice until the records are in the map, and only what they replace is too much.
        let put_memory = self.budget.try_reserve(Consumer::Memtables, put_bytes, share_bytes);
        self.is_full = put_memory.is_none() && put_bytes > 0;
        if self.is_full {
            let what = "the memory engine holds half of --memory, its limit";
            return Err(Error::new(ErrorKind::NoSpace, what));
        }
        let mut bytes = self.memory.bytes();
        for write in writes {
            let replaced = match &write.value {
                Some(value) => {
                    bytes += record_bytes(&write.key, value);
                    // A copy: the original keeps a whole read buffer alive.
                    self.map.insert((*write.key).into(), Bytes::copy_from_slice(value))
                }
                None => self.map.remove(&*write.key),
            };
            bytes -= replaced.map_or(0, |value| record_bytes(&write.key, &value));
        }
        drop(put_memory);
        self.memory.resize(bytes);
        Ok(())
    }
}

impl Store for MemoryStore {
    fn name(&self) -> &'static str {
        "memory"
    }

    fn has(&self, capability: Capability) -> bool {
        capability == Capability::Range
    }

    fn range(&self, start: &[u8], end: Option<&[u8]>, _count_max: u64) -> Result<Box<dyn Records>> {
        Ok(Box::new(MemoryRecords {
            records: Arc::clone(&self.records),
            from: Bound::Included(start.into()),
            // The map panics at an end before the start.
            end: end.map(|end| end.max(start).into()),
            copied: Vec::new().into_iter(),
            current: None,
        }))
    }

    fn stats_json(&self) -> serde_json::Result<serde_json::Value> {
        let records = self.records.lock();
        let (count, bytes) = (records.map.len(), records.memory.bytes());
        Ok(serde_json::json!({ "record_count": count, "memory_bytes": bytes }))
    }

    fn write_metrics(&self, out: &mut String) {
        let records = self.records.lock();
        metric(out, "kvant_engine_records", "gauge", "Records in memory.", records.map.len());
    }

    fn write_health(&self) -> WriteHealth {
        if self.records.lock().is_full { WriteHealth::NoSpace } else { WriteHealth::Good }
    }

    fn close(&self) -> Result<()> {
        Ok(())
    }
}

impl LocalStore for MemoryStore {
    fn get(&self, key: &[u8], _block_bytes_max: u32, trace: &mut ReadTrace) -> Result<Lookup> {
        self.try_get(key, None, trace)
    }

    fn try_get(
        &self,
        key: &[u8],
        _buffer: Option<&mut Vec<u8>>,
        _trace: &mut ReadTrace,
    ) -> Result<Lookup> {
        Ok(Lookup::Known(self.records.lock().map.get(key).cloned()))
    }

    fn submit(&self, writes: &mut dyn Iterator<Item = &Write>, done: Completion) {
        let writes: Vec<&Write> = writes.collect();
        let result = self.records.lock().apply(&writes);
        done.complete(result);
    }

    fn on_writable(&self, wake: Box<dyn FnOnce() + Send>) {
        wake();
    }

    fn stall(&self) -> Option<&'static str> {
        None
    }
}

struct MemoryRecords {
    records: Arc<NamedMutex<SortedRecords>>,
    /// Where the next copy starts.
    from: Bound<Box<[u8]>>,
    end: Option<Box<[u8]>>,
    copied: std::vec::IntoIter<(Box<[u8]>, Bytes)>,
    current: Option<(Box<[u8]>, Bytes)>,
}

impl MemoryRecords {
    fn copy_more(&mut self) {
        let end = self.end.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        let from = self.from.as_ref().map(|key| &**key);
        let records = self.records.lock();
        let mut bytes = 0;
        let range = records.map.range::<[u8], _>((from, end)).take(RANGE_RECORDS);
        let mut copied = Vec::new();
        for (key, value) in range {
            copied.push((key.clone(), value.clone()));
            bytes += key.len() + value.len();
            if bytes >= RANGE_BYTES {
                break;
            }
        }
        drop(records);
        if let Some((key, _)) = copied.last() {
            self.from = Bound::Excluded(key.clone());
        }
        self.copied = copied.into_iter();
    }
}

impl Records for MemoryRecords {
    fn next(&mut self) -> Result<Option<(&[u8], &[u8])>> {
        if self.copied.len() == 0 {
            self.copy_more();
        }
        self.current = self.copied.next();
        Ok(self.current.as_ref().map(|(key, value)| (&**key, &**value)))
    }

    fn trace(&self) -> ReadTrace {
        ReadTrace::default()
    }
}
