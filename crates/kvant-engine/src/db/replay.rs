//! Replay: the records of the log become memtables again.
//!
//! The log is in the order of time, and so are the inserts: memtables are put in key order when a
//! range reads them, and sorted for the flush. A bad record fails the whole opening.
//!
//! Invariants:
//! 1. memtables change only between log files, so that a flush frees whole files;
//! 2. when [`Replay::run`] returns, every good record is in a memtable, and `sealed` and `active`
//!    follow the order of the log;
//! 3. memory beyond the memtables is bounded by the log reader's buffers.
//!
//! Threads: one, before the database is shared.

use super::inventory::{first_seq, needed_wals, read_logs};
use crate::batch::Op;
use crate::context::Context;
use crate::context::resources::RecoveryProgress;
use crate::format::{FileNum, InternalKeyRef, SeqNum};
use crate::memtable::MemtableWriter;
use crate::stats::RecoveryStats;
use crate::tree::view::{SealedMemtable, is_full, new_memtable};
use crate::version::{Listed, ManifestState};
use crate::wal::{RecoveredWal, WalRecord};
use kvant_base::Result;
use kvant_base::log::Level;
use kvant_base::tag::{self, Stage};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Logs that one memtable may keep from restart to restart.
const WALS_PER_MEMTABLE_MAX: usize = 4;

/// A replay, and the memtables that the log becomes.
pub(super) struct Replay<'a> {
    context: &'a Context,
    progress: &'a RecoveryProgress,
    state: &'a ManifestState,
    pub(super) next_seq: SeqNum,
    /// Oldest first.
    pub(super) sealed: Vec<SealedMemtable>,
    pub(super) active: MemtableWriter,
    /// The oldest log file with a record in `active`.
    pub(super) active_wal: Option<FileNum>,
    pub(super) stats: RecoveryStats,
    last_wal: FileNum,
}

impl<'a> Replay<'a> {
    pub(super) fn new(
        context: &'a Context,
        progress: &'a RecoveryProgress,
        state: &'a ManifestState,
    ) -> Replay<'a> {
        Replay {
            context,
            progress,
            state,
            next_seq: first_seq(state),
            sealed: Vec::new(),
            active: new_memtable(&context.chunks, &context.options, None),
            active_wal: None,
            stats: RecoveryStats::default(),
            last_wal: FileNum(0),
        }
    }

    /// Replays the log files that are needed, and returns them.
    pub(super) fn run(&mut self, files: &[Listed]) -> Result<Vec<RecoveredWal>> {
        let nums = needed_wals(files, self.state.oldest_wal);
        let bytes_of = |(_, num, entry): &Listed| nums.contains(num).then_some(entry.len_bytes);
        self.progress.total_bytes.store(files.iter().filter_map(bytes_of).sum(), Ordering::Relaxed);
        let (state, Context { env, dir, .. }) = (self.state, self.context);
        let wals = read_logs(env, dir, files, state, &mut |num, record| self.apply(num, &record))?;
        for wal in &wals {
            self.stats.wal_bytes += wal.end.good_bytes;
            self.stats.discarded_bytes += wal.end.discarded_bytes;
            if wal.end.discarded_bytes > 0 {
                self.note_discarded(wal);
            }
        }
        Ok(wals)
    }

    /// Seals the active memtable if restarts have kept many logs for it. There must be a new log:
    /// that of the new memtable may not have records of another one.
    pub(super) fn seal_if_kept_long(&mut self, wals: &[RecoveredWal]) {
        if let Some(first_wal) = self.active_wal
            && wals.iter().filter(|wal| wal.file_num >= first_wal).count() >= WALS_PER_MEMTABLE_MAX
        {
            self.seal();
        }
    }

    fn apply(&mut self, num: FileNum, record: &WalRecord<'_>) -> Result<()> {
        if self.active_wal.is_some() && self.last_wal != num {
            self.begin_file();
        }
        self.last_wal = num;
        // A closing record alone is nothing to keep a log for.
        if record.op_count > 0 {
            self.active_wal.get_or_insert(num);
        }
        let _tag = tag::stage(Stage::Memtable);
        let active = &mut self.active;
        record.replay(|seq, op| {
            let Op { kind, key, stored } = op;
            active.insert(std::iter::once((InternalKeyRef::new(key, seq, kind), stored)));
            Ok(())
        })?;
        self.next_seq = record.next_seq();
        self.stats.wal_record_count += 1;
        self.progress.done_bytes.fetch_add(record.bytes(), Ordering::Relaxed);
        Ok(())
    }

    /// Between two files a full memtable is sealed.
    fn begin_file(&mut self) {
        if is_full(self.active.memtable(), &self.context.options) {
            self.seal();
        }
    }

    fn seal(&mut self) {
        let full = std::mem::replace(
            &mut self.active,
            new_memtable(&self.context.chunks, &self.context.options, None),
        );
        let memtable = Arc::clone(full.memtable());
        let first_wal = self.active_wal.take().expect("a memtable with entries has a log");
        self.sealed.push(SealedMemtable { memtable, first_wal });
    }

    fn note_discarded(&self, wal: &RecoveredWal) {
        self.context.log.event(
            Level::Warn,
            "log_tail_discarded",
            &[
                ("wal", &wal.file_num.0),
                ("good_bytes", &wal.end.good_bytes),
                ("discarded_bytes", &wal.end.discarded_bytes),
                ("why", &wal.end.reason),
            ],
        );
    }
}
