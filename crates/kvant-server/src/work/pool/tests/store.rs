//! A store whose behaviour the keys select.

use crate::store::{
    Capability, Completion, LocalStore, Lookup, ReadTrace, Records, Store, Write, WriteHealth,
};
use bytes::Bytes;
use kvant_base::{Error, ErrorKind, Result};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// The value of every key is the key; a range has as many records as its start says. The first byte
/// of the first key selects the outcome of writes: `s`talled, `n`o space, `l`ater (on
/// [`FakeStore::complete`]), on another `t`hread, `d`ropped at once or `f`orgotten later; all
/// others are done at once.
#[derive(Default)]
pub(crate) struct FakeStore {
    pub(crate) read_count: AtomicU64,
    pub(crate) written: Mutex<Vec<Write>>,
    later: Mutex<Vec<(u8, Completion)>>,
}

impl FakeStore {
    /// Completes the writes that come later.
    pub(crate) fn complete(&self) {
        let later = std::mem::take(&mut *self.later.lock().unwrap());
        for (kind, done) in later {
            match kind {
                b'f' => drop(done),
                _ => done.complete(Ok(())),
            }
        }
    }
}

impl Store for FakeStore {
    fn name(&self) -> &'static str {
        "fake"
    }

    fn has(&self, _capability: Capability) -> bool {
        true
    }

    fn range(
        &self,
        start: &[u8],
        _end: Option<&[u8]>,
        _count_max: u64,
    ) -> Result<Box<dyn Records>> {
        Ok(Box::new(EmptyRecords(std::str::from_utf8(start).unwrap().parse().unwrap())))
    }

    fn stats_json(&self) -> serde_json::Result<serde_json::Value> {
        Ok(serde_json::Value::Null)
    }

    fn write_metrics(&self, _out: &mut String) {}

    fn write_health(&self) -> WriteHealth {
        WriteHealth::Good
    }

    fn close(&self) -> Result<()> {
        Ok(())
    }
}

impl LocalStore for FakeStore {
    fn get(&self, key: &[u8], _block_bytes_max: u32, trace: &mut ReadTrace) -> Result<Lookup> {
        self.read_count.fetch_add(1, Ordering::Relaxed);
        trace.block_count += 1;
        Ok(Lookup::Known(Some(Bytes::copy_from_slice(key))))
    }

    fn submit(&self, writes: &mut dyn Iterator<Item = &Write>, done: Completion) {
        let writes: Vec<Write> = writes.cloned().collect();
        let kind = writes[0].key[0];
        if kind == b's' {
            return done.complete(Err(Error::new(ErrorKind::Stalled, "stalled")));
        }
        self.written.lock().unwrap().extend(writes);
        match kind {
            b'n' => done.complete(Err(Error::new(ErrorKind::NoSpace, "full"))),
            b'l' | b'f' => self.later.lock().unwrap().push((kind, done)),
            b't' => drop(std::thread::spawn(move || done.complete(Ok(())))),
            b'd' => drop(done),
            _ => done.complete(Ok(())),
        }
    }

    fn try_get(
        &self,
        _key: &[u8],
        _buffer: Option<&mut Vec<u8>>,
        _trace: &mut ReadTrace,
    ) -> Result<Lookup> {
        unreachable!("workers read from the disk")
    }

    fn on_writable(&self, _wake: Box<dyn FnOnce() + Send>) {
        unreachable!("selectors wait for stalls")
    }

    fn stall(&self) -> Option<&'static str> {
        None
    }
}

/// Records without key and value.
struct EmptyRecords(u64);

impl Records for EmptyRecords {
    fn next(&mut self) -> Result<Option<(&[u8], &[u8])>> {
        let record: Option<(&[u8], &[u8])> = (self.0 > 0).then_some((b"", b""));
        self.0 = self.0.saturating_sub(1);
        Ok(record)
    }

    fn trace(&self) -> ReadTrace {
        ReadTrace::default()
    }
}
