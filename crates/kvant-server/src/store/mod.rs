//! The seam between the server and a storage engine.
//!
//! A [`LocalStore`] has the data on this machine: every call returns at once or after one read of
//! the disk; none waits for an fsync, a stall or another request, so that all of them may run on a
//! selector (`--dispatch inline`). A [`RemoteStore`] asks other machines: its calls return futures,
//! which selectors await, whatever `--dispatch` says. The operator's calls wait, and say so.
//!
//! Engines declare optional features as [`Capability`]. The server rejects a request that needs a
//! missing one.

use crate::key::Key;
use bytes::Bytes;
use kvant_base::tag::Activity;
use kvant_base::{Error, ErrorKind, Log, Result, named_enum};
use std::future::{self, Future};
use std::net::SocketAddr;
use std::ops::Deref;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

#[cfg(feature = "cassandra")]
mod cassandra;
#[cfg(feature = "leveldb")]
mod leveldb;
mod lsm;
mod lsm_metrics;
mod memory;
#[cfg(feature = "leveldb")]
mod read_pace;

#[cfg(feature = "cassandra")]
pub use cassandra::CassandraStore;
#[cfg(feature = "leveldb")]
pub use leveldb::LevelDbStore;
pub use lsm::LsmStore;
pub use memory::MemoryStore;

named_enum! {
    /// Something that an engine may or may not be able to do.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Capability {
        /// Acknowledged writes survive a restart.
        Persistence = "persistence",
        /// Values expire.
        Ttl = "ttl",
        /// Records are read in key order.
        Range = "range",
        /// All records of a range come from one moment.
        Snapshots = "snapshots",
        /// Copies of the data are made while it is in use.
        Checkpoint = "checkpoint",
        /// Data can be flushed and compacted on request.
        Compaction = "compaction",
        /// Background work can be paused on request.
        Pause = "pause",
    }
}

/// One write, as a request gave it.
#[derive(Clone, Debug)]
pub struct Write {
    /// The key.
    pub key: Key,
    /// The new value; `None` deletes.
    pub value: Option<Bytes>,
    /// How long the value is to live.
    pub ttl_ms: Option<u64>,
    /// When the value expires, in wall milliseconds since 1970. Engines read this field, not
    /// `ttl_ms`.
    pub expires_at_ms: Option<u64>,
}

impl Write {
    pub(crate) fn new(key: Key, value: Option<Bytes>, ttl_ms: Option<u64>) -> Write {
        Write { key, value, ttl_ms, expires_at_ms: None }
    }

    pub(crate) fn is_delete(&self) -> bool {
        self.value.is_none()
    }

    /// The activity under which profiles show the write.
    pub(crate) fn activity(&self) -> Activity {
        if self.is_delete() { Activity::Delete } else { Activity::Put }
    }

    /// Key and value bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.key.len() + self.value.as_ref().map_or(0, Bytes::len)
    }

    /// Counts the time to live from `wall_ms`. Called before each attempt to submit the write, so
    /// that a write that waited does not expire early.
    pub(crate) fn start_ttl(&mut self, wall_ms: u64) {
        // The clock rounds down to whole milliseconds: add one, or the value would live up to a
        // millisecond less.
        self.expires_at_ms = self.ttl_ms.map(|ttl_ms| wall_ms + ttl_ms + 1);
    }
}

/// Receives the outcome of submitted writes, exactly once and on any thread. An engine that drops
/// it instead leaves the outcome unknown, which is then reported.
pub struct Completion(Option<Box<dyn FnOnce(Result<()>) + Send>>);

impl Completion {
    /// Calls `done` with the outcome.
    pub fn new(done: impl FnOnce(Result<()>) + Send + 'static) -> Completion {
        Completion(Some(Box::new(done)))
    }

    /// Reports the outcome: whether the sync level is reached.
    pub fn complete(mut self, result: Result<()>) {
        if let Some(done) = self.0.take() {
            done(result);
        }
    }
}

impl Drop for Completion {
    fn drop(&mut self) {
        if let Some(done) = self.0.take() {
            let what = "the store dropped a write without an outcome";
            done(Err(Error::new(ErrorKind::OutcomeUnknown, what)));
        }
    }
}

/// What a bounded read found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lookup {
    /// The value; `None` when the key is absent, deleted or expired.
    Known(Option<Bytes>),
    /// The value was appended to the caller's buffer: only by [`LocalStore::try_get`].
    Appended,
    /// A block of this length has to be read from the disk first.
    NeedsDisk {
        /// Memory that reading it takes.
        block_bytes: u32,
    },
}

/// What a read touched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadTrace {
    /// Tables searched.
    pub table_count: u32,
    /// Data blocks searched.
    pub block_count: u32,
    /// Of these, read from the disk.
    pub block_read_count: u32,
    /// Bytes of the blocks read from the disk.
    pub block_read_bytes: u64,
    /// Time of the reads among them that could wait for the disk, in nanoseconds.
    pub block_read_ns: u64,
}

/// What a remote store is asked for.
pub type Pending<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// How a request to a remote store is to be done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RemoteAsk {
    /// Nodes that have to answer; `None`: the engine's default.
    pub ack_count: Option<u32>,
    /// Whether the other machines are to trace it.
    pub is_traced: bool,
}

/// How a request to a remote store has gone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RemoteCourse {
    /// The node that has answered, or was asked last.
    pub node: Option<SocketAddr>,
    /// How often the request was sent.
    pub attempt_count: u32,
    /// Whether a second read was answered before the first.
    pub second_read_won: bool,
    /// From the beginning until that node was asked.
    pub before_ns: u64,
    /// The number of its trace: [`RemoteStore::trace_json`].
    pub trace_id: Option<u128>,
}

/// Whether writes succeed.
#[derive(Clone, Debug)]
pub enum WriteHealth {
    /// As far as is known.
    Good,
    /// There is no space for puts; deletes still succeed.
    NoSpace,
    /// The last writes failed for this cause; the next may succeed.
    Failing(Error),
    /// Writes are refused until a restart, for this first cause.
    Fenced(Error),
    /// No request succeeds, because the cluster cannot be reached; it is tried again and again.
    Away(Error),
}

/// Records of a range in key order.
pub trait Records: Send {
    /// The next record, key and value, or `None` at the end of the range, or where
    /// [`Records::must_fetch`].
    fn next(&mut self) -> Result<Option<(&[u8], &[u8])>>;

    /// What reading them touched so far.
    fn trace(&self) -> ReadTrace;

    /// Whether the next record has to be fetched from another machine first.
    fn must_fetch(&self) -> bool {
        false
    }

    /// Bytes of records that were fetched and not read.
    fn held_bytes(&self) -> usize {
        0
    }

    /// The most that [`Records::held_bytes`] is likely to become.
    fn likely_bytes(&self) -> usize {
        0
    }

    /// Fetches the next records.
    fn fetch(&mut self) -> Pending<'_, Result<()>> {
        Box::pin(future::ready(Ok(())))
    }
}

/// The engine of a server.
#[derive(Clone)]
pub enum Backend {
    /// Has the data on this machine.
    Local(Arc<dyn LocalStore>),
    /// Asks other machines.
    Remote(Arc<dyn RemoteStore>),
}

impl Backend {
    /// The engine, if the data is on this machine.
    pub(crate) fn local(&self) -> Option<&Arc<dyn LocalStore>> {
        match self {
            Backend::Local(store) => Some(store),
            Backend::Remote(_) => None,
        }
    }

    /// Nodes that store each record.
    pub(crate) fn replica_count(&self) -> u32 {
        match self {
            Backend::Local(_) => 1,
            Backend::Remote(store) => store.replica_count(),
        }
    }
}

impl Deref for Backend {
    type Target = dyn Store;

    #[inline]
    fn deref(&self) -> &(dyn Store + 'static) {
        match self {
            Backend::Local(store) => &**store,
            Backend::Remote(store) => &**store,
        }
    }
}

/// A storage engine on this machine.
pub trait LocalStore: Store {
    /// The newest value of `key`. A block of the disk longer than `block_bytes_max` is not read:
    /// [`Lookup::NeedsDisk`] says how much memory to reserve first. `trace` receives what the read
    /// touches.
    fn get(&self, key: &[u8], block_bytes_max: u32, trace: &mut ReadTrace) -> Result<Lookup>;

    /// As [`LocalStore::get`], without waiting for the disk, as far as the engine knows. Where it
    /// has to copy the value, it may append it to `buffer`: [`Lookup::Appended`].
    fn try_get(
        &self,
        key: &[u8],
        buffer: Option<&mut Vec<u8>>,
        trace: &mut ReadTrace,
    ) -> Result<Lookup>;

    /// Commits `writes` together: all or none of them. `done` receives the outcome when the sync
    /// level is reached, or before this returns. `ErrorKind::Stalled`: nothing was written;
    /// register with [`LocalStore::on_writable`] and retry.
    fn submit(&self, writes: &mut dyn Iterator<Item = &Write>, done: Completion);

    /// Calls `wake` once as soon as a stalled write may succeed, on any thread; at once when it may
    /// already.
    fn on_writable(&self, wake: Box<dyn FnOnce() + Send>);

    /// Why a write would stall now, in one word.
    fn stall(&self) -> Option<&'static str>;
}

/// A storage engine on other machines. Every future resolves within the engine's own limit of time.
pub trait RemoteStore: Store {
    /// Nodes that store each record.
    fn replica_count(&self) -> u32;

    /// The nodes that can be reached and the consistency of requests: `cluster` in `/health`.
    fn health_json(&self) -> serde_json::Value;

    /// The newest value of `key`.
    ///
    /// # Errors
    /// `ErrorKind::TooFewReplicas`, `NoAnswer`, `Away`, `Overloaded`.
    fn get(
        &self,
        key: &[u8],
        ask: RemoteAsk,
    ) -> Pending<'static, (Result<Option<Bytes>>, RemoteCourse)>;

    /// Resolves when enough of the nodes that store the record have the write.
    ///
    /// # Errors
    /// As [`RemoteStore::get`]. After `TooFewReplicas` and `NoAnswer` the write may be there
    /// nevertheless, or appear later.
    fn write(&self, write: &Write, ask: RemoteAsk) -> Pending<'static, (Result<()>, RemoteCourse)>;

    /// Keeps connections of the thread that awaits this, which its requests use from then on, until
    /// this is dropped. Never resolves; what fails is told to `log` and tried again.
    fn keep_own_connections(&self, log: Arc<dyn Log>) -> Pin<Box<dyn Future<Output = ()>>>;

    /// A trace of the other machines, if it is one of the last: `trace` in `cluster` in `/v0/slow`.
    fn trace_json(&self, id: u128) -> Option<serde_json::Value>;
}

/// What engines of both kinds have.
pub trait Store: Send + Sync {
    /// The engine's name (`--engine`).
    fn name(&self) -> &'static str;

    /// Whether the engine has this capability. The result never changes.
    fn has(&self, capability: Capability) -> bool;

    /// Records with `start <= key`, and `key < end` where an end is given. The caller reads
    /// `count_max` of them at most.
    fn range(&self, start: &[u8], end: Option<&[u8]>, count_max: u64) -> Result<Box<dyn Records>>;

    /// The engine's statistics: the value of `engine` in `/v0/stats`.
    fn stats_json(&self) -> serde_json::Result<serde_json::Value>;

    /// Appends the engine's metrics in the Prometheus text format.
    fn write_metrics(&self, out: &mut String);

    /// Whether writes succeed, and why not.
    fn write_health(&self) -> WriteHealth;

    /// Writes what is in memory to tables, and waits for it ([`Capability::Compaction`]).
    fn flush(&self) -> Result<()> {
        Err(missing(self.name(), Capability::Compaction))
    }

    /// Compacts everything, and waits for it, perhaps for hours ([`Capability::Compaction`]).
    fn compact(&self) -> Result<()> {
        Err(missing(self.name(), Capability::Compaction))
    }

    /// Makes a consistent copy in `dir`, which must not exist, and waits for it
    /// ([`Capability::Checkpoint`]). After an error nothing of it is left.
    fn checkpoint(&self, dir: &Path) -> Result<()> {
        let _not_made = dir;
        Err(missing(self.name(), Capability::Checkpoint))
    }

    /// Lets flushes and compactions rest for `time`, from now ([`Capability::Pause`]). False if
    /// they rest already.
    fn pause(&self, time: Duration) -> Result<bool> {
        let _not_paused = time;
        Err(missing(self.name(), Capability::Pause))
    }

    /// Makes acknowledged writes durable and releases the data directory. Waits for it.
    fn close(&self) -> Result<()>;
}

fn missing(engine: &str, capability: Capability) -> Error {
    let what = format!("engine `{engine}` has no {}", capability.name());
    Error::new(ErrorKind::Unsupported, what)
}
