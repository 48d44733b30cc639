//! Group commit: one task takes the batches that wait and writes them to LevelDB as one.
//!
//! A write of LevelDB may sleep for a millisecond where compactions are behind, wait for a flush or
//! for an fsync. So no caller writes itself: it queues a batch, and learns the outcome from the
//! task. While a group is written, the next one gathers.
//!
//! Invariants:
//! 1. Batches are written in the order in which they were queued; each gets one outcome.
//! 2. At most [`QUEUE_BYTES_MAX`] and one batch are queued. Beyond that a batch is refused as
//!    stalled, with nothing written.
//! 3. After a failed write nothing else is written ([`crate::health`]).
//!
//! Threads: any thread submits; one task writes.

use crate::ffi::{Batch, Database};
use crate::health::Fence;
use crate::log_sync::LogSync;
use crate::options::SyncLevel;
use crate::space::Space;
use crate::status;
use arc_swap::ArcSwapOption;
use kvant_base::lock::NamedMutex;
use kvant_base::tag::{self, Activity, Stage};
use kvant_base::{Error, ErrorKind, Result};
use kvant_env::{Step, Task, TaskHandle};
use std::collections::VecDeque;
use std::mem;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// Keys and values of one group, unless a single batch is longer: bounds the time of one write.
const GROUP_BYTES_MAX: usize = 1 << 20;
/// Keys and values that may wait for the writer.
const QUEUE_BYTES_MAX: usize = 4 << 20;
/// What a stalled write waits for, in one word.
const STALL: &str = "leveldb_writer";

/// Receives the outcome of a batch, on any thread.
pub type Done = Box<dyn FnOnce(Result<()>) + Send>;

type Wake = Box<dyn FnOnce() + Send>;

pub(crate) struct Writer {
    pub(crate) dir: PathBuf,
    pub(crate) db: Arc<ArcSwapOption<Database>>,
    pub(crate) sync: SyncLevel,
    pub(crate) fence: Arc<Fence>,
    pub(crate) space: Arc<Space>,
    pub(crate) log_sync: Arc<LogSync>,
    /// The tasks: this one, and the one that syncs logs.
    pub(crate) tasks: OnceLock<[Arc<dyn TaskHandle>; 2]>,
    pub(crate) queue: NamedMutex<Queue>,
    pub(crate) figures: Figures,
}

#[derive(Default)]
pub(crate) struct Queue {
    waiting: VecDeque<(Batch, Done)>,
    bytes: usize,
    wakes: Vec<Wake>,
    is_closed: bool,
}

/// Writes since the start.
#[derive(Default)]
pub(crate) struct Figures {
    pub(crate) operation_count: AtomicU64,
    pub(crate) group_count: AtomicU64,
    pub(crate) user_bytes: AtomicU64,
}

impl Writer {
    pub(crate) fn submit(&self, batch: Batch, done: Done) {
        match self.queue_up(batch, done) {
            Ok(true) => self.wake(),
            Ok(false) => {}
            Err((error, done)) => done(Err(error)),
        }
    }

    /// True if nothing was queued before.
    fn queue_up(&self, batch: Batch, done: Done) -> std::result::Result<bool, (Error, Done)> {
        if let Some(cause) = self.fence.cause() {
            return Err((cause, done));
        }
        if batch.has_put() && self.space.refuses_puts() {
            let what = "LevelDB needs the rest of the disk to flush and compact";
            return Err((Error::new(ErrorKind::NoSpace, what), done));
        }
        let mut queue = self.queue.lock();
        if queue.is_closed {
            return Err((Error::new(ErrorKind::Closed, "the database is closed"), done));
        }
        if queue.bytes >= QUEUE_BYTES_MAX {
            return Err((Error::new(ErrorKind::Stalled, STALL), done));
        }
        queue.bytes += batch.bytes();
        queue.waiting.push_back((batch, done));
        Ok(queue.waiting.len() == 1)
    }

    /// Calls `wake` when a batch that was refused as stalled may be taken.
    pub(crate) fn on_writable(&self, wake: Wake) {
        let mut queue = self.queue.lock();
        if queue.bytes >= QUEUE_BYTES_MAX {
            queue.wakes.push(wake);
            return;
        }
        drop(queue);
        wake();
    }

    pub(crate) fn stall(&self) -> Option<&'static str> {
        (self.queue.lock().bytes >= QUEUE_BYTES_MAX).then_some(STALL)
    }

    pub(crate) fn queued_bytes(&self) -> usize {
        self.queue.lock().bytes
    }

    /// Refuses further batches, and ends the task when the queued ones are written. True at the
    /// first call.
    pub(crate) fn close(&self) -> bool {
        let is_first = !mem::replace(&mut self.queue.lock().is_closed, true);
        self.wake();
        is_first
    }

    fn wake(&self) {
        if let Some([writer, _]) = self.tasks.get() {
            writer.wake();
        }
    }

    /// The batches of the next group; `Err`: there will be none.
    fn take_group(&self) -> std::result::Result<Vec<(Batch, Done)>, Step> {
        let mut queue = self.queue.lock();
        let mut bytes = 0;
        let fits = queue.waiting.iter().take_while(|(batch, _)| {
            bytes += batch.bytes();
            bytes <= GROUP_BYTES_MAX
        });
        let count = fits.count().max(1).min(queue.waiting.len());
        if count == 0 {
            return Err(if queue.is_closed { Step::Finished } else { Step::Idle });
        }
        let group: Vec<_> = queue.waiting.drain(..count).collect();
        queue.bytes -= group.iter().map(|(batch, _)| batch.bytes()).sum::<usize>();
        let wakes = match queue.bytes < QUEUE_BYTES_MAX {
            true => mem::take(&mut queue.wakes),
            false => Vec::new(),
        };
        drop(queue);
        wakes.into_iter().for_each(|wake| wake());
        Ok(group)
    }

    fn write(&self, batch: &mut Batch) -> Result<()> {
        if let Some(cause) = self.fence.cause() {
            return Err(cause);
        }
        let db = self.db.load();
        let closed = || Error::new(ErrorKind::Closed, "the database is closed");
        let db = db.as_ref().ok_or_else(closed)?;
        let is_synced = self.sync == SyncLevel::Always;
        match db.write(batch, is_synced) {
            Ok(()) => Ok(()),
            Err(text) => {
                let error = status::error(&self.dir, &text);
                self.fence.set(&error);
                Err(match error.kind() {
                    // LevelDB does not say whether the log was written and the sync failed.
                    _ if is_synced => error.with_kind(ErrorKind::OutcomeUnknown),
                    ErrorKind::NoSpace => error,
                    // The log has at most a part of the record, which LevelDB discards.
                    _ => error.with_kind(ErrorKind::Fenced),
                })
            }
        }
    }

    fn note_written(&self, batch: &Batch) {
        let bytes = batch.bytes() as u64;
        self.figures.operation_count.fetch_add(batch.count() as u64, Ordering::Relaxed);
        self.figures.group_count.fetch_add(1, Ordering::Relaxed);
        self.figures.user_bytes.fetch_add(bytes, Ordering::Relaxed);
        self.space.note_written(bytes);
        if matches!(self.sync, SyncLevel::Interval(_))
            && self.log_sync.note_written()
            && let Some([_, log_sync]) = self.tasks.get()
        {
            log_sync.wake();
        }
    }
}

impl Task for Writer {
    fn name(&self) -> &str {
        "kvant-leveldb"
    }

    fn step(&self) -> Step {
        let group = match self.take_group() {
            Ok(group) => group,
            Err(step) => return step,
        };
        let tag = tag::enter_at(Activity::Put, Stage::Wal);
        let mut merged: Option<Batch> = None;
        let mut dones = Vec::with_capacity(group.len());
        for (batch, done) in group {
            match &mut merged {
                None => merged = Some(batch),
                Some(merged) => merged.append(&batch),
            }
            dones.push(done);
        }
        if let Some(mut batch) = merged {
            if matches!(self.sync, SyncLevel::Interval(_)) {
                self.log_sync.wait_until_not_overdue();
            }
            let result = self.write(&mut batch);
            if result.is_ok() {
                self.note_written(&batch);
            }
            tag.stage(Stage::Dispatch);
            dones.into_iter().for_each(|done| done(result.clone()));
        }
        Step::Worked
    }
}
