//! The flush: the oldest sealed memtable becomes a level-0 table.
//!
//! Only visible writes are flushed, so that tables never hold a write whose outcome is unknown.

use super::Maintenance;
use super::pace::{Pace, Work};
use crate::commit::space::flush_bytes;
use crate::context::TaskName;
use crate::events::number;
use crate::format::SeqNum;
use crate::iter::{CompactionIter, Horizon, MergeIter, MergeSource, PacedIter};
use crate::memtable::Memtable;
use crate::tree::outputs::Outputs;
use crate::tree::view::{SealedMemtable, is_nearly_full};
use crate::version::VersionEdit;
use kvant_base::log::Level;
use kvant_base::{Error, ErrorKind, Result};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// What it costs to sort an entry of a memtable, in bytes of entries that are written: a third of
/// the time of a flush of records of 116 bytes.
const ORDER_BYTES: u64 = 90;

impl Maintenance {
    /// Flushes one memtable, or prepares the next log. True when there was something to do.
    pub(crate) fn flush_step(&self) -> Result<bool> {
        let next_log = &self.log.env.next_log;
        if !self.context.is_closing() && self.admission.space.take_early_seal() {
            self.seal_early()?;
        }
        if self.admission.space.is_full() {
            next_log.remove_spares();
        }
        let oldest = self.tree.views.load().sealed.last().cloned();
        // The sync that makes it visible wakes this task.
        let visible_seq = SeqNum(self.tree.visible_seq.load(Ordering::Acquire));
        let Some(oldest) = oldest.filter(|oldest| oldest.seq_max() <= visible_seq) else {
            let prepared = next_log.prepare();
            self.tree.record_logs(|| self.log.env.known_logs(), false);
            return prepared;
        };
        self.tree.record_logs(|| self.log.env.known_logs(), false);
        if self.context.paused_until_ns().is_some() {
            // The pause began during this step. The next one waits for its end.
            return Ok(true);
        }
        self.flush(&oldest)?;
        Ok(true)
    }

    /// On a full disk: compactions must see the deletes of the active memtable.
    fn seal_early(&self) -> Result<()> {
        let mut leader = self.log.lock();
        let active = leader.writer.active.memtable();
        let is_wanted = !active.is_empty() && self.tree.views.load().sealed.is_empty();
        if is_wanted && self.admission.space.make_room(flush_bytes(active))?.is_some() {
            self.log.env.seal(&mut leader.writer)?;
        }
        Ok(())
    }

    /// Reports the error to callers of [`crate::Db::flush`].
    pub(crate) fn note_flush_failure(&self, error: Error) {
        let mut failed = self.failed_flushes.lock();
        *failed = (failed.0 + 1, Some(error));
        drop(failed);
        self.context.progressed.notify_all();
    }

    fn flush(&self, sealed: &Arc<SealedMemtable>) -> Result<()> {
        let memtable = &sealed.memtable;
        let Some(room) = self.admission.space.make_room(flush_bytes(memtable))? else {
            return Err(Error::new(ErrorKind::NoSpace, "no room for the table of a flush")
                .with_file(&self.context.dir));
        };
        let memtable_bytes = memtable.memory_bytes();
        let fields = vec![
            ("level", number(0)),
            ("entries", number(memtable.entry_count())),
            ("memtable_bytes", number(memtable_bytes)),
        ];
        let (outputs, _, us) = self.run_job(
            &self.flushes,
            0,
            fields,
            || Ok((self.flush_to_table(sealed)?, memtable_bytes)),
            |outputs| vec![("table_bytes", number(outputs.written_bytes))],
        )?;
        self.context.log.event(
            Level::Info,
            "flush",
            &[
                ("entries", &memtable.entry_count()),
                ("memtable_bytes", &memtable_bytes),
                ("table_bytes", &outputs.written_bytes),
                ("us", &us),
            ],
        );
        self.compaction_caution.store(0, Ordering::Relaxed);
        drop(room);
        self.note_progress();
        self.context.wake(TaskName::Compact);
        Ok(())
    }

    fn flush_to_table(&self, sealed: &Arc<SealedMemtable>) -> Result<Outputs> {
        let tree = &*self.tree;
        let mut prepares_logs = true;
        let entry_count = sealed.memtable.entry_count();
        let mut pace = Pace::new(&self.context, &self.admission, Work::Flush, entry_count);
        let (entries, order_share) = self.sort(&sealed.memtable, &mut pace, &mut prepares_logs);
        let merged = MergeIter::new(vec![entries]);
        let horizon = Horizon {
            snapshots: tree.pinned_seqs.seqs(),
            bottommost: false,
            now_ms: self.context.env.clock.wall_ms(),
        };
        let mut passed = |bytes| pace.passed(bytes);
        let mut kept = CompactionIter::new(PacedIter::new(merged, &mut passed), horizon)?;
        let outputs = tree.write_tables(&mut kept, 0, None, &mut |bytes| {
            self.admission
                .gate
                .earn(Work::Flush.ends(), (bytes as f64 * (1.0 - order_share)) as u64);
            self.prepare_if_needed(&mut prepares_logs);
            Ok(())
        })?;
        let mut versions = tree.versions.lock();
        let view = tree.views.load_full();
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
        let known_logs = self.log.env.known_logs();
        tree.apply(&mut versions, edit, known_logs, &outputs.tables, Some(sealed))?;
        drop(versions);
        self.log.sync.forget_below(next_wal);
        if let Err(error) = self.log.env.next_log.retire_below(next_wal) {
            // The flush is done; the next one lists old logs again.
            self.context.log.event(Level::Warn, "old_logs_not_listed", &[("error", &error)]);
        }
        Ok(outputs)
    }

    /// The log of the memtable that is being flushed becomes the next one, unless writers need that
    /// sooner: they would have to make it themselves. After an error there is no other attempt;
    /// the step after the last flush reports one that lasts.
    fn prepare_if_needed(&self, may_prepare: &mut bool) {
        if *may_prepare && is_nearly_full(&self.tree.views.load().active, &self.context.options) {
            *may_prepare = self.log.env.next_log.prepare().is_ok();
        }
    }

    /// The entries of a memtable in key order, the first part of its flush, and the share of that
    /// part, for which writers have earned as much.
    fn sort(
        &self,
        memtable: &Memtable,
        pace: &mut Pace<'_>,
        prepares_logs: &mut bool,
    ) -> (MergeSource, f64) {
        let data_bytes = memtable.data_bytes();
        let order_share = pace.begin_head(memtable.unordered_count() * ORDER_BYTES, data_bytes);
        let step_share = 1.0 / memtable.order_step_count().max(1) as f64;
        let entries = memtable.sorted(&mut || {
            let earned_bytes = data_bytes as f64 * order_share * pace.pass_head(step_share);
            self.admission.gate.earn(Work::Flush.ends(), earned_bytes as u64);
            self.prepare_if_needed(prepares_logs);
        });
        (entries, order_share)
    }
}
