//! The database: the engine's public interface, assembled from its parts.
//!
//! - [`core`]: its parts;
//! - [`recovery`], [`replay`], [`inventory`], [`directory`]: opening;
//! - [`checkpoint`], [`collect`], [`health`]: copies, statistics, and whether writes succeed.

mod checkpoint;
mod collect;
mod core;
pub(crate) mod directory;
mod health;
pub(crate) mod inventory;
mod recovery;
mod replay;

pub use self::health::WriteHealth;

use self::core::Core;
use crate::batch::WriteBatch;
use crate::commit::log::Refused;
use crate::commit::queue::Completion;
use crate::context::TaskName;
use crate::context::resources::Resources;
use crate::format::value::{Appending, Owned, Value};
use crate::maintenance::tasks;
use crate::options::Options;
use crate::stats::{StallReason, Stats};
use crate::table::{ReadTrace, Wait};
use crate::tree::range::RangeIter;
use crate::tree::read::Lookup;
use crate::tree::snapshot::Snapshot;
use bytes::Bytes;
use kvant_base::lock::NamedMutex;
use kvant_base::wait::{self, WaitKind};
use kvant_base::{ErrorKind, Result};
use kvant_env::{Env, Signal};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// An open database; clones share it. It is closed by [`Db::close`], or when the last clone is
/// dropped.
#[derive(Clone)]
pub struct Db(Arc<Core>);

impl Db {
    /// Opens the database in `dir`, creating it if there is none, and recovers it.
    ///
    /// # Errors
    /// `Invalid` for unusable options; `Locked` when another process owns the directory;
    /// `Corruption` with file and offset; `Unsupported` for files of a newer version; `Io`,
    /// `NoSpace`.
    pub fn open(env: Env, dir: &Path, options: Options, resources: Resources) -> Result<Db> {
        let core = recovery::open(env, dir, options, &resources)?;
        tasks::spawn(&core.maintenance);
        core.admission.check_space();
        core.admission.update_gate();
        Ok(Db(Arc::new(core)))
    }

    /// The newest value of `key`; `None` when absent, deleted or expired.
    ///
    /// # Errors
    /// `Corruption` or `Io` when a block cannot be read (other keys stay readable); `Closed`.
    #[inline]
    pub fn get(&self, key: &[u8]) -> Result<Option<Bytes>> {
        self.0.tree.look_up(key, Wait::ALWAYS, &mut ReadTrace::default(), Owned)?.into_value()
    }

    /// The newest value of `key` without waiting for the disk: for event loops. Adds what the read
    /// touched to `trace`. After `NeedsDisk`, `trace` covers the read until then, and no get has
    /// been counted: call [`Db::get_bounded`] on a thread that may block.
    #[inline]
    pub fn try_get(&self, key: &[u8], trace: &mut ReadTrace) -> Result<Lookup> {
        self.0.tree.look_up(key, Wait::Never, trace, Owned)
    }

    /// As [`Db::try_get`], but appends a value of at most `value_bytes_max` to `buffer`, instead of
    /// allocating memory for it. If the value is not [`Value::Appended`], what was appended is
    /// meaningless.
    #[inline]
    pub fn try_get_into(
        &self,
        key: &[u8],
        buffer: &mut Vec<u8>,
        value_bytes_max: usize,
        trace: &mut ReadTrace,
    ) -> Result<Lookup<Value>> {
        self.0.tree.look_up(key, Wait::Never, trace, Appending::to(buffer, value_bytes_max))
    }

    /// As [`Db::try_get`], but waits for blocks of up to `block_bytes_max` in their file, so that
    /// the caller can reserve memory for a longer one first.
    #[inline]
    pub fn get_bounded(
        &self,
        key: &[u8],
        block_bytes_max: u32,
        trace: &mut ReadTrace,
    ) -> Result<Lookup> {
        self.0.tree.look_up(key, Wait::UpTo(block_bytes_max), trace, Owned)
    }

    /// Commits a batch and waits until the sync level is reached; waits out stalls.
    ///
    /// # Errors
    /// As [`Db::submit`], but never `Stalled`; `OutcomeUnknown` when the fsync for it failed.
    pub fn write(&self, mut batch: WriteBatch) -> Result<()> {
        let (context, gate) = (&*self.0.context, &self.0.admission.gate);
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
                    let _waiting = gate
                        .stall()
                        .map(|reason| wait::begin(WaitKind::Backpressure, reason.name()));
                    let mut writable = || gate.stall().is_none() || context.is_closed();
                    context.env.spawner.wait_until(gate.changed(), None, &mut writable);
                }
                Err(refused) => return Err(refused.error),
            }
        }
        let mut result = None;
        context.env.spawner.wait_until(&outcome.1, None, &mut || {
            result = outcome.0.lock().take();
            result.is_some()
        });
        result.expect("a wait without a deadline ends when it is over")
    }

    /// Gives `key` a value, which expires when the wall clock reaches `expires_at_ms` (since 1970)
    /// if that is given.
    pub fn put(&self, key: &[u8], value: &[u8], expires_at_ms: Option<u64>) -> Result<()> {
        let mut batch = WriteBatch::new();
        batch.put(key, value, expires_at_ms);
        self.write(batch)
    }

    /// Removes `key`.
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
        self.0.log.commit(batch, done)
    }

    /// Calls `wake` once as soon as a stalled write may succeed, at once if it already may, on the
    /// thread that ends the stall.
    pub fn on_writable(&self, wake: Box<dyn FnOnce() + Send>) {
        self.0.admission.gate.on_writable(wake);
    }

    /// Why a write would stall now.
    pub fn stall(&self) -> Option<StallReason> {
        self.0.admission.gate.stall()
    }

    /// Records with `start <= key`, and `key < end` where an end is given, in key order, from one
    /// consistent snapshot.
    pub fn range(&self, start: &[u8], end: Option<&[u8]>) -> Result<RangeIter> {
        RangeIter::open(&self.0.tree, self.0.tree.pin(), start, end)
    }

    /// A consistent view, which later writes do not change.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot::new(&self.0.tree)
    }

    /// Writes everything in memory to tables and waits for it.
    pub fn flush(&self) -> Result<()> {
        let Core { context, tree, log, maintenance, .. } = &*self.0;
        self.0.check_writable()?;
        let newest = {
            let mut leader = log.lock();
            if !leader.writer.active.memtable().is_empty() {
                log.env.seal(&mut leader.writer)?;
            }
            tree.views.load().sealed.first().cloned()
        };
        let Some(newest) = newest else { return Ok(()) };
        let failed_before = maintenance.failed_flushes.lock().0;
        let mut failure = None;
        context.wake(TaskName::Flush);
        context.env.spawner.wait_until(&context.progressed, None, &mut || {
            let is_newest = |sealed| Arc::ptr_eq(sealed, &newest);
            if !tree.views.load().sealed.iter().any(is_newest) {
                return true;
            }
            let failed = maintenance.failed_flushes.lock();
            if failed.0 != failed_before {
                failure.clone_from(&failed.1);
            }
            failure.is_some() || self.0.check_writable().is_err()
        });
        self.0.check_writable()?;
        failure.map_or(Ok(()), Err)
    }

    /// Flushes, then compacts everything into the last level, and waits for it. It needs as much
    /// free space as the data take.
    ///
    /// # Errors
    /// As [`Db::flush`]; `Corruption` when a table cannot be read.
    pub fn compact(&self) -> Result<()> {
        self.flush()?;
        let Core { context, maintenance, .. } = &*self.0;
        let ticket = {
            let mut manual = maintenance.manual.lock();
            manual.requested += 1;
            manual.requested
        };
        context.wake(TaskName::Compact);
        context.env.spawner.wait_until(&context.progressed, None, &mut || {
            maintenance.manual.lock().served >= ticket || context.is_closed()
        });
        context.check_open()?;
        match maintenance.manual.lock().failure.clone() {
            Some(failure) => Err(failure),
            None => Ok(()),
        }
    }

    /// Lets flushes and compactions rest for `time`, which begins now; those that run stop within
    /// about 0.1 ms of their work. Writes are slowed down and stalled by the backlog that grows,
    /// and by nothing else. False if they rest already: nothing is changed then.
    ///
    /// # Errors
    /// `Closed`.
    pub fn pause_background(&self, time: Duration) -> Result<bool> {
        self.0.context.pause(time)
    }

    /// Makes a copy in `dir`, which must not exist and be on the same file system: tables are
    /// shared by hard links. It holds what was acknowledged before the call, and may hold later
    /// writes. After an error there is nothing of it.
    ///
    /// # Errors
    /// As [`Db::flush`]; `Invalid` when `dir` exists, lies in the data directory or on another file
    /// system.
    pub fn checkpoint(&self, dir: &Path) -> Result<()> {
        // An unusable target is refused before the flush.
        checkpoint::Target::find(&self.0.context, dir)?;
        self.flush()?;
        let _one_at_a_time = self.0.checkpointing.lock();
        checkpoint::checkpoint(&self.0.tree, dir)
    }

    /// Statistics of the engine.
    pub fn stats(&self) -> Stats {
        collect::stats(&self.0)
    }

    /// Whether writes succeed, and why not.
    pub fn write_health(&self) -> WriteHealth {
        self.0.write_health()
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
