//! When the log is synced, and what waits for it.
//!
//! One background task syncs for everybody. `always`: as soon as a group has been written; groups
//! written during one fsync share the next. `interval`: once an interval while there is something
//! to sync. `os`: never, but at close.
//!
//! Invariants:
//! 1. log files are synced oldest first, so that what is durable is a prefix of the history;
//! 2. a failed sync is never repeated: the state of the pages is unknown (see `kvant_env::fs`), so
//!    writes are fenced for good.
//!
//! Threads: the leader reports writes, the task syncs; no lock is held during an fsync.

use super::queue::Completion;
use crate::events::EventSink;
use crate::format::{FileNum, SeqNum};
use crate::options::SyncLevel;
use crate::stats::WalStats;
use kvant_base::lock::NamedMutex;
use kvant_base::wait::WaitKind;
use kvant_base::{Error, Result};
use kvant_env::{Clock, File, Signal};
use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// A log file that may hold bytes which are not durable.
pub(crate) struct LogFile {
    pub(crate) num: FileNum,
    pub(crate) path: PathBuf,
    pub(crate) file: Arc<dyn File>,
    pub(crate) written_bytes: u64,
    pub(crate) synced_bytes: u64,
}

/// What waits for a sync: the last sequence number of a group and whom to tell.
struct Waiting {
    last_seq: SeqNum,
    done: Vec<Completion>,
}

pub(crate) struct LogSync {
    level: SyncLevel,
    clock: Arc<dyn Clock>,
    events: EventSink,
    inner: NamedMutex<Inner>,
    /// When [`LogSync::is_overdue`] becomes true unless a sync ends before; `u64::MAX` for never.
    /// Every submitted batch asks, so that this is kept outside the lock.
    overdue_at_ns: AtomicU64,
    /// Notified after every sync, and when writes are fenced: then there will be no more.
    pub(crate) synced: Signal,
}

struct Inner {
    /// Oldest first; the last is being written.
    files: VecDeque<LogFile>,
    waiting: Vec<Waiting>,
    /// When the oldest byte that is not durable was written.
    dirty_since_ns: Option<u64>,
    /// When the running sync began.
    syncing_since_ns: Option<u64>,
    /// A sync that was asked for (close), whatever the level.
    asked: bool,
    /// A sync has failed: nothing is known to be durable any more.
    failed: bool,
    sync_count: u64,
    sync_us_total: u64,
    sync_us_max: u64,
}

/// What one call of [`LogSync::sync_due`] did.
pub(crate) enum Synced {
    /// Nothing was due; look again at this time, if any.
    NotDue(Option<u64>),
    /// Everything written before the call is durable.
    Done { visible: Option<SeqNum>, done: Vec<Completion> },
    /// An fsync failed: all who waited have to be told that their outcome is unknown.
    Failed { error: Error, done: Vec<Completion> },
}

impl LogSync {
    pub(crate) fn new(level: SyncLevel, clock: Arc<dyn Clock>, events: EventSink) -> LogSync {
        let inner = Inner {
            files: VecDeque::new(),
            waiting: Vec::new(),
            dirty_since_ns: None,
            syncing_since_ns: None,
            asked: false,
            failed: false,
            sync_count: 0,
            sync_us_total: 0,
            sync_us_max: 0,
        };
        LogSync {
            level,
            clock,
            events,
            inner: NamedMutex::new("log_sync", inner),
            overdue_at_ns: AtomicU64::new(u64::MAX),
            synced: Signal::new(WaitKind::Io, "log_sync"),
        }
    }

    /// A log file has come into use. Those given before will not be written any more. True: the
    /// task must be woken, for there is something to sync where there was nothing.
    pub(crate) fn add_file(&self, file: LogFile) -> bool {
        let mut inner = self.inner.lock();
        let was_clean = inner.dirty_since_ns.is_none();
        if file.written_bytes > file.synced_bytes {
            inner.dirty_since_ns.get_or_insert(self.clock.monotonic_ns());
        }
        inner.files.push_back(file);
        self.note_overdue(&inner);
        was_clean && inner.dirty_since_ns.is_some()
    }

    /// What memtables held of the logs below `oldest` is in tables: they need no sync any more.
    pub(crate) fn forget_below(&self, oldest: FileNum) {
        self.inner.lock().files.retain(|file| file.num >= oldest);
    }

    /// The logs in use, oldest first, each with how many of its bytes are known to be durable.
    pub(crate) fn known_logs(&self) -> Vec<(FileNum, u64)> {
        let inner = self.inner.lock();
        inner.files.iter().map(|file| (file.num, file.synced_bytes)).collect()
    }

    /// Bytes of the current log that are known to be durable.
    pub(crate) fn current_synced_bytes(&self) -> u64 {
        self.inner.lock().files.back().map_or(0, |file| file.synced_bytes)
    }

    /// The current log has grown to `written_bytes`. Gives the completions back unless the group
    /// has to wait for a sync; the second part says whether the task must be woken.
    pub(crate) fn written(
        &self,
        written_bytes: u64,
        last_seq: SeqNum,
        done: Vec<Completion>,
    ) -> (Option<Vec<Completion>>, bool) {
        let mut inner = self.inner.lock();
        let current = inner.files.back_mut().expect("a log is in use while groups are written");
        current.written_bytes = written_bytes;
        match self.level {
            SyncLevel::Os => (Some(done), false),
            SyncLevel::Interval(_) => {
                let was_clean = inner.dirty_since_ns.is_none();
                if was_clean {
                    inner.dirty_since_ns = Some(self.clock.monotonic_ns());
                    self.note_overdue(&inner);
                }
                (Some(done), was_clean)
            }
            SyncLevel::Always => {
                inner.waiting.push(Waiting { last_seq, done });
                (None, true)
            }
        }
    }

    /// Whether writes have to wait because the interval's promise would break: bytes older than the
    /// last interval, not yet being synced, or a sync that runs for longer than an interval over
    /// that.
    #[inline]
    pub(crate) fn is_overdue(&self) -> bool {
        let overdue_at_ns = self.overdue_at_ns.load(Ordering::Relaxed);
        overdue_at_ns != u64::MAX && self.clock.monotonic_ns() > overdue_at_ns
    }

    fn note_overdue(&self, inner: &Inner) {
        let SyncLevel::Interval(interval) = self.level else {
            return;
        };
        let interval_ns = duration_ns(interval);
        let oldest_ns = inner
            .syncing_since_ns
            .map(|ns| ns.saturating_sub(interval_ns))
            .or(inner.dirty_since_ns);
        let at_ns =
            oldest_ns.map_or(u64::MAX, |ns| ns.saturating_add(interval_ns.saturating_mul(2)));
        self.overdue_at_ns.store(at_ns, Ordering::Relaxed);
    }

    /// Asks for a sync of all that has been written, whatever the level.
    pub(crate) fn ask(&self) {
        self.inner.lock().asked = true;
    }

    /// Whether everything written so far is durable.
    pub(crate) fn is_clean(&self) -> bool {
        let inner = self.inner.lock();
        !inner.asked
            && !inner.failed
            && inner.syncing_since_ns.is_none()
            && inner.waiting.is_empty()
    }

    /// Syncs if a sync is due. Only the task calls this.
    pub(crate) fn sync_due(&self) -> Synced {
        let started_ns = self.clock.monotonic_ns();
        let (files, waiting) = {
            let mut inner = self.inner.lock();
            if let Some(not_before) = self.not_due(&inner, started_ns) {
                return Synced::NotDue(not_before);
            }
            inner.asked = false;
            inner.dirty_since_ns = None;
            inner.syncing_since_ns = Some(started_ns);
            self.note_overdue(&inner);
            let files: Vec<_> = inner
                .files
                .iter()
                .filter(|file| file.written_bytes > file.synced_bytes)
                .map(|file| {
                    (file.num, file.path.clone(), Arc::clone(&file.file), file.written_bytes)
                })
                .collect();
            (files, std::mem::take(&mut inner.waiting))
        };
        let outcome: Result<()> = files.iter().try_for_each(|(_, path, file, _)| {
            self.events
                .sync("wal", || file.sync_data())
                .map_err(|source| Error::io("fsync", path, source))
        });
        let us = self.clock.monotonic_ns().saturating_sub(started_ns) / 1000;
        let visible = waiting.last().map(|waiting| waiting.last_seq);
        let mut done: Vec<Completion> =
            waiting.into_iter().flat_map(|waiting| waiting.done).collect();
        let mut inner = self.inner.lock();
        inner.syncing_since_ns = None;
        self.note_overdue(&inner);
        let synced = match outcome {
            Ok(()) => {
                inner.sync_count += 1;
                inner.sync_us_total += us;
                inner.sync_us_max = inner.sync_us_max.max(us);
                for (num, _, _, written_bytes) in &files {
                    if let Some(file) = inner.files.iter_mut().find(|file| file.num == *num) {
                        file.synced_bytes = *written_bytes;
                    }
                }
                while inner.files.len() > 1
                    && inner.files[0].synced_bytes == inner.files[0].written_bytes
                {
                    inner.files.pop_front();
                }
                Synced::Done { visible, done }
            }
            Err(error) => {
                inner.failed = true;
                done.extend(
                    std::mem::take(&mut inner.waiting).into_iter().flat_map(|waiting| waiting.done),
                );
                Synced::Failed { error, done }
            }
        };
        drop(inner);
        self.synced.notify_all();
        synced
    }

    /// `None` when a sync is due; else when to look again, if ever.
    fn not_due(&self, inner: &Inner, now_ns: u64) -> Option<Option<u64>> {
        if inner.asked || !inner.waiting.is_empty() {
            return None;
        }
        match (self.level, inner.dirty_since_ns) {
            (SyncLevel::Interval(interval), Some(since_ns)) => {
                let due_ns = since_ns.saturating_add(duration_ns(interval));
                (now_ns < due_ns).then_some(Some(due_ns))
            }
            _ => Some(None),
        }
    }

    /// Takes whoever waits for a sync that will never come.
    pub(crate) fn take_waiting(&self) -> Vec<Completion> {
        std::mem::take(&mut self.inner.lock().waiting)
            .into_iter()
            .flat_map(|waiting| waiting.done)
            .collect()
    }

    /// Fills in what this part knows of the statistics.
    pub(crate) fn stats(&self, stats: &mut WalStats) {
        let inner = self.inner.lock();
        stats.sync_count = inner.sync_count;
        stats.sync_us_total = inner.sync_us_total;
        stats.sync_us_max = inner.sync_us_max;
    }
}

fn duration_ns(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX / 4)
}

#[cfg(test)]
mod tests;
