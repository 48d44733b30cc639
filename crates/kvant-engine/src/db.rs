//! The database. (Interface sketch: bodies follow.)

use crate::options::Options;
use crate::stats::{StallReason, Stats};
use bytes::Bytes;
use kvant_base::{MemoryBudget, Result};
use kvant_env::Env;
use std::path::Path;
use std::sync::Arc;

/// Where recovery is; shared with whoever shows it.
#[derive(Debug, Default)]
pub struct RecoveryProgress {
    pub done_bytes: std::sync::atomic::AtomicU64,
    pub total_bytes: std::sync::atomic::AtomicU64,
}

impl RecoveryProgress {
    /// Whole per cent done: 0..=100.
    pub fn per_cent(&self) -> u64 {
        unimplemented!()
    }
}

/// Operations that are committed together: all or none of them survives.
#[derive(Default)]
pub struct WriteBatch {}

impl WriteBatch {
    pub fn new() -> WriteBatch {
        unimplemented!()
    }
    /// Gives `key` a value; `expires_at_ms` is wall time in milliseconds since 1970.
    pub fn put(&mut self, _key: &[u8], _value: &[u8], _expires_at_ms: Option<u64>) {
        unimplemented!()
    }
    pub fn delete(&mut self, _key: &[u8]) {
        unimplemented!()
    }
    /// Operations in the batch.
    pub fn len(&self) -> usize {
        unimplemented!()
    }
    pub fn is_empty(&self) -> bool {
        unimplemented!()
    }
    /// Encoded size.
    pub fn bytes(&self) -> usize {
        unimplemented!()
    }
}

/// Called exactly once with the outcome of a submitted batch, on the submitting thread or on the log's sync thread.
pub type Completion = Box<dyn FnOnce(Result<()>) + Send>;

/// A database; clones share it.
#[derive(Clone)]
pub struct Db {}

impl Db {
    /// Opens the database in `dir`, creating it if there is none, and recovers it.
    pub fn open(_env: Env, _dir: &Path, _options: Options, _memory: Arc<MemoryBudget>, _progress: Arc<RecoveryProgress>) -> Result<Db> {
        unimplemented!()
    }
    /// The newest value of `key`; `None` when absent, deleted or expired.
    pub fn get(&self, _key: &[u8]) -> Result<Option<Bytes>> {
        unimplemented!()
    }
    /// Commits a batch and waits until the sync level is reached; waits out stalls.
    pub fn write(&self, _batch: WriteBatch) -> Result<()> {
        unimplemented!()
    }
    /// Commits a batch without ever waiting for an fsync or a stall: for event loops. `Ok(())`: `done` has been or will be called.
    /// `Err` gives the batch back untouched; `ErrorKind::Stalled`: register with [`Db::on_writable`], then try again.
    pub fn submit(&self, _batch: WriteBatch, _done: Completion) -> std::result::Result<(), (kvant_base::Error, WriteBatch)> {
        unimplemented!()
    }
    /// Calls `wake` once as soon as a stalled write may succeed (at once when it may already), on whatever thread ends the stall.
    pub fn on_writable(&self, _wake: Box<dyn FnOnce() + Send>) {
        unimplemented!()
    }
    /// What would stall a write now.
    pub fn stall(&self) -> Option<StallReason> {
        unimplemented!()
    }
    /// Records with `start <= key`, and `key < end` where an end is given, in key order, from one consistent snapshot.
    pub fn range(&self, _start: &[u8], _end: Option<&[u8]>) -> Result<RangeIter> {
        unimplemented!()
    }
    /// A consistent view that stays as it is whatever is written later.
    pub fn snapshot(&self) -> Snapshot {
        unimplemented!()
    }
    /// Writes the memtables to tables and waits for it.
    pub fn flush(&self) -> Result<()> {
        unimplemented!()
    }
    /// Compacts everything into the last level and waits for it.
    pub fn compact(&self) -> Result<()> {
        unimplemented!()
    }
    /// Makes a copy that shares tables by hard links in `dir`, which must not exist, on the same file system.
    pub fn checkpoint(&self, _dir: &Path) -> Result<()> {
        unimplemented!()
    }
    pub fn stats(&self) -> Stats {
        unimplemented!()
    }
    /// The first cause, when writes are fenced.
    pub fn fenced(&self) -> Option<kvant_base::Error> {
        unimplemented!()
    }
    /// Syncs the log and stops background work. Later calls fail with `ErrorKind::Closed`.
    pub fn close(&self) -> Result<()> {
        unimplemented!()
    }
}

/// A consistent view.
pub struct Snapshot {}

impl Snapshot {
    pub fn get(&self, _key: &[u8]) -> Result<Option<Bytes>> {
        unimplemented!()
    }
    pub fn range(&self, _start: &[u8], _end: Option<&[u8]>) -> Result<RangeIter> {
        unimplemented!()
    }
}

/// One record of a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    pub key: &'a [u8],
    pub value: &'a [u8],
}

/// A range being read. `Send`: it may be moved between threads from call to call.
pub struct RangeIter {}

impl RangeIter {
    /// The next record, or `None` at the end of the range.
    pub fn next(&mut self) -> Result<Option<Record<'_>>> {
        unimplemented!()
    }
}
