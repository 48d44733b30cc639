//! The parts of an open database and what all of them need.
//!
//! Lock order, outermost first: `versions`, `writer`, `prepared_wal`, the super-version's, the
//! gate's, the log sync's. None is held while a file is read, written or synced, but `writer` (one
//! log write), `versions` (one manifest edit and its sync) and `prepared_wal` (making a log file).

use super::fence::Fence;
use super::health::LastFailure;
use super::snapshot::SnapshotList;
use super::space::DiskSpace;
use super::view::{Views, is_full};
use super::write::{PreparedWal, Writer};
use crate::commit::gate::{Gate, Position};
use crate::commit::queue::CommitQueue;
use crate::commit::sync::LogSync;
use crate::compaction::{CompactionOptions, VersionSummary};
use crate::events::EventSink;
use crate::format::{FileNum, SeqNum};
use crate::options::Options;
use crate::stats::{RecoveryStats, StallReason};
use crate::table::{TableContext, bits_per_key_for};
use crate::version::{KnownLogs, ManifestWriter, ObsoleteQueue};
use kvant_base::limits::LEVELS;
use kvant_base::lock::NamedMutex;
use kvant_base::log::{Level, Log};
use kvant_base::wait::WaitKind;
use kvant_base::{Error, ErrorKind, MemoryBudget, Result};
use kvant_env::{Env, FileLock, Signal, TaskHandle};
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

pub(crate) struct Core {
    // immutable
    pub(crate) env: Env,
    pub(crate) dir: PathBuf,
    pub(crate) options: Options,
    pub(crate) compaction_options: CompactionOptions,
    /// Of the tables of each level.
    pub(crate) filter_bits_per_key: [f64; LEVELS],
    pub(crate) memory: Arc<MemoryBudget>,
    pub(crate) log: Arc<dyn Log>,
    pub(crate) events: EventSink,
    pub(crate) tables: Arc<TableContext>,
    /// Tables that no version needs, to be removed.
    pub(crate) obsolete: Arc<ObsoleteQueue>,

    // own synchronisation
    pub(crate) views: Views,
    /// Newest sequence number that readers see; only grows.
    pub(crate) visible_seq: AtomicU64,
    pub(crate) next_file_num: AtomicU64,
    pub(crate) snapshots: SnapshotList,
    pub(crate) queue: CommitQueue,
    pub(crate) gate: Gate,
    pub(crate) log_sync: LogSync,
    pub(crate) fence: Fence,
    pub(crate) write_failure: LastFailure,
    pub(crate) flush_failure: LastFailure,
    pub(crate) compaction_failure: LastFailure,
    pub(crate) space: DiskSpace,
    pub(crate) counters: Counters,
    pub(crate) recovery: RecoveryStats,
    closed: AtomicBool,
    /// Whether compaction can do nothing about the tables of level 0.
    pub(crate) level_0_stuck: AtomicBool,
    /// How many more looks for a compaction are to be without hope: see
    /// [`crate::compaction::Room`].
    pub(crate) compaction_caution: AtomicU32,
    /// Notified when a flush or compaction has ended or a manual one was asked for.
    pub(crate) progressed: Signal,

    // locks
    pub(crate) versions: NamedMutex<VersionState>,
    pub(crate) writer: NamedMutex<Writer>,
    /// Held while a log is made, so that logs are used in the order of their numbers.
    pub(crate) prepared_wal: NamedMutex<Option<PreparedWal>>,
    pub(crate) manual: NamedMutex<ManualCompaction>,
    pub(crate) flush_failures: NamedMutex<FlushFailures>,
    /// Held for a whole checkpoint: two at once would take each other's files for leftovers.
    /// Outermost.
    pub(crate) checkpointing: NamedMutex<()>,
    tasks: NamedMutex<Option<Tasks>>,
    /// Held for as long as the database is open.
    owner: NamedMutex<Option<Box<dyn FileLock>>>,
}

/// What changes with a manifest edit.
pub(crate) struct VersionState {
    pub(crate) manifest: ManifestWriter,
    /// Largest sequence number in a table.
    pub(crate) last_seq: SeqNum,
    /// The oldest log that is needed.
    pub(crate) oldest_wal: FileNum,
    /// The logs from there on, as far as the manifest knows them.
    pub(crate) logs: KnownLogs,
    /// Tables that compaction leaves alone because a block of theirs is unreadable.
    pub(crate) unreadable: HashSet<FileNum>,
}

/// Requests of [`crate::Db::compact`] and how many have been served.
#[derive(Default)]
pub(crate) struct ManualCompaction {
    pub(crate) asked: u64,
    pub(crate) served: u64,
    pub(crate) failure: Option<Error>,
}

/// How often a flush has failed, and why last: for [`crate::Db::flush`].
#[derive(Default)]
pub(crate) struct FlushFailures {
    pub(crate) count: u64,
    pub(crate) last: Option<Error>,
}

/// The background tasks.
pub(crate) struct Tasks {
    pub(crate) sync: Arc<dyn TaskHandle>,
    pub(crate) flush: Arc<dyn TaskHandle>,
    pub(crate) compact: Arc<dyn TaskHandle>,
    pub(crate) clean: Arc<dyn TaskHandle>,
}

impl Tasks {
    fn all(&self) -> [&Arc<dyn TaskHandle>; 4] {
        [&self.sync, &self.flush, &self.compact, &self.clean]
    }
}

/// Counters for the statistics, since the database was opened.
#[derive(Default)]
pub(crate) struct Counters {
    pub(crate) operations: AtomicU64,
    pub(crate) groups: AtomicU64,
    pub(crate) user_bytes: AtomicU64,
    pub(crate) wal_bytes: AtomicU64,
    pub(crate) manifest_bytes: AtomicU64,
    pub(crate) gets: AtomicU64,
    pub(crate) present: AtomicU64,
    pub(crate) present_from_table: AtomicU64,
    pub(crate) present_fetches: AtomicU64,
    pub(crate) absent_fetches: AtomicU64,
    pub(crate) ranges: AtomicU64,
    pub(crate) range_records: AtomicU64,
    pub(crate) range_skipped: AtomicU64,
    pub(crate) flushes: JobCounters,
    pub(crate) compactions: JobCounters,
    /// Bytes written into each level.
    pub(crate) level_written: [AtomicU64; LEVELS],
}

#[derive(Default)]
pub(crate) struct JobCounters {
    pub(crate) running: AtomicU64,
    pub(crate) count: AtomicU64,
    pub(crate) failed: AtomicU64,
    pub(crate) read_bytes: AtomicU64,
    pub(crate) written_bytes: AtomicU64,
    pub(crate) busy_us: AtomicU64,
}

/// What [`Core::new`] puts together: all of it comes from recovery.
pub(crate) struct Parts {
    pub(crate) env: Env,
    pub(crate) dir: PathBuf,
    pub(crate) options: Options,
    pub(crate) memory: Arc<MemoryBudget>,
    pub(crate) log: Arc<dyn Log>,
    pub(crate) events: EventSink,
    pub(crate) tables: Arc<TableContext>,
    pub(crate) obsolete: Arc<ObsoleteQueue>,
    pub(crate) views: Views,
    pub(crate) visible_seq: SeqNum,
    pub(crate) next_file_num: FileNum,
    pub(crate) log_sync: LogSync,
    pub(crate) space: DiskSpace,
    pub(crate) versions: VersionState,
    pub(crate) writer: Writer,
    pub(crate) recovery: RecoveryStats,
    pub(crate) owner: Box<dyn FileLock>,
}

impl Core {
    pub(crate) fn new(parts: Parts) -> Arc<Core> {
        let gate_burst_bytes = parts.options.memtable_bytes / 8;
        Arc::new(Core {
            compaction_options: CompactionOptions::new(&parts.options),
            filter_bits_per_key: filter_bits_per_key(&parts.options),
            gate: Gate::new(
                Arc::clone(&parts.env.clock),
                Arc::clone(&parts.log),
                parts.events.clone(),
                gate_burst_bytes,
            ),
            env: parts.env,
            dir: parts.dir,
            options: parts.options,
            memory: parts.memory,
            log: parts.log,
            events: parts.events,
            tables: parts.tables,
            obsolete: parts.obsolete,
            views: parts.views,
            visible_seq: AtomicU64::new(parts.visible_seq.0),
            next_file_num: AtomicU64::new(parts.next_file_num.0),
            snapshots: SnapshotList::new(),
            queue: CommitQueue::new(),
            log_sync: parts.log_sync,
            fence: Fence::default(),
            write_failure: LastFailure::new(),
            flush_failure: LastFailure::new(),
            compaction_failure: LastFailure::new(),
            space: parts.space,
            counters: Counters::default(),
            recovery: parts.recovery,
            closed: AtomicBool::new(false),
            level_0_stuck: AtomicBool::new(false),
            compaction_caution: AtomicU32::new(0),
            progressed: Signal::new(WaitKind::Backpressure, "flush_or_compaction"),
            versions: NamedMutex::new("versions", parts.versions),
            writer: NamedMutex::new("writer", parts.writer),
            prepared_wal: NamedMutex::new("prepared_wal", None),
            manual: NamedMutex::new("manual_compaction", ManualCompaction::default()),
            flush_failures: NamedMutex::new("flush_failures", FlushFailures::default()),
            checkpointing: NamedMutex::new("checkpoint", ()),
            tasks: NamedMutex::new("tasks", None),
            owner: NamedMutex::new("owner", Some(parts.owner)),
        })
    }

    /// `Closed` once the database has been closed.
    #[inline]
    pub(crate) fn check_usable(&self) -> Result<()> {
        if self.is_closed() {
            Err(Error::new(ErrorKind::Closed, "the database is closed"))
        } else {
            Ok(())
        }
    }

    /// `Fenced` after a failure that leaves unknown what the disk holds.
    #[inline]
    pub(crate) fn check_writable(&self) -> Result<()> {
        self.fence.check()
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// From now on everything but the end of background work is refused.
    pub(crate) fn begin_close(&self) {
        self.closed.store(true, Ordering::Release);
    }

    pub(crate) fn new_file_num(&self) -> FileNum {
        FileNum(self.next_file_num.fetch_add(1, Ordering::Relaxed))
    }

    pub(crate) fn set_tasks(&self, tasks: Tasks) {
        *self.tasks.lock() = Some(tasks);
    }

    /// Wakes a background task; nothing once they have ended.
    pub(crate) fn wake(&self, which: impl FnOnce(&Tasks) -> &Arc<dyn TaskHandle>) {
        if let Some(tasks) = self.tasks.lock().as_ref() {
            which(tasks).wake();
        }
    }

    pub(crate) fn wake_all(&self) {
        if let Some(tasks) = self.tasks.lock().as_ref() {
            tasks.all().iter().for_each(|task| task.wake());
        }
    }

    /// Ends the background tasks and gives up the directory.
    pub(crate) fn end_tasks(&self) {
        let tasks = self.tasks.lock().take();
        if let Some(tasks) = tasks {
            let all = tasks.all();
            all.iter().for_each(|task| task.wake());
            all.iter().for_each(|task| task.join());
        }
        *self.owner.lock() = None;
    }

    /// Makes names in the data directory durable. A failure fences: what the directory holds is
    /// unknown from then on.
    pub(crate) fn sync_dir(&self) -> Result<()> {
        self.events
            .sync("directory", || self.env.fs.sync_dir(&self.dir))
            .map_err(|source| self.fence(Error::io("fsync", &self.dir, source)))
    }

    /// Removes a file that is not needed; a failure is logged, and the file is removed at the next
    /// open.
    pub(crate) fn remove_file(&self, path: &Path) {
        if let Err(error) = self.env.fs.remove_file(path) {
            let error = Error::io("remove", path, error);
            self.log.event(Level::Warn, "file_not_removed", &[("error", &error)]);
        }
    }

    /// Shows `look` the current tree as the compaction picker sees it.
    pub(crate) fn with_summary<R>(&self, look: impl FnOnce(&VersionSummary<'_>) -> R) -> R {
        let versions = self.versions.lock();
        let view = self.views.load_full();
        let oldest_snapshot = self.snapshots.seqs().first().copied();
        let now_ms = self.env.clock.wall_ms();
        look(&VersionSummary::new(&view.version, &versions.unreadable, oldest_snapshot, now_ms))
    }

    /// Moves the gate to where the state of the tree wants it.
    pub(crate) fn update_gate(&self) {
        self.gate.update(|| self.position());
    }

    fn position(&self) -> Position {
        if self.fence.cause().is_some() || self.is_closed() {
            // Whoever waits is to learn that no write will ever pass.
            return Position::Open;
        }
        if self.log_sync.is_overdue() {
            return Position::Closed { reason: StallReason::SyncOverdue };
        }
        if self.space.is_full() {
            // Puts are refused before they come here; a delete waits for no flush or compaction,
            // which may find no room.
            return Position::Open;
        }
        let view = self.views.load();
        let full = is_full(&view.active, &self.options);
        if full && view.sealed.len() >= self.options.memtables_sealed_max {
            return Position::Closed { reason: StallReason::Memtables };
        }
        let (l0_count, reason) = (view.version.tables(0).len(), StallReason::L0Tables);
        let (slow, stop) = (self.options.l0_slow_count, self.options.l0_stop_count);
        if l0_count < slow || self.level_0_stuck.load(Ordering::Relaxed) {
            Position::Open
        } else if l0_count < stop {
            let earn = (stop - l0_count) as f64 / (stop - slow) as f64;
            Position::Slowed { reason, earn }
        } else {
            Position::Closed { reason }
        }
    }
}

/// Bits per key of each level's filters, such that the false positives of all levels sum to the
/// share that the options allow: the last level, which holds nine tenths of the keys, gets half of
/// it, and the others share the other half.
fn filter_bits_per_key(options: &Options) -> [f64; LEVELS] {
    let half = options.filter_false_positive_share / 2.0;
    let mut bits = [bits_per_key_for(half / (LEVELS - 1) as f64); LEVELS];
    bits[LEVELS - 1] = bits_per_key_for(half);
    bits
}
