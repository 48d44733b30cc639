//! The flush task: the oldest sealed memtable becomes a level-0 table.
//!
//! Only what is visible is flushed, so that tables never hold a write whose outcome is unknown.

use super::core::Core;
use super::space::flush_bytes;
use super::view::SealedMemtable;
use crate::compaction::runner::Outputs;
use crate::events::{failure, number};
use crate::format::{FileKind, FileNum, SeqNum, file_path, parse_file_name};
use crate::iter::{CompactionIter, Horizon, MergeIter};
use crate::version::VersionEdit;
use kvant_base::events::EventKind;
use kvant_base::log::Level;
use kvant_base::tag::{self, Activity};
use kvant_base::{Error, ErrorKind, Result};
use kvant_env::{Step, Task};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// How long a flush or compaction that failed waits before it is tried again.
pub(crate) const RETRY_NS: u64 = 500_000_000;

pub(crate) struct FlushTask(pub(crate) Arc<Core>);

impl Task for FlushTask {
    fn name(&self) -> &str {
        "kvant-flush"
    }

    fn step(&self) -> Step {
        let _tag = tag::enter(Activity::Flush);
        let core = &self.0;
        if core.is_closed() {
            return Step::Finished;
        }
        if core.fence.cause().is_some() {
            return Step::Idle;
        }
        match core.flush_step() {
            Ok(worked) => {
                core.flush_failure.note_success();
                if worked { Step::Worked } else { Step::Idle }
            }
            Err(error) => {
                core.flush_failure.note(&error, core.env.clock.monotonic_ns());
                core.counters.flushes.failed.fetch_add(1, Ordering::Relaxed);
                let is_known = error.kind() == ErrorKind::NoSpace && core.space.is_full();
                if !is_known {
                    core.log.event(Level::Error, "flush_failed", &[("error", &error)]);
                }
                if error.kind() == ErrorKind::NoSpace {
                    core.note_disk_full();
                    core.note_space_freed();
                }
                core.note_flush_failure(error);
                Step::IdleUntil(core.env.clock.monotonic_ns() + RETRY_NS)
            }
        }
    }
}

impl Core {
    /// True when there was something to do.
    fn flush_step(&self) -> Result<bool> {
        let prepared = self.prepare_next_wal();
        if self.space.take_early_seal() {
            self.seal_early()?;
        }
        self.record_new_logs();
        let oldest = self.views.load().sealed.last().cloned();
        let Some(oldest) = oldest else { return prepared };
        if oldest.seq_max() > SeqNum(self.visible_seq.load(Ordering::Acquire)) {
            // The sync that makes it visible wakes this task.
            return prepared;
        }
        // A log that could not be made for want of space is made after this, which frees one.
        self.flush(&oldest)?;
        Ok(true)
    }

    /// True when there was none.
    fn prepare_next_wal(&self) -> Result<bool> {
        let mut prepared = self.prepared_wal.lock();
        let is_missing = prepared.is_none();
        if is_missing {
            *prepared = Some(self.prepare_wal()?);
        }
        Ok(is_missing)
    }

    /// On a full disk: what the active memtable deletes is to be found by compactions.
    fn seal_early(&self) -> Result<()> {
        let mut writer = self.writer.lock();
        let is_wanted = !writer.active.memtable().is_empty() && self.views.load().sealed.is_empty();
        if is_wanted && self.space.make_room(flush_bytes(writer.active.memtable()))?.is_some() {
            self.seal(&mut writer)?;
        }
        Ok(())
    }

    /// Tells those who wait for a flush.
    fn note_flush_failure(&self, error: Error) {
        let mut failures = self.flush_failures.lock();
        failures.count += 1;
        failures.last = Some(error);
        drop(failures);
        self.progressed.notify_all();
    }

    fn flush(&self, sealed: &Arc<SealedMemtable>) -> Result<()> {
        let Some(room) = self.space.make_room(flush_bytes(&sealed.memtable))? else {
            return Err(Error::new(ErrorKind::NoSpace, "no room for the table of a flush")
                .with_file(&self.dir));
        };
        let started_ns = self.env.clock.monotonic_ns();
        let counters = &self.counters.flushes;
        counters.running.store(1, Ordering::Relaxed);
        let span = self.events.begin(
            EventKind::Flush,
            vec![
                ("level", number(0)),
                ("entries", number(sealed.memtable.entry_count())),
                ("memtable_bytes", number(sealed.memtable.memory_bytes())),
            ],
        );
        let result = self.flush_to_table(sealed);
        let end = match &result {
            Ok(outputs) => vec![("table_bytes", number(outputs.written_bytes))],
            Err(error) => failure(error),
        };
        self.events.end(span, end);
        counters.running.store(0, Ordering::Relaxed);
        let outputs = result?;
        let us = (self.env.clock.monotonic_ns() - started_ns) / 1000;
        counters.count.fetch_add(1, Ordering::Relaxed);
        counters.busy_us.fetch_add(us, Ordering::Relaxed);
        counters.read_bytes.fetch_add(sealed.memtable.memory_bytes(), Ordering::Relaxed);
        counters.written_bytes.fetch_add(outputs.written_bytes, Ordering::Relaxed);
        self.counters.level_written[0].fetch_add(outputs.written_bytes, Ordering::Relaxed);
        self.log.event(
            Level::Info,
            "flush",
            &[
                ("entries", &sealed.memtable.entry_count()),
                ("memtable_bytes", &sealed.memtable.memory_bytes()),
                ("table_bytes", &outputs.written_bytes),
                ("us", &us),
            ],
        );
        self.compaction_caution.store(0, Ordering::Relaxed);
        drop(room);
        self.note_space_freed();
        self.update_gate();
        self.progressed.notify_all();
        self.wake(|tasks| &tasks.compact);
        Ok(())
    }

    fn flush_to_table(&self, sealed: &Arc<SealedMemtable>) -> Result<Outputs> {
        let merged = MergeIter::new(vec![Box::new(sealed.memtable.iter())]);
        let horizon = Horizon {
            snapshots: self.snapshots.seqs(),
            bottommost: false,
            now_ms: self.env.clock.wall_ms(),
        };
        let mut kept = CompactionIter::new(merged, horizon)?;
        let outputs = self.write_tables(&mut kept, 0, None, &mut |_| Ok(()))?;
        let mut versions = self.versions.lock();
        let view = self.views.load_full();
        let next_wal = match view.sealed.len() {
            1 => view.active_wal,
            count => view.sealed[count - 2].first_wal,
        };
        let last_seq = versions.last_seq.max(sealed.seq_max());
        let edit = VersionEdit {
            added: outputs.added(0),
            oldest_wal: Some(next_wal),
            last_seq: Some(last_seq),
            ..VersionEdit::default()
        };
        self.apply(&mut versions, edit, &outputs.tables, Some(sealed))?;
        drop(versions);
        self.log_sync.forget_below(next_wal);
        self.remove_wals_below(next_wal)?;
        Ok(outputs)
    }

    fn remove_wals_below(&self, oldest: FileNum) -> Result<()> {
        let entries =
            self.env.fs.list(&self.dir).map_err(|source| Error::io("list", &self.dir, source))?;
        for entry in entries {
            if let Some((FileKind::Wal, num)) = parse_file_name(&entry.name)
                && num < oldest
            {
                self.remove_file(&file_path(&self.dir, FileKind::Wal, num));
            }
        }
        Ok(())
    }
}
