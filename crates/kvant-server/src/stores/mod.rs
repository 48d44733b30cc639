//! What the routes need of a storage engine.
//!
//! Every call returns at once or after one read of the disk; none waits for an fsync, a stall or
//! another request, so that all of them may run on a selector (`--dispatch inline`). The exceptions
//! are the operator's calls, which say so.

use crate::key::Key;
use bytes::Bytes;
use kvant_base::Result;
use kvant_base::tag::Activity;
use kvant_engine::{Lookup, ReadTrace, WriteHealth};
use std::path::Path;

mod lsm;
mod lsm_metrics;

pub use lsm::LsmStore;

/// One write, as a request gave it.
#[derive(Clone, Debug)]
pub struct Write {
    /// Which key.
    pub key: Key,
    /// The new value; `None` deletes.
    pub value: Option<Bytes>,
    /// How long the value is to live.
    pub ttl_ms: Option<u64>,
    /// When the value expires, in wall milliseconds since 1970: stores look at this alone.
    pub expires_at_ms: Option<u64>,
}

impl Write {
    /// For whom profiles show it.
    pub(crate) fn activity(&self) -> Activity {
        match self.value {
            Some(_) => Activity::Put,
            None => Activity::Delete,
        }
    }

    /// Counts the time to live from `wall_ms`: from each try to submit the write anew, so that one
    /// that waited does not expire early.
    pub(crate) fn start_ttl(&mut self, wall_ms: u64) {
        // The clock shows whole milliseconds, rounded down: one more, or the last part of one would
        // be taken off.
        self.expires_at_ms = self.ttl_ms.map(|ttl_ms| wall_ms + ttl_ms + 1);
    }
}

/// Called exactly once with the outcome of submitted writes, on the submitting thread or on
/// another.
pub type Completion = Box<dyn FnOnce(Result<()>) + Send>;

/// Records of a range in key order, from one consistent snapshot.
pub trait Records: Send {
    /// The next record, key and value, or `None` at the end of the range.
    fn next(&mut self) -> Result<Option<(&[u8], &[u8])>>;

    /// What reading them has touched so far.
    fn trace(&self) -> ReadTrace;
}

/// A storage engine behind the HTTP interface.
pub trait Store: Send + Sync {
    /// The newest value of `key`; `None` when absent, deleted or expired. What the read touches is
    /// added to `trace`.
    fn get(&self, key: &[u8], trace: &mut ReadTrace) -> Result<Option<Bytes>>;

    /// As [`Store::get`], without waiting for the disk.
    fn try_get(&self, key: &[u8], trace: &mut ReadTrace) -> Result<Lookup>;

    /// As [`Store::get`], but blocks of the disk longer than `block_bytes_max` are left alone:
    /// [`Lookup::NeedsDisk`] says how much memory reading one takes, so that it can be reserved
    /// first.
    fn get_bounded(
        &self,
        key: &[u8],
        block_bytes_max: u32,
        trace: &mut ReadTrace,
    ) -> Result<Lookup> {
        // A store without blocks of a known length.
        let _unknown = block_bytes_max;
        self.get(key, trace).map(Lookup::Known)
    }

    /// Commits `writes` together: all or none of them. `Ok(())`: `done` has been or will be called
    /// when the sync level is reached.
    ///
    /// # Errors
    /// Nothing was written and `done` will not be called. `ErrorKind::Stalled`: register with
    /// [`Store::on_writable`] and try again.
    fn submit(&self, writes: &mut dyn Iterator<Item = &Write>, done: Completion) -> Result<()>;

    /// Calls `wake` once as soon as a stalled write may succeed (at once when it may already), on
    /// any thread.
    fn on_writable(&self, wake: Box<dyn FnOnce() + Send>);

    /// Why writes would wait now, in one word.
    fn stall(&self) -> Option<&'static str>;

    /// Records with `start <= key`, and `key < end` where an end is given.
    fn range(&self, start: &[u8], end: Option<&[u8]>) -> Result<Box<dyn Records>>;

    /// The engine's statistics, as the value of `engine` in `/v0/stats`.
    fn stats_json(&self) -> serde_json::Result<serde_json::Value>;

    /// Appends the engine's metrics in the Prometheus text format.
    fn write_metrics(&self, out: &mut String);

    /// Whether writes succeed, and why not.
    fn write_health(&self) -> WriteHealth;

    /// Writes what is in memory to tables. Waits for it.
    fn flush(&self) -> Result<()>;

    /// Compacts everything. Waits for it, perhaps for hours.
    fn compact(&self) -> Result<()>;

    /// Makes a consistent copy in `dir`, which must not exist. Waits for it. After an error there
    /// is nothing of it.
    fn checkpoint(&self, dir: &Path) -> Result<()>;

    /// Makes what was acknowledged durable and releases the data directory. Waits for it.
    fn close(&self) -> Result<()>;
}
