//! When the log is synced, and the groups that wait for it.
//!
//! One background task syncs for all writers. `always`: as soon as a group has been written; groups
//! written during one fsync share the next. `interval`: once per interval while there is something
//! to sync. `os`: only when the database is closed.
//!
//! Invariants:
//! 1. log files are synced oldest first, so that the durable part is a prefix of the history;
//! 2. a failed sync is never repeated: the state of the pages is unknown (see `kvant_env::fs`), so
//!    writes are fenced for good. Bytes of an earlier process, one of whose syncs may have failed,
//!    are written again before they are synced.
//!
//! Threads: the leader reports writes, the task syncs; no lock is held during an fsync.

use super::queue::Completion;
use crate::events::EventSink;
use crate::format::{FileNum, SeqNum};
use crate::options::SyncLevel;
use crate::stats::WalStats;
use kvant_base::lock::NamedMutex;
use kvant_base::log::{Level, Log};
use kvant_base::wait::WaitKind;
use kvant_base::{Error, ErrorKind, Result};
use kvant_env::{Clock, File, Signal};
use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Between two attempts to write bytes again for which there is no space.
const ATTEMPT_INTERVAL_NS: u64 = 100_000_000;

/// A log file that may hold bytes which are not durable.
#[derive(Clone)]
pub(crate) struct LogFile {
    pub(crate) num: FileNum,
    pub(crate) path: PathBuf,
    pub(crate) file: Arc<dyn File>,
    pub(crate) written_bytes: u64,
    pub(crate) synced_bytes: u64,
    /// What an earlier process has written and may have failed to sync, up to here.
    pub(crate) doubtful_bytes: u64,
}

impl LogFile {
    fn write_again(&self) -> Result<()> {
        let doubtful = self.synced_bytes..self.doubtful_bytes;
        if doubtful.is_empty() {
            return Ok(());
        }
        self.file.write_again(doubtful).map_err(|e| Error::io("write", &self.path, e))
    }
}

struct WaitingGroup {
    last_seq: SeqNum,
    done: Vec<Completion>,
}

pub(crate) struct LogSync {
    level: SyncLevel,
    clock: Arc<dyn Clock>,
    events: EventSink,
    log: Arc<dyn Log>,
    inner: NamedMutex<Inner>,
    /// When [`LogSync::is_overdue`] becomes true unless a sync ends before; `u64::MAX` for never.
    /// Outside the lock, because every submitted batch reads it.
    overdue_at_ns: AtomicU64,
    /// Notified after every sync, and when writes are fenced.
    pub(crate) synced: Signal,
}

#[derive(Default)]
struct Inner {
    /// Oldest first; the last is being written.
    files: VecDeque<LogFile>,
    waiting: Vec<WaitingGroup>,
    /// When the oldest byte that is not durable was written.
    dirty_since_ns: Option<u64>,
    /// When the running sync began.
    syncing_since_ns: Option<u64>,
    /// A sync is due whatever the level.
    requested: bool,
    /// Why the last sync was put off.
    put_off: Option<Error>,
    failed: bool,
    /// Only what concerns syncs.
    stats: WalStats,
}

/// What one call of [`LogSync::sync_due`] did.
pub(crate) enum Synced {
    /// Nothing was due, or could be done. The next sync is due at this time, if any.
    NotDue(Option<u64>),
    /// Everything written before the call is durable.
    Done { visible: Option<SeqNum>, done: Vec<Completion> },
    /// An fsync failed: the outcome of all groups that waited is unknown.
    Failed { error: Error, done: Vec<Completion> },
}

impl LogSync {
    pub(crate) fn new(
        level: SyncLevel,
        clock: Arc<dyn Clock>,
        events: EventSink,
        log: Arc<dyn Log>,
    ) -> LogSync {
        LogSync {
            level,
            clock,
            events,
            log,
            inner: NamedMutex::new("log_sync", Inner::default()),
            overdue_at_ns: AtomicU64::new(u64::MAX),
            synced: Signal::new(WaitKind::Io, "log_sync"),
        }
    }

    /// Adds a log file, which is written from now on; those before it are not. True: there was
    /// nothing to sync and now there is, so the task must be woken.
    pub(crate) fn add_file(&self, file: LogFile) -> bool {
        let mut inner = self.inner.lock();
        let was_clean = inner.dirty_since_ns.is_none();
        if file.written_bytes > file.synced_bytes {
            inner.dirty_since_ns.get_or_insert(self.clock.monotonic_ns());
        }
        inner.files.push_back(file);
        self.update_overdue(&inner);
        was_clean && inner.dirty_since_ns.is_some()
    }

    /// Forgets the logs below `oldest`: what memtables held of them is in tables.
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

    /// A group was written, and the current log has grown to `written_bytes`. Returns the group's
    /// completions unless it has to wait for a sync, and whether the task must be woken.
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
                    self.update_overdue(&inner);
                }
                (Some(done), was_clean)
            }
            SyncLevel::Always => {
                inner.waiting.push(WaitingGroup { last_seq, done });
                (None, true)
            }
        }
    }

    /// Whether writes have to wait because the interval's promise would break: there are bytes
    /// older than two intervals that are not being synced, or a sync has been running for more than
    /// an interval.
    #[inline]
    pub(crate) fn is_overdue(&self) -> bool {
        let overdue_at_ns = self.overdue_at_ns.load(Ordering::Relaxed);
        overdue_at_ns != u64::MAX && self.clock.monotonic_ns() > overdue_at_ns
    }

    fn update_overdue(&self, inner: &Inner) {
        let SyncLevel::Interval(interval) = self.level else {
            return;
        };
        let interval_ns = duration_ns(interval);
        let at_ns = match (inner.syncing_since_ns, inner.dirty_since_ns) {
            (Some(syncing_ns), _) => syncing_ns.saturating_add(interval_ns),
            (None, Some(dirty_ns)) => dirty_ns.saturating_add(interval_ns.saturating_mul(2)),
            (None, None) => u64::MAX,
        };
        self.overdue_at_ns.store(at_ns, Ordering::Relaxed);
    }

    /// Requests a sync of all that has been written, whatever the level.
    pub(crate) fn request(&self) {
        self.inner.lock().requested = true;
    }

    /// Whether everything written so far is durable, as far as the level promises it.
    pub(crate) fn is_clean(&self) -> bool {
        let inner = self.inner.lock();
        !inner.requested
            && !inner.failed
            && inner.syncing_since_ns.is_none()
            && inner.waiting.is_empty()
    }

    /// Why what was written is not durable, if a sync was put off.
    pub(crate) fn put_off_error(&self) -> Option<Error> {
        self.inner.lock().put_off.clone()
    }

    /// Syncs if a sync is due. Only the task calls this.
    pub(crate) fn sync_due(&self) -> Synced {
        let started_ns = self.clock.monotonic_ns();
        let (files, waiting, dirty_since_ns) = {
            let mut inner = self.inner.lock();
            if let Some(not_before) = self.not_due(&inner, started_ns) {
                return Synced::NotDue(not_before);
            }
            inner.requested = false;
            let dirty_since_ns = inner.dirty_since_ns.take();
            inner.syncing_since_ns = Some(started_ns);
            self.update_overdue(&inner);
            let is_dirty = |file: &&LogFile| file.written_bytes > file.synced_bytes;
            let files: Vec<LogFile> = inner.files.iter().filter(is_dirty).cloned().collect();
            (files, std::mem::take(&mut inner.waiting), dirty_since_ns)
        };
        let rewritten = files.iter().try_for_each(LogFile::write_again);
        // Also where there was no space for that: newer logs need none.
        let outcome: Result<()> = files.iter().try_for_each(|LogFile { path, file, .. }| {
            self.events
                .sync("wal", || file.sync_data())
                .map_err(|source| Error::io("fsync", path, source))
        });
        let outcome = match rewritten {
            Err(error)
                if outcome.is_ok() && waiting.is_empty() && error.kind() == ErrorKind::NoSpace =>
            {
                // There may be space later. Meanwhile writes are held back as overdue.
                return self.put_off(error, dirty_since_ns);
            }
            rewritten => outcome.and(rewritten),
        };
        let us = self.clock.monotonic_ns().saturating_sub(started_ns) / 1000;
        let visible = waiting.last().map(|group| group.last_seq);
        let done = waiting.into_iter().flat_map(|group| group.done).collect();
        let mut inner = self.inner.lock();
        inner.syncing_since_ns = None;
        self.update_overdue(&inner);
        let synced = match outcome {
            Ok(()) => {
                inner.note_synced(&files, us);
                Synced::Done { visible, done }
            }
            Err(error) => {
                inner.failed = true;
                Synced::Failed { error, done }
            }
        };
        drop(inner);
        self.synced.notify_all();
        synced
    }

    /// Leaves what was to be synced to a later attempt.
    fn put_off(&self, error: Error, dirty_since_ns: Option<u64>) -> Synced {
        let mut inner = self.inner.lock();
        let is_first = inner.put_off.replace(error.clone()).is_none();
        inner.syncing_since_ns = None;
        inner.dirty_since_ns = dirty_since_ns.or(inner.dirty_since_ns);
        self.update_overdue(&inner);
        drop(inner);
        self.synced.notify_all();
        if is_first {
            self.log.event(Level::Error, "sync_put_off", &[("error", &error)]);
        }
        let is_regular = matches!(self.level, SyncLevel::Interval(_));
        Synced::NotDue(is_regular.then(|| self.clock.monotonic_ns() + ATTEMPT_INTERVAL_NS))
    }

    /// `None` when a sync is due; else when the next is, if any.
    fn not_due(&self, inner: &Inner, now_ns: u64) -> Option<Option<u64>> {
        if inner.requested || !inner.waiting.is_empty() {
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

    /// Takes the groups that wait for a sync that will never happen.
    pub(crate) fn take_waiting(&self) -> Vec<Completion> {
        let waiting = std::mem::take(&mut self.inner.lock().waiting);
        waiting.into_iter().flat_map(|group| group.done).collect()
    }

    /// The number and the times of the syncs; the rest is 0.
    pub(crate) fn stats(&self) -> WalStats {
        self.inner.lock().stats.clone()
    }
}

impl Inner {
    /// Those of `files` that are complete are forgotten.
    fn note_synced(&mut self, files: &[LogFile], us: u64) {
        self.put_off = None;
        self.stats.sync_count += 1;
        self.stats.sync_us_total += us;
        self.stats.sync_us_max = self.stats.sync_us_max.max(us);
        for synced in files {
            if let Some(file) = self.files.iter_mut().find(|file| file.num == synced.num) {
                file.synced_bytes = synced.written_bytes;
            }
        }
        while self.files.len() > 1 && self.files[0].synced_bytes == self.files[0].written_bytes {
            self.files.pop_front();
        }
    }
}

fn duration_ns(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX / 4)
}

#[cfg(test)]
mod tests;
