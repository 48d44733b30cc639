//! What all parts of an open database share: its environment and settings, and whether it is open.

pub(crate) mod last_failure;
mod pause;
pub(crate) mod resources;

use crate::events::EventSink;
use crate::format::FileNum;
use crate::memtable::ChunkPool;
use crate::options::Options;
use kvant_base::lock::NamedMutex;
use kvant_base::log::{Level, Log};
use kvant_base::wait::WaitKind;
use kvant_base::{Error, ErrorKind, MemoryBudget, Result};
use kvant_env::{Env, FileLock, Signal, TaskHandle};
use pause::Pause;
use resources::Resources;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

pub(crate) struct Context {
    pub(crate) env: Env,
    pub(crate) dir: PathBuf,
    pub(crate) options: Options,
    pub(crate) memory: Arc<MemoryBudget>,
    pub(crate) chunks: Arc<ChunkPool>,
    pub(crate) log: Arc<dyn Log>,
    pub(crate) events: EventSink,
    /// Notified when a flush or compaction ends, and when the database is fenced or closed.
    pub(crate) progressed: Signal,
    /// Set by a failure that leaves unknown what the disk holds, such as a failed fsync: no write
    /// is accepted until the database is opened again.
    fence_cause: OnceLock<Error>,
    next_file_num: AtomicU64,
    is_closed: AtomicBool,
    /// A close holds the pipeline until the log is synced.
    is_closing: AtomicBool,
    tasks: NamedMutex<Option<Tasks>>,
    pause: Pause,
    /// Held while the database is open.
    dir_lock: NamedMutex<Option<Box<dyn FileLock>>>,
}

/// The background tasks, in the order of [`TaskName`].
pub(crate) type Tasks = [Arc<dyn TaskHandle>; 5];

#[derive(Clone, Copy)]
pub(crate) enum TaskName {
    Sync,
    Flush,
    Compact,
    Clean,
    Chunks,
}

impl Context {
    pub(crate) fn new(env: Env, dir: &Path, options: Options, resources: &Resources) -> Context {
        Context {
            events: EventSink::new(Arc::clone(&env.clock), Arc::clone(&resources.events)),
            chunks: ChunkPool::new(
                &resources.memory,
                options.memtable_bytes.saturating_mul(options.memtables_sealed_max as u64),
            ),
            env,
            dir: dir.to_path_buf(),
            options,
            memory: Arc::clone(&resources.memory),
            log: Arc::clone(&resources.log),
            progressed: Signal::new(WaitKind::Backpressure, "flush_or_compaction"),
            fence_cause: OnceLock::new(),
            next_file_num: AtomicU64::new(1),
            is_closed: AtomicBool::new(false),
            is_closing: AtomicBool::new(false),
            tasks: NamedMutex::new("tasks", None),
            pause: Pause::new(),
            dir_lock: NamedMutex::new("owner", None),
        }
    }

    #[inline]
    pub(crate) fn check_open(&self) -> Result<()> {
        if self.is_closed() { Err(closed()) } else { Ok(()) }
    }

    /// As [`Context::check_open`], for what would change the log: none of that may come after the
    /// sync that a close waits for.
    #[inline]
    pub(crate) fn check_not_closing(&self) -> Result<()> {
        if self.is_closing() { Err(closed()) } else { Ok(()) }
    }

    #[inline]
    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Acquire)
    }

    pub(crate) fn mark_closing(&self) {
        self.is_closing.store(true, Ordering::Release);
    }

    /// Whether a close has begun: background work that needs the pipeline would wait for its end.
    pub(crate) fn is_closing(&self) -> bool {
        self.is_closing.load(Ordering::Acquire)
    }

    /// Refuses everything but the end of background work from now on.
    pub(crate) fn mark_closed(&self) {
        self.is_closed.store(true, Ordering::Release);
        self.pause.end(&self.env, &self.events);
    }

    /// Lets flushes and compactions rest for `time`. False if they do already.
    pub(crate) fn pause(&self, time: Duration) -> Result<bool> {
        self.check_open()?;
        if !self.pause.begin(time, &self.env, &self.events) {
            return Ok(false);
        }
        if self.is_closed() {
            // A close has ended the pauses before this one.
            self.pause.end(&self.env, &self.events);
            return self.check_open().map(|()| false);
        }
        // So that they notice its end.
        self.wake(TaskName::Flush);
        self.wake(TaskName::Compact);
        Ok(true)
    }

    /// Until when flushes and compactions rest.
    #[inline]
    pub(crate) fn paused_until_ns(&self) -> Option<u64> {
        self.pause.until_ns(&self.env, &self.events)
    }

    /// Waits while flushes and compactions are to rest.
    #[inline]
    pub(crate) fn rest(&self) {
        self.pause.wait(&self.env, &self.events);
    }

    /// `Fenced`, with the first cause in its text, once fenced.
    #[inline]
    pub(crate) fn check_writable(&self) -> Result<()> {
        match self.fence_cause() {
            None => Ok(()),
            Some(cause) => Err(Error::new(
                ErrorKind::Fenced,
                format!("writes are fenced until a restart: {cause}"),
            )),
        }
    }

    pub(crate) fn fence_cause(&self) -> Option<&Error> {
        self.fence_cause.get()
    }

    /// Fences writes for good and returns the first cause. The tasks open the gate for the writers
    /// that wait.
    pub(crate) fn fence(&self, cause: Error) -> Error {
        let first = self.fence_cause.get_or_init(|| cause).clone();
        self.log.event(Level::Error, "writes_fenced", &[("cause", &first)]);
        self.progressed.notify_all();
        self.wake(TaskName::Sync);
        self.wake(TaskName::Flush);
        self.wake(TaskName::Compact);
        first
    }

    pub(crate) fn set_next_file_num(&self, num: u64) {
        self.next_file_num.store(num, Ordering::Relaxed);
    }

    pub(crate) fn new_file_num(&self) -> FileNum {
        FileNum(self.next_file_num.fetch_add(1, Ordering::Relaxed))
    }

    pub(crate) fn next_file_num(&self) -> FileNum {
        FileNum(self.next_file_num.load(Ordering::Relaxed))
    }

    pub(crate) fn keep_dir_lock(&self, lock: Option<Box<dyn FileLock>>) {
        *self.dir_lock.lock() = lock;
    }

    pub(crate) fn set_tasks(&self, tasks: Tasks) {
        // The first steps of a task may have made work for the others, which it could not wake yet.
        self.tasks.lock().insert(tasks).iter().for_each(|task| task.wake());
    }

    /// Wakes a background task, unless they have ended.
    pub(crate) fn wake(&self, task: TaskName) {
        if let Some(tasks) = &*self.tasks.lock() {
            tasks[task as usize].wake();
        }
    }

    /// Ends the background tasks, which see that the database is closed, and unlocks the directory.
    pub(crate) fn end_tasks(&self) {
        // The tasks take the lock to wake each other.
        let tasks = self.tasks.lock().take();
        if let Some(tasks) = tasks {
            tasks.iter().for_each(|task| task.wake());
            tasks.iter().for_each(|task| task.join());
        }
        *self.dir_lock.lock() = None;
    }

    /// Makes names in the data directory durable. A failure fences: the state of the directory is
    /// unknown from then on.
    pub(crate) fn sync_dir(&self) -> Result<()> {
        self.events.sync("directory", || self.env.fs.sync_dir(&self.dir)).map_err(|source| {
            // Not `NoSpace`, after which a delete would try again.
            self.fence(Error::io("fsync", &self.dir, source)).with_kind(ErrorKind::Fenced)
        })
    }

    /// Removes a file that is not needed. A failure is logged; the next open tries again.
    pub(crate) fn remove_file(&self, path: &Path) {
        if let Err(error) = self.env.fs.remove_file(path) {
            let error = Error::io("remove", path, error);
            self.log.event(Level::Warn, "file_not_removed", &[("error", &error)]);
        }
    }
}

#[cold]
fn closed() -> Error {
    Error::new(ErrorKind::Closed, "the database is closed")
}
