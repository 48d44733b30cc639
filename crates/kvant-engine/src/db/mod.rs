//! The database: the engine's public interface, wired from its parts.
//!
//! - [`core`]: the parts and what all need; [`recovery`], [`replay`]: how they come to be from the
//!   files;
//! - [`inventory`]: checks the files that the manifest relies on;
//! - [`write`](self::write), [`read`], [`range`], [`snapshot`]: what users do;
//! - [`flush`], [`compact`], [`tasks`]: what happens behind them;
//! - [`fence`], [`space`], [`health`]: what happens when the disk fails or is full, and what is
//!   said of it.

mod checkpoint;
mod collect;
mod compact;
pub(crate) mod core;
mod edits;
mod fence;
mod flush;
mod health;
pub(crate) mod inventory;
mod range;
mod read;
pub(crate) mod recovery;
mod replay;
mod snapshot;
mod space;
mod tasks;
mod view;
mod write;

pub use self::health::WriteHealth;
pub use self::range::{RangeIter, Record};
pub use self::read::Lookup;
pub use self::recovery::RecoveryProgress;
pub use self::snapshot::Snapshot;
pub use self::write::Refused;
pub use crate::table::ReadTrace;

use self::core::{Core, Tasks};
use self::snapshot::PinnedSeq;
use crate::batch::WriteBatch;
use crate::commit::queue::Completion;
use crate::options::Options;
use crate::stats::{StallReason, Stats};
use bytes::Bytes;
use kvant_base::lock::NamedMutex;
use kvant_base::log::{Level, Log, NoLog};
use kvant_base::wait::{self, WaitKind};
use kvant_base::{Error, ErrorKind, Events, MemoryBudget, Result};
use kvant_env::{Env, Signal};
use std::path::Path;
use std::sync::Arc;

/// What a database is given besides its settings.
#[derive(Clone)]
pub struct Resources {
    /// The budget that it shares with whoever else is in the process.
    pub memory: Arc<MemoryBudget>,
    /// Where its events go, as lines for people.
    pub log: Arc<dyn Log>,
    /// Where flushes, compactions, stalls and slow fsyncs go, with their times. Who listens is
    /// called by the engine's threads, some of which hold its locks, and must not call the
    /// database.
    pub events: Arc<Events>,
    /// Where it says how far recovery is.
    pub progress: Arc<RecoveryProgress>,
}

impl Resources {
    /// A budget of its own, of `options.memory_bytes`, and no log.
    pub fn new(options: &Options) -> Resources {
        Resources {
            memory: MemoryBudget::new(options.memory_bytes),
            log: Arc::new(NoLog),
            events: Events::new(1),
            progress: Arc::default(),
        }
    }
}

/// An open database; clones share it. It is closed by [`Db::close`], or when the last clone is
/// dropped.
#[derive(Clone)]
pub struct Db(Arc<Handle>);

struct Handle {
    core: Arc<Core>,
}

impl Db {
    /// Opens the database in `dir`, creating it if there is none, and recovers it.
    ///
    /// # Errors
    /// `Invalid` for unusable options; `Locked` when another process owns the directory;
    /// `Corruption` with file and offset; `Unsupported` for files of a newer version; `Io`,
    /// `NoSpace`.
    pub fn open(env: Env, dir: &Path, options: Options, resources: Resources) -> Result<Db> {
        let core = recovery::open(env, dir, options, resources)?;
        let spawn = |task| core.env.spawner.spawn(task);
        let clean = spawn(Arc::new(tasks::CleanTask(Arc::clone(&core))));
        let wake_clean = Arc::clone(&clean);
        core.obsolete.on_push(move || wake_clean.wake());
        core.set_tasks(Tasks {
            sync: spawn(Arc::new(tasks::SyncTask(Arc::clone(&core)))),
            flush: spawn(Arc::new(flush::FlushTask(Arc::clone(&core)))),
            compact: spawn(Arc::new(compact::CompactTask(Arc::clone(&core)))),
            clean,
        });
        // What they did before they could be woken may be work for the others.
        core.wake_all();
        core.check_space();
        core.update_gate();
        Ok(Db(Arc::new(Handle { core })))
    }

    /// The newest value of `key`; `None` when absent, deleted or expired.
    ///
    /// # Errors
    /// `Corruption` or `Io` when a block cannot be read (other keys stay readable); `Closed`.
    #[inline]
    pub fn get(&self, key: &[u8]) -> Result<Option<Bytes>> {
        self.0.core.get(key)
    }

    /// As [`Db::get`]; adds what the read touched to `trace`.
    ///
    /// # Errors
    /// As [`Db::get`].
    #[inline]
    pub fn get_traced(&self, key: &[u8], trace: &mut ReadTrace) -> Result<Option<Bytes>> {
        self.0.core.get_traced(key, trace)
    }

    /// As [`Db::get_traced`], but does not wait for the disk: for event loops. After `NeedsDisk`,
    /// `trace` has what was touched until then, and nothing has been counted as a get:
    /// [`Db::get_traced`] does the whole read, on a thread that may wait.
    ///
    /// # Errors
    /// As [`Db::get`].
    #[inline]
    pub fn try_get(&self, key: &[u8], trace: &mut ReadTrace) -> Result<Lookup> {
        self.0.core.try_get(key, trace)
    }

    /// As [`Db::get_traced`], but leaves blocks alone that are neither in the block cache nor at
    /// most `block_bytes_max` long in their file, so that memory for them can be reserved first.
    /// What is said of `NeedsDisk` for [`Db::try_get`] holds here.
    ///
    /// # Errors
    /// As [`Db::get`].
    #[inline]
    pub fn get_bounded(
        &self,
        key: &[u8],
        block_bytes_max: u32,
        trace: &mut ReadTrace,
    ) -> Result<Lookup> {
        self.0.core.get_bounded(key, block_bytes_max, trace)
    }

    /// Commits a batch and waits until the sync level is reached; waits out stalls.
    ///
    /// # Errors
    /// As [`Db::submit`], but never `Stalled`; `OutcomeUnknown` when the fsync for it failed.
    pub fn write(&self, mut batch: WriteBatch) -> Result<()> {
        let core = &self.0.core;
        let outcome = Arc::new((
            NamedMutex::new("write_outcome", None),
            Signal::new(WaitKind::Io, "write_outcome"),
        ));
        loop {
            let reported = Arc::clone(&outcome);
            let done: Completion = Box::new(move |result| {
                *reported.0.lock() = Some(result);
                reported.1.notify_all();
            });
            match self.submit(batch, done) {
                Ok(()) => break,
                Err(refused) if refused.error.kind() == ErrorKind::Stalled => {
                    batch = refused.batch;
                    let _waiting = core
                        .gate
                        .stall()
                        .map(|reason| wait::begin(WaitKind::Backpressure, reason.name()));
                    let mut writable = || core.gate.stall().is_none() || core.is_closed();
                    core.env.spawner.wait_until(core.gate.changed(), None, &mut writable);
                }
                Err(refused) => return Err(refused.error),
            }
        }
        let mut result = None;
        core.env.spawner.wait_until(&outcome.1, None, &mut || {
            result = outcome.0.lock().take();
            result.is_some()
        });
        result.expect("a wait without a deadline ends when it is over")
    }

    /// Gives `key` a value, which expires when the wall clock reaches `expires_at_ms` (since 1970)
    /// if that is given.
    ///
    /// # Errors
    /// As [`Db::write`].
    pub fn put(&self, key: &[u8], value: &[u8], expires_at_ms: Option<u64>) -> Result<()> {
        let mut batch = WriteBatch::new();
        batch.put(key, value, expires_at_ms);
        self.write(batch)
    }

    /// Removes `key`.
    ///
    /// # Errors
    /// As [`Db::write`].
    pub fn delete(&self, key: &[u8]) -> Result<()> {
        let mut batch = WriteBatch::new();
        batch.delete(key);
        self.write(batch)
    }

    /// Commits a batch without ever waiting for an fsync or a stall: for event loops. After `Ok`,
    /// `done` has been or will be called, exactly once. After an error it will not be called,
    /// nothing was written, and batch and `done` come back.
    ///
    /// # Errors
    /// `Stalled`: register with [`Db::on_writable`], then try again. `Invalid` for keys and values
    /// over their limits; `NoSpace` (deletes alone may pass); `Fenced`; `Closed`.
    #[inline]
    pub fn submit(&self, batch: WriteBatch, done: Completion) -> std::result::Result<(), Refused> {
        self.0.core.submit(batch, done)
    }

    /// Calls `wake` once as soon as a stalled write may succeed (at once when it may already), on
    /// whatever thread ends the stall.
    pub fn on_writable(&self, wake: Box<dyn FnOnce() + Send>) {
        self.0.core.gate.on_writable(wake);
    }

    /// What would stall a write now.
    pub fn stall(&self) -> Option<StallReason> {
        self.0.core.gate.stall()
    }

    /// Records with `start <= key`, and `key < end` where an end is given, in key order, from one
    /// consistent snapshot.
    ///
    /// # Errors
    /// As [`Db::get`].
    pub fn range(&self, start: &[u8], end: Option<&[u8]>) -> Result<RangeIter> {
        RangeIter::open(Arc::new(PinnedSeq::now(&self.0.core)), start, end)
    }

    /// A consistent view that stays as it is whatever is written later.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot::new(&self.0.core)
    }

    /// Writes everything in memory to tables and waits for it.
    ///
    /// # Errors
    /// `NoSpace`, `Io`, `Fenced`, `Closed`.
    pub fn flush(&self) -> Result<()> {
        let core = &self.0.core;
        core.check_usable()?;
        core.check_writable()?;
        let newest = {
            let mut writer = core.writer.lock();
            if !writer.active.memtable().is_empty() {
                core.seal(&mut writer)?;
            }
            core.views.load().sealed.first().cloned()
        };
        let Some(newest) = newest else { return Ok(()) };
        let failed_before = core.flush_failures.lock().count;
        let mut failure = None;
        core.wake(|tasks| &tasks.flush);
        core.env.spawner.wait_until(&core.progressed, None, &mut || {
            let still_sealed = |sealed| Arc::ptr_eq(sealed, &newest);
            if !core.views.load().sealed.iter().any(still_sealed) {
                return true;
            }
            let failures = core.flush_failures.lock();
            if failures.count != failed_before {
                failure.clone_from(&failures.last);
            }
            failure.is_some() || core.is_closed() || core.fence.cause().is_some()
        });
        core.check_usable()?;
        core.check_writable()?;
        failure.map_or(Ok(()), Err)
    }

    /// Flushes, then compacts everything into the last level, and waits for it. It needs as much
    /// free space as the data take.
    ///
    /// # Errors
    /// As [`Db::flush`]; `Corruption` when a table cannot be read.
    pub fn compact(&self) -> Result<()> {
        self.flush()?;
        let core = &self.0.core;
        let ticket = {
            let mut manual = core.manual.lock();
            manual.asked += 1;
            manual.asked
        };
        core.wake(|tasks| &tasks.compact);
        core.env.spawner.wait_until(&core.progressed, None, &mut || {
            core.manual.lock().served >= ticket || core.is_closed()
        });
        core.check_usable()?;
        match core.manual.lock().failure.clone() {
            Some(failure) => Err(failure),
            None => Ok(()),
        }
    }

    /// Makes a copy in `dir`, which must not exist and be on the same file system: tables are
    /// shared by hard links. It holds what was acknowledged before the call, and may hold later
    /// writes. After an error there is nothing of it.
    ///
    /// # Errors
    /// As [`Db::flush`]; `Invalid` when `dir` exists, lies in the data directory or on another file
    /// system.
    pub fn checkpoint(&self, dir: &Path) -> Result<()> {
        // A target that is no good is refused before anything is done for it.
        checkpoint::Target::find(&self.0.core, dir)?;
        self.flush()?;
        checkpoint::checkpoint(&self.0.core, dir)
    }

    /// What the engine says about itself.
    pub fn stats(&self) -> Stats {
        collect::stats(&self.0.core)
    }

    /// Whether writes succeed, and why not.
    pub fn write_health(&self) -> WriteHealth {
        self.0.core.write_health()
    }

    /// The first cause, when writes are fenced.
    pub fn fenced(&self) -> Option<Error> {
        self.0.core.fence.cause().cloned()
    }

    /// Syncs the log and stops background work. Later calls fail with `Closed`; a second close does
    /// nothing.
    ///
    /// # Errors
    /// `Fenced` or `Io` when what was acknowledged could not be synced.
    pub fn close(&self) -> Result<()> {
        self.0.close()
    }
}

impl Handle {
    fn close(&self) -> Result<()> {
        let core = &self.core;
        // Waits for a leader, so that nothing is written behind the last sync.
        let mut writer = core.writer.lock();
        if core.is_closed() {
            return Ok(());
        }
        core.log_sync.ask();
        core.wake(|tasks| &tasks.sync);
        core.env.spawner.wait_until(&core.log_sync.synced, None, &mut || {
            core.log_sync.is_clean() || core.fence.cause().is_some()
        });
        let result = core.check_writable();
        if result.is_ok() {
            core.write_closing_record(&mut writer);
        }
        core.begin_close();
        drop(writer);
        if result.is_ok() {
            core.record_end_of_logs();
        }
        core.update_gate();
        core.progressed.notify_all();
        core.end_tasks();
        result
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        if let Err(error) = self.close() {
            self.core.log.event(Level::Error, "close_failed", &[("error", &error)]);
        }
    }
}
