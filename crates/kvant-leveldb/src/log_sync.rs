//! `--sync interval`: LevelDB's logs, synced beside its writes.
//!
//! A synced write of LevelDB syncs the current log and no other, and all writes wait for it. When a
//! log is full LevelDB goes on with the next one, and the end of the full log is durable only when
//! its memtable has become a table. So this task opens every log in the directory and syncs it,
//! then the directory.
//!
//! Invariants:
//! 1. A write is noted before it is acknowledged, and is in a log by then: LevelDB hands a record
//!    to the operating system at once. A log that is gone is in a synced table.
//! 2. A failed sync fences writes: nothing is known of the data then.
//!
//! Threads: one task; the writer notes writes and waits where a sync is overdue.

use crate::directory;
use crate::health::Fence;
use kvant_base::Result;
use kvant_base::tag::{self, Activity, Stage};
use kvant_base::wait::WaitKind;
use kvant_env::{Env, Signal, Step, Task};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// No time: nothing is unsynced.
const NEVER: u64 = u64::MAX;

pub(crate) struct LogSync {
    env: Env,
    dir: PathBuf,
    fence: Arc<Fence>,
    interval_ns: u64,
    /// When the oldest write came that no sync covers,
    unsynced_since_ns: AtomicU64,
    /// and the oldest that the running sync covers.
    syncing_since_ns: AtomicU64,
    is_closed: AtomicBool,
    synced: Signal,
    count: AtomicU64,
    us_total: AtomicU64,
}

impl LogSync {
    pub(crate) fn new(env: Env, dir: PathBuf, fence: Arc<Fence>, interval: Duration) -> LogSync {
        LogSync {
            env,
            dir,
            fence,
            interval_ns: u64::try_from(interval.as_nanos()).unwrap_or(NEVER),
            unsynced_since_ns: AtomicU64::new(NEVER),
            syncing_since_ns: AtomicU64::new(NEVER),
            is_closed: AtomicBool::new(false),
            synced: Signal::new(WaitKind::Backpressure, "leveldb_sync_overdue"),
            count: AtomicU64::new(0),
            us_total: AtomicU64::new(0),
        }
    }

    /// A write is in the log. True if the task has to be woken.
    pub(crate) fn note_written(&self) -> bool {
        let now_ns = self.env.clock.monotonic_ns();
        let set = self.unsynced_since_ns.compare_exchange(
            NEVER,
            now_ns,
            Ordering::AcqRel,
            Ordering::Acquire,
        );
        set.is_ok()
    }

    /// Waits while a sync is overdue by more than an interval.
    pub(crate) fn wait_until_not_overdue(&self) {
        let is_in_time = || {
            let oldest_ns = self.unsynced_since_ns.load(Ordering::Acquire);
            let oldest_ns = oldest_ns.min(self.syncing_since_ns.load(Ordering::Acquire));
            let due_ns = oldest_ns.saturating_add(self.interval_ns.saturating_mul(2));
            self.env.clock.monotonic_ns() <= due_ns || self.fence.cause().is_some()
        };
        if !is_in_time() {
            self.env.spawner.wait_until(&self.synced, None, &mut { is_in_time });
        }
    }

    /// Lets the task end. It has to be woken.
    pub(crate) fn close(&self) {
        self.is_closed.store(true, Ordering::Release);
    }

    /// Syncs all logs and the directory.
    pub(crate) fn sync_all(&self) -> Result<()> {
        let begun_ns = self.env.clock.monotonic_ns();
        directory::sync(&*self.env.fs, &self.dir)?;
        let us = (self.env.clock.monotonic_ns() - begun_ns) / 1000;
        self.count.fetch_add(1, Ordering::Relaxed);
        self.us_total.fetch_add(us, Ordering::Relaxed);
        Ok(())
    }

    /// Syncs so far, and the time that they took in microseconds.
    pub(crate) fn figures(&self) -> (u64, u64) {
        (self.count.load(Ordering::Relaxed), self.us_total.load(Ordering::Relaxed))
    }
}

impl Task for LogSync {
    fn name(&self) -> &str {
        "kvant-ldb-sync"
    }

    fn step(&self) -> Step {
        let tag = tag::enter_at(Activity::Put, Stage::Sync);
        if self.is_closed.load(Ordering::Acquire) {
            return Step::Finished;
        }
        let since_ns = self.unsynced_since_ns.load(Ordering::Acquire);
        if since_ns == NEVER || self.fence.cause().is_some() {
            return Step::Idle;
        }
        let due_ns = since_ns.saturating_add(self.interval_ns);
        if self.env.clock.monotonic_ns() < due_ns {
            return Step::IdleUntil(due_ns);
        }
        // In this order: the writer must see one of the two all the time. A write that is noted
        // from here on gets a sync of its own, although this one may cover it.
        self.syncing_since_ns.store(since_ns, Ordering::Release);
        self.unsynced_since_ns.store(NEVER, Ordering::Release);
        if let Err(error) = self.sync_all() {
            self.fence.set(&error);
        }
        drop(tag);
        self.syncing_since_ns.store(NEVER, Ordering::Release);
        self.synced.notify_all();
        Step::Worked
    }
}
