//! Replay: the records of the log become memtables again.
//!
//! The log is in the order of time. Inserted in that order, every operation would search a skip list that no
//! cache holds. So operations are collected into a [`Run`], put into key order, and inserted ascending, which
//! needs no search as long as a memtable is one run. A record that turns out bad ends the opening, and what was
//! collected before it goes with the rest.
//!
//! Invariants:
//! 1. memtables change only between log files, so that a flush frees whole files;
//! 2. when [`Replay::run`] returns, every good record is in a memtable, and `sealed` and `active` follow the
//!    order of the log;
//! 3. memory beyond the memtables is bounded: by [`RUN_BYTES_MAX`] and by what the log's reader needs.
//!
//! Threads: one, before anyone else knows the database.

use super::Resources;
use super::recovery::{RecoveryProgress, is_full, needed_wals, new_memtable};
use super::view::SealedMemtable;
use crate::batch::Op;
use crate::format::{FileKind, FileNum, InternalKeyRef, SeqNum, file_path};
use crate::memtable::Memtable;
use crate::options::Options;
use crate::stats::RecoveryStats;
use crate::version::RecoveredManifest;
use crate::wal::{self, RecoveredWal, WalRecord};
use kvant_base::log::{Level, Log};
use kvant_base::{Error, MemoryBudget, Result};
use kvant_env::{DirEntry, Env};
use run::Run;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

mod run;

/// Largest run. A full memtable of the default settings is one run: the operations of a memtable take less as
/// a run than in the memtable.
const RUN_BYTES_MAX: usize = 32 << 20;
/// An operation with a larger value is inserted as it comes: a search costs less than copying it once more.
const VALUE_BYTES_MAX: usize = 64 << 10;

/// Logs that one memtable may keep from restart to restart.
const WALS_PER_MEMTABLE_MAX: usize = 4;

/// What the log becomes.
pub(super) struct Replay<'a> {
    env: &'a Env,
    dir: &'a Path,
    options: &'a Options,
    memory: Arc<MemoryBudget>,
    log: Arc<dyn Log>,
    progress: Arc<RecoveryProgress>,
    oldest_wal: FileNum,
    pub(super) next_seq: SeqNum,
    /// Oldest first.
    pub(super) sealed: Vec<SealedMemtable>,
    pub(super) active: Arc<Memtable>,
    /// The oldest log file with a record in `active`.
    pub(super) active_wal: Option<FileNum>,
    pub(super) stats: RecoveryStats,
    /// The log file of the last record.
    last_wal: FileNum,
    /// What is on its way into `active`.
    run: Run,
}

impl<'a> Replay<'a> {
    pub(super) fn new(
        env: &'a Env,
        dir: &'a Path,
        options: &'a Options,
        resources: &Resources,
        manifest: &RecoveredManifest,
    ) -> Replay<'a> {
        let run_bytes_max = usize::try_from(options.memtable_bytes).unwrap_or(RUN_BYTES_MAX);
        let run_bytes_max = run_bytes_max.min(RUN_BYTES_MAX);
        Replay {
            env,
            dir,
            options,
            memory: Arc::clone(&resources.memory),
            log: Arc::clone(&resources.log),
            progress: Arc::clone(&resources.progress),
            oldest_wal: manifest.state.oldest_wal,
            next_seq: SeqNum(manifest.state.last_seq.0 + 1),
            sealed: Vec::new(),
            active: Arc::new(new_memtable(&resources.memory, options)),
            active_wal: None,
            stats: RecoveryStats::default(),
            last_wal: FileNum(0),
            run: Run::new(&resources.memory, run_bytes_max),
        }
    }

    /// Replays the log files that are needed, and returns those that go on being needed.
    pub(super) fn run(&mut self, files: &[(FileKind, FileNum, DirEntry)]) -> Result<Vec<RecoveredWal>> {
        let nums = needed_wals(files, self.oldest_wal);
        self.check_oldest(files)?;
        let bytes_of =
            |(_, num, entry): &(FileKind, FileNum, DirEntry)| nums.contains(num).then_some(entry.len_bytes);
        self.progress
            .total_bytes
            .store(files.iter().filter_map(bytes_of).sum(), Ordering::Relaxed);
        let first_seq = Some(self.next_seq);
        let (env, dir) = (self.env, self.dir);
        let wals = wal::recover(&*env.fs, dir, &nums, first_seq, &mut |num, record| {
            self.apply(num, &record)
        })?;
        self.run.insert_into(&self.active);
        if let Some(first_wal) = self.active_wal
            && wals.iter().filter(|wal| wal.file_num >= first_wal).count() >= WALS_PER_MEMTABLE_MAX
        {
            self.seal();
        }
        for wal in &wals {
            self.stats.wal_bytes += wal.end.good_bytes;
            self.stats.discarded_bytes += wal.end.discarded_bytes;
            if wal.end.discarded_bytes > 0 {
                self.note_discarded(wal);
            }
        }
        Ok(wals)
    }

    /// The manifest names the oldest log that it needs; it is made before the manifest says so.
    fn check_oldest(&self, files: &[(FileKind, FileNum, DirEntry)]) -> Result<()> {
        let exists = files
            .iter()
            .any(|(kind, num, _)| *kind == FileKind::Wal && *num == self.oldest_wal);
        if self.oldest_wal == FileNum(0) || exists {
            return Ok(());
        }
        let path = file_path(self.dir, FileKind::Wal, self.oldest_wal);
        Err(Error::corruption(
            &path,
            0,
            "a log file that the manifest needs is missing",
        ))
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
        let (run, active) = (&mut self.run, &self.active);
        record.replay(|seq, op| {
            let Op { kind, key, stored } = op;
            let key = InternalKeyRef::new(key, seq, kind);
            if stored.len() > VALUE_BYTES_MAX {
                active.insert(key, stored);
                return Ok(());
            }
            run.push(key, stored);
            if run.is_full() {
                run.insert_into(active);
            }
            Ok(())
        })?;
        self.next_seq = SeqNum(record.first_seq.0 + u64::from(record.op_count));
        self.stats.wal_record_count += 1;
        self.progress
            .done_bytes
            .fetch_add(record.bytes(), Ordering::Relaxed);
        Ok(())
    }

    /// A file is over: a memtable that is full by now gets no more.
    fn begin_file(&mut self) {
        self.run.insert_into(&self.active);
        if is_full(&self.active, self.options) {
            self.seal();
        }
    }

    fn seal(&mut self) {
        let next = Arc::new(new_memtable(&self.memory, self.options));
        let memtable = std::mem::replace(&mut self.active, next);
        let first_wal = self.active_wal.take().expect("a memtable with entries has a log");
        self.sealed.push(SealedMemtable { memtable, first_wal });
    }

    fn note_discarded(&self, wal: &RecoveredWal) {
        self.log.event(
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
