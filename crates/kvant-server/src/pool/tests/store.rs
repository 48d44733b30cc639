//! A store that answers as each key says.

use crate::stores::{Completion, Records, Store, Write};
use bytes::Bytes;
use kvant_base::{Error, ErrorKind, Result};
use kvant_engine::{Lookup, ReadTrace, WriteHealth};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// The value of every key is the key. What happens to writes is in the first byte of the first key:
/// `s`talled, `n`o space, `l`ater (as soon as somebody asks for it), on another `t`hread, `d`ropped
/// at once or `f`orgotten later; else they are done at once.
#[derive(Default)]
pub(super) struct FakeStore {
    pub(super) read_count: AtomicU64,
    pub(super) written: Mutex<Vec<Write>>,
    later: Mutex<Vec<(u8, Completion)>>,
}

impl FakeStore {
    /// Completes what was put off.
    pub(super) fn complete(&self) {
        let later = std::mem::take(&mut *self.later.lock().unwrap());
        for (kind, done) in later {
            match kind {
                b'f' => drop(done),
                _ => done(Ok(())),
            }
        }
    }
}

impl Store for FakeStore {
    fn get(&self, key: &[u8], trace: &mut ReadTrace) -> Result<Option<Bytes>> {
        self.read_count.fetch_add(1, Ordering::Relaxed);
        trace.block_count += 1;
        Ok(Some(Bytes::copy_from_slice(key)))
    }

    fn submit(&self, writes: &mut dyn Iterator<Item = &Write>, done: Completion) -> Result<()> {
        let writes: Vec<Write> = writes.cloned().collect();
        let kind = writes[0].key[0];
        match kind {
            b's' => return Err(Error::new(ErrorKind::Stalled, "stalled")),
            b'n' => done(Err(Error::new(ErrorKind::NoSpace, "full"))),
            b'l' | b'f' => self.later.lock().unwrap().push((kind, done)),
            b't' => drop(std::thread::spawn(move || done(Ok(())))),
            b'd' => drop(done),
            _ => done(Ok(())),
        }
        self.written.lock().unwrap().extend(writes);
        Ok(())
    }

    fn try_get(&self, _key: &[u8], _trace: &mut ReadTrace) -> Result<Lookup> {
        unreachable!("workers read from the disk")
    }

    fn on_writable(&self, _wake: Box<dyn FnOnce() + Send>) {
        unreachable!("selectors wait for stalls")
    }

    fn stall(&self) -> Option<&'static str> {
        None
    }

    fn range(&self, _start: &[u8], _end: Option<&[u8]>) -> Result<Box<dyn Records>> {
        unreachable!("the tests' ranges are their own")
    }

    fn stats_json(&self) -> serde_json::Result<serde_json::Value> {
        Ok(serde_json::Value::Null)
    }

    fn write_metrics(&self, _out: &mut String) {}

    fn write_health(&self) -> WriteHealth {
        WriteHealth::Good
    }

    fn flush(&self) -> Result<()> {
        Ok(())
    }

    fn compact(&self) -> Result<()> {
        Ok(())
    }

    fn checkpoint(&self, _dir: &Path) -> Result<()> {
        Ok(())
    }

    fn close(&self) -> Result<()> {
        Ok(())
    }
}
