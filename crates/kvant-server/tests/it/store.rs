//! A store in memory, with injected faults.

use bytes::Bytes;
use kvant_base::{Error, ErrorKind, Result};
use kvant_env::Clock;
use kvant_server::{
    Capability, Completion, LocalStore, Lookup, ReadTrace, Records, Store, Write, WriteHealth,
};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

type Map = BTreeMap<Vec<u8>, (Bytes, Option<u64>)>;

/// Injected faults.
#[derive(Default)]
pub(crate) struct Faults {
    /// Writes meet a stall until [`FaultyStore::end_stall`].
    pub(crate) stalled: AtomicBool,
    /// Batches with a put in them fail for want of space.
    pub(crate) disk_full: AtomicBool,
    /// The next batch fails in its fsync; later ones are fenced.
    pub(crate) fsync_fails: AtomicBool,
    /// Completions are called on another thread.
    pub(crate) completes_elsewhere: AtomicBool,
    /// Reading this key fails with corruption.
    pub(crate) damaged_key: Mutex<Option<Vec<u8>>>,
}

pub(crate) struct FaultyStore {
    pub(crate) faults: Faults,
    pub(crate) batches: AtomicU64,
    pub(crate) reads: AtomicU64,
    /// Locked while a test blocks reads.
    reading: Mutex<()>,
    /// The same for ranges.
    ranging: Mutex<()>,
    pub(crate) ranges: AtomicU64,
    pub(crate) checkpoints: Mutex<Vec<PathBuf>>,
    pub(crate) closed: AtomicBool,
    clock: Arc<dyn Clock>,
    map: Mutex<Arc<Map>>,
    wakes: Mutex<Vec<Box<dyn FnOnce() + Send>>>,
    fenced: Mutex<Option<Error>>,
}

impl FaultyStore {
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Arc<FaultyStore> {
        Arc::new(FaultyStore {
            faults: Faults::default(),
            batches: AtomicU64::new(0),
            reads: AtomicU64::new(0),
            reading: Mutex::default(),
            ranging: Mutex::default(),
            ranges: AtomicU64::new(0),
            checkpoints: Mutex::default(),
            closed: AtomicBool::new(false),
            clock,
            map: Mutex::default(),
            wakes: Mutex::default(),
            fenced: Mutex::default(),
        })
    }

    /// Blocks reads while the guard lives.
    pub(crate) fn hold_reads(&self) -> MutexGuard<'_, ()> {
        self.reading.lock().unwrap()
    }

    /// Blocks ranges while the guard lives.
    pub(crate) fn hold_ranges(&self) -> MutexGuard<'_, ()> {
        self.ranging.lock().unwrap()
    }

    /// Waits until `count` reads have begun.
    pub(crate) fn wait_for_reads(&self, count: u64) {
        while self.reads.load(Ordering::SeqCst) < count {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
    }

    /// Ends a stall and wakes the writes that wait.
    pub(crate) fn end_stall(&self) {
        self.faults.stalled.store(false, Ordering::SeqCst);
        let wakes = std::mem::take(&mut *self.wakes.lock().unwrap());
        wakes.into_iter().for_each(|wake| wake());
    }

    pub(crate) fn has_key(&self, key: &[u8]) -> bool {
        self.map().contains_key(key)
    }

    fn map(&self) -> MutexGuard<'_, Arc<Map>> {
        self.map.lock().unwrap()
    }

    fn outcome(&self, has_put: bool) -> Result<()> {
        if self.faults.disk_full.load(Ordering::SeqCst) && has_put {
            return Err(Error::new(ErrorKind::NoSpace, "the test's disk is full"));
        }
        if self.faults.fsync_fails.swap(false, Ordering::SeqCst) {
            *self.fenced.lock().unwrap() =
                Some(Error::new(ErrorKind::Fenced, "the test's fsync failed"));
            return Err(Error::new(ErrorKind::OutcomeUnknown, "the test's fsync failed"));
        }
        Ok(())
    }
}

impl Store for FaultyStore {
    fn name(&self) -> &'static str {
        "faulty"
    }

    fn has(&self, _capability: Capability) -> bool {
        true
    }

    fn range(&self, start: &[u8], end: Option<&[u8]>, _count_max: u64) -> Result<Box<dyn Records>> {
        self.ranges.fetch_add(1, Ordering::SeqCst);
        drop(self.ranging.lock().unwrap());
        Ok(Box::new(MemoryRecords {
            map: Arc::clone(&self.map()),
            next: start.to_vec(),
            end: end.map(<[u8]>::to_vec),
            damaged_key: self.faults.damaged_key.lock().unwrap().clone(),
        }))
    }

    fn stats_json(&self) -> serde_json::Result<serde_json::Value> {
        Ok(serde_json::json!({ "records": self.map().len() }))
    }

    fn write_metrics(&self, out: &mut String) {
        out.push_str("kvant_test_store 1\n");
    }

    fn write_health(&self) -> WriteHealth {
        match self.fenced.lock().unwrap().clone() {
            Some(cause) => WriteHealth::Fenced(cause),
            None if self.faults.disk_full.load(Ordering::SeqCst) => WriteHealth::NoSpace,
            None => WriteHealth::Good,
        }
    }

    fn flush(&self) -> Result<()> {
        Ok(())
    }

    fn compact(&self) -> Result<()> {
        Ok(())
    }

    fn checkpoint(&self, dir: &Path) -> Result<()> {
        self.checkpoints.lock().unwrap().push(dir.to_path_buf());
        Ok(())
    }

    fn close(&self) -> Result<()> {
        self.closed.store(true, Ordering::SeqCst);
        Ok(())
    }
}

impl LocalStore for FaultyStore {
    fn get(&self, key: &[u8], _block_bytes_max: u32, trace: &mut ReadTrace) -> Result<Lookup> {
        self.try_get(key, None, trace)
    }

    fn try_get(
        &self,
        key: &[u8],
        _buffer: Option<&mut Vec<u8>>,
        _trace: &mut ReadTrace,
    ) -> Result<Lookup> {
        self.reads.fetch_add(1, Ordering::SeqCst);
        drop(self.reading.lock().unwrap());
        if self.faults.damaged_key.lock().unwrap().as_deref() == Some(key) {
            return Err(Error::corruption(Path::new("000007.table"), 4096, "block checksum"));
        }
        let now_ms = self.clock.wall_ms();
        let map = self.map();
        let found = map.get(key).filter(|(_, expiry)| expiry.is_none_or(|at| now_ms < at));
        Ok(Lookup::Known(found.map(|(value, _)| value.clone())))
    }

    fn stall(&self) -> Option<&'static str> {
        self.faults.stalled.load(Ordering::SeqCst).then_some("test")
    }

    fn submit(&self, writes: &mut dyn Iterator<Item = &Write>, done: Completion) {
        if self.faults.stalled.load(Ordering::SeqCst) {
            return done.complete(Err(Error::new(ErrorKind::Stalled, "the test stalls")));
        }
        if let WriteHealth::Fenced(cause) = self.write_health() {
            return done.complete(Err(cause));
        }
        self.batches.fetch_add(1, Ordering::SeqCst);
        let writes: Vec<Write> = writes.cloned().collect();
        let result = self.outcome(writes.iter().any(|write| write.value.is_some()));
        if result.is_ok() {
            let mut map = self.map();
            let map = Arc::make_mut(&mut map);
            for write in writes {
                match write.value {
                    // A copy: the original keeps a connection's whole read buffer alive.
                    Some(value) => {
                        let value = Bytes::copy_from_slice(&value);
                        map.insert(write.key.to_vec(), (value, write.expires_at_ms))
                    }
                    None => map.remove(&*write.key),
                };
            }
        }
        if self.faults.completes_elsewhere.load(Ordering::SeqCst) {
            std::thread::spawn(move || done.complete(result));
        } else {
            done.complete(result);
        }
    }

    fn on_writable(&self, wake: Box<dyn FnOnce() + Send>) {
        if self.faults.stalled.load(Ordering::SeqCst) {
            self.wakes.lock().unwrap().push(wake);
        } else {
            wake();
        }
    }
}

struct MemoryRecords {
    map: Arc<Map>,
    next: Vec<u8>,
    end: Option<Vec<u8>>,
    damaged_key: Option<Vec<u8>>,
}

impl Records for MemoryRecords {
    fn trace(&self) -> ReadTrace {
        ReadTrace::default()
    }

    fn next(&mut self) -> Result<Option<(&[u8], &[u8])>> {
        let Some((key, (value, _))) = self.map.range(std::mem::take(&mut self.next)..).next()
        else {
            self.end = Some(Vec::new());
            return Ok(None);
        };
        if self.end.as_ref().is_some_and(|end| key >= end) {
            return Ok(None);
        }
        if self.damaged_key.as_ref() == Some(key) {
            return Err(Error::corruption(Path::new("000007.table"), 4096, "block checksum"));
        }
        self.next = [key, &b"\0"[..]].concat();
        Ok(Some((key, value)))
    }
}
