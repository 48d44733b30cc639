//! A selector's access to the store: whether a request is admitted, and which thread does its
//! storage work (`--dispatch`).
//!
//! - `inline`: the selector, always. A read that misses all caches blocks it for one disk access.
//! - `pool`: a worker, always.
//! - `hybrid`: the selector while no disk is waited for: reads of what is in memory, and writes,
//!   whose log goes to the page cache and whose fsyncs run elsewhere. Other reads and all ranges go
//!   to the workers.
//!
//! In every mode writes wait for fsyncs and stalls as futures ([`super::batcher`]), on no thread.
//!
//! Before a selector does storage work itself it checks its own lag ([`Lag`]); the pool's queue
//! judges the rest.
//!
//! Threads: belongs to one selector.

use super::batcher::Batcher;
use super::failure::Failure;
use super::lifecycle::Lifecycle;
use super::pool::{self, Done, GetRequest, Later, PoolReply, Port};
use super::range_reader::RangeReader;
use crate::admission::{Class, Lag};
use crate::config::{DispatchMode, ServerConfig};
use crate::http::Problem;
use crate::key::Key;
use crate::memory::{RequestMemory, SMALL_BYTES};
use crate::store::{Backend, LocalStore, Lookup, RemoteStore, Store, Write};
use crate::timing::{Meter, StorageWork};
use crate::turns::ReadBudget;
use kvant_base::{Error, ErrorKind, Level, Log, Reservation, Result};
use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

/// Blocks of the disk longer than this are read only after memory was reserved for them.
pub(super) const BLOCK_BYTES_UNCOUNTED: u32 = 64 << 10;

/// The result of a read, and its times. `NeedsDisk`: a block is longer than was allowed.
pub(super) struct Read {
    pub(super) result: std::result::Result<Lookup, Failure>,
    pub(super) work: StorageWork,
}

pub(super) enum Reading {
    Done(Read),
    /// A worker does it; [`Storage::finish_read`] takes its reply.
    Later(Later<GetRequest>),
}

/// A range whose next piece was read, or not, and the times.
pub(crate) struct Piece {
    pub(crate) reader: Box<RangeReader>,
    pub(crate) result: std::result::Result<(), Failure>,
    pub(crate) work: StorageWork,
}

pub(crate) struct Storage {
    pub(crate) config: Arc<ServerConfig>,
    pub(crate) meter: Rc<Meter>,
    pub(crate) memory: Arc<RequestMemory>,
    pub(crate) log: Arc<dyn Log>,
    pub(crate) lifecycle: Arc<Lifecycle>,
    pub(crate) read_budget: Arc<ReadBudget>,
    pub(crate) lag: Lag,
    /// `None` with `--dispatch inline`.
    pub(crate) port: Option<Rc<Port>>,
    pub(crate) batcher: Batcher,
    /// The longest value that other machines have sent lately.
    pub(crate) remote_value_bytes: Cell<u64>,
}

impl Storage {
    /// Decides on a request whose head was parsed at `parsed_ns`, `lag_ns` after the selector could
    /// have served it.
    #[inline]
    pub(crate) fn admit(
        &self,
        class: Class,
        lag_ns: u64,
        parsed_ns: u64,
    ) -> std::result::Result<(), Failure> {
        match self.lag.admit(class, lag_ns, parsed_ns) {
            None => Ok(()),
            Some(refusal) => Err(Failure::Refused(refusal)),
        }
    }

    /// Explains a failure; logs it if an operator has to act.
    #[cold]
    pub(crate) fn explain(&self, failure: &Failure) -> Problem {
        let error = match failure {
            Failure::Storage(error) => error,
            Failure::Refused(refusal) => return refusal.problem(),
            Failure::NoMemory => {
                self.meter.counters.memory_refusals.add(1);
                return Problem::no_memory();
            }
        };
        if matches!(error.kind(), ErrorKind::Corruption | ErrorKind::Io | ErrorKind::OutcomeUnknown)
        {
            self.log.event(Level::Error, "request_failed", &[("error", error)]);
        }
        Problem::from(error)
    }

    /// Begins to read the newest value of `key`, except a block of the disk longer than
    /// `block_bytes_max`. `buffer`: see [`LocalStore::try_get`].
    #[inline]
    pub(super) fn get(
        &self,
        store: &dyn LocalStore,
        key: &Key,
        block_bytes_max: u32,
        buffer: Option<&mut Vec<u8>>,
        now_ns: u64,
    ) -> Reading {
        match self.config.dispatch {
            DispatchMode::Inline => {
                return Reading::Done(self.get_here(store, key, block_bytes_max, now_ns));
            }
            DispatchMode::Hybrid => {
                let mut work = StorageWork::at(now_ns);
                match store.try_get(key, buffer, &mut work.read) {
                    Ok(Lookup::NeedsDisk { block_bytes }) if block_bytes <= block_bytes_max => {}
                    found => return Reading::Done(self.done_here(work, found)),
                }
            }
            DispatchMode::Pool => {}
        }
        Reading::Later(self.port().send(GetRequest { key: key.clone(), block_bytes_max }))
    }

    fn get_here(
        &self,
        store: &dyn LocalStore,
        key: &[u8],
        block_bytes_max: u32,
        now_ns: u64,
    ) -> Read {
        let mut work = StorageWork::at(now_ns);
        let found = store.get(key, block_bytes_max, &mut work.read);
        self.done_here(work, found)
    }

    #[inline]
    fn done_here(&self, mut work: StorageWork, found: Result<Lookup>) -> Read {
        work.done_ns = self.meter.now_ns();
        self.lag.note_cost(Class::Read, work.done_ns - work.started_ns);
        Read { result: found.map_err(Failure::from), work }
    }

    /// Takes the reply to a read that was sent to the pool.
    pub(super) fn finish_read(&self, store: &dyn LocalStore, done: Done<GetRequest>) -> Read {
        let Done { reply, work } = done;
        let result = match reply {
            PoolReply::Finished(found) => found.map_err(Failure::from),
            PoolReply::Refused(refusal, _) => Err(Failure::Refused(refusal)),
            PoolReply::CallerRuns(get) => {
                let read = self.get_here(store, &get.key, get.block_bytes_max, self.meter.now_ns());
                let work = StorageWork { queued_ns: work.queued_ns, ..read.work };
                return Read { work, ..read };
            }
        };
        Read { result, work }
    }

    /// Reads the next piece of a range, here or on a worker.
    pub(crate) async fn read_piece(
        self: Rc<Self>,
        store: Backend,
        reader: Box<RangeReader>,
    ) -> Piece {
        if let Backend::Remote(store) = &store {
            return self.fetch_piece(&**store, reader).await;
        }
        match self.config.dispatch {
            DispatchMode::Inline => self.read_piece_here(&*store, reader, self.meter.now_ns()),
            DispatchMode::Pool | DispatchMode::Hybrid => {
                let done = self.port().send(reader).await;
                self.finish_piece(&*store, done)
            }
        }
    }

    async fn fetch_piece(&self, store: &dyn RemoteStore, mut reader: Box<RangeReader>) -> Piece {
        let begun_ns = self.meter.now_ns();
        let mut piece = match reader.fetch(store).await {
            Ok(()) => self.read_piece_here(store, reader, begun_ns),
            Err(error) => {
                let work =
                    StorageWork { done_ns: self.meter.now_ns(), ..StorageWork::at(begun_ns) };
                let failure = self.failure_of_remote(error, Class::Range, work.done_ns);
                Piece { reader, result: Err(failure), work }
            }
        };
        // Fetching is work, not waiting.
        piece.work.started_ns = begun_ns;
        piece
    }

    /// A request that other machines have no room for is refused, as by this one.
    pub(super) fn failure_of_remote(&self, error: Error, class: Class, now_ns: u64) -> Failure {
        match error.kind() {
            ErrorKind::Overloaded => Failure::Refused(self.lag.note_nodes_busy(class, now_ns)),
            _ => Failure::Storage(error),
        }
    }

    fn read_piece_here(
        &self,
        store: &dyn Store,
        mut reader: Box<RangeReader>,
        queued_ns: u64,
    ) -> Piece {
        let mut work = StorageWork::at(queued_ns);
        work.started_ns = self.meter.now_ns();
        let result = reader.read_piece(store);
        work.read = reader.trace();
        work.done_ns = self.meter.now_ns();
        self.lag.note_cost(Class::Range, work.done_ns - work.started_ns);
        Piece { reader, result: result.map_err(Failure::from), work }
    }

    fn finish_piece(&self, store: &dyn Store, done: Done<Box<RangeReader>>) -> Piece {
        let Done { reply, work } = done;
        match reply {
            PoolReply::Finished((reader, result)) => {
                Piece { reader, result: result.map_err(Failure::from), work }
            }
            PoolReply::Refused(refusal, reader) => {
                Piece { reader, result: Err(Failure::Refused(refusal)), work }
            }
            PoolReply::CallerRuns(reader) => self.read_piece_here(store, reader, work.queued_ns),
        }
    }

    /// Memory for the key of a write that comes during a stall, and for its value if that is short
    /// and so counted nowhere else: any number of clients may wait for the end of a stall.
    #[inline]
    pub(super) fn memory_of_waiting(
        &self,
        write: &Write,
    ) -> std::result::Result<Option<Reservation>, Failure> {
        if !self.batcher.is_stalled() {
            return Ok(None);
        }
        let value_bytes = write.value.as_ref().map_or(0, |value| value.len() as u64);
        let short_bytes = if value_bytes <= SMALL_BYTES { value_bytes } else { 0 };
        let memory = self.memory.try_reserve_buffers(write.key.len() as u64 + short_bytes);
        memory.map(Some).ok_or(Failure::NoMemory)
    }

    pub(super) fn send_writes(&self, writes: Vec<Write>) -> Later<Vec<Write>> {
        self.port().send(writes)
    }

    /// Writes in a batch for the pool, at most: a longer one would be admitted only to an empty
    /// queue.
    pub(super) fn write_count_max(&self) -> usize {
        pool::capacity_of(&self.config, Class::Write).max(1)
    }

    fn port(&self) -> &Rc<Port> {
        self.port.as_ref().expect("every dispatch mode that sends work has a pool")
    }
}
