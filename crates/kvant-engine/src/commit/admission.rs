//! Decides whether a write may enter the commit pipeline: not on a full disk, and not while
//! flushes, compactions or syncs are too far behind.

use super::backlog::{Backlog, Progress};
use super::gate::{Gate, Position};
use super::space::{DiskSpace, flush_bytes};
use super::sync::LogSync;
use crate::batch::WriteBatch;
use crate::context::{Context, TaskName};
use crate::stats::StallReason;
use crate::tree::Tree;
use crate::tree::view::{SuperVersion, full_share};
use kvant_base::limits::LEVELS;
use kvant_base::{Error, ErrorKind, Result};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

pub(crate) struct Admission {
    context: Arc<Context>,
    tree: Arc<Tree>,
    sync: Arc<LogSync>,
    pub(crate) gate: Gate,
    pub(crate) space: DiskSpace,
    pub(crate) progress: Progress,
    /// Whether compaction can do nothing about the tables of level 0.
    level_0_stuck: AtomicBool,
    /// Whether compaction has work to do and no room for any of it.
    pub(crate) compaction_has_no_room: AtomicBool,
}

impl Admission {
    pub(crate) fn new(context: &Arc<Context>, tree: &Arc<Tree>, sync: &Arc<LogSync>) -> Admission {
        let gate = Gate::new(
            Arc::clone(&context.env.clock),
            Arc::clone(&context.log),
            context.events.clone(),
            context.options.memtable_bytes / 8,
        );
        Admission {
            gate,
            space: DiskSpace::open(context),
            progress: Progress::default(),
            level_0_stuck: AtomicBool::new(false),
            compaction_has_no_room: AtomicBool::new(false),
            context: Arc::clone(context),
            tree: Arc::clone(tree),
            sync: Arc::clone(sync),
        }
    }

    /// Admits a batch, or returns why not.
    pub(crate) fn admit(&self, batch: &WriteBatch) -> Result<()> {
        self.context.check_open()?;
        self.context.check_writable()?;
        batch.check(self.context.options.value_bytes_max)?;
        self.admit_to_disk(batch.put_count() > 0)?;
        if self.sync.is_overdue() {
            self.update_gate();
        }
        self.gate.admit(batch.bytes()).map_err(|reason| {
            let message = format!("writes are held back ({}), try again later", reason.name());
            Error::new(ErrorKind::Stalled, message)
        })
    }

    /// Refuses a write that puts something while the disk is full.
    #[inline]
    pub(crate) fn admit_to_disk(&self, has_put: bool) -> Result<()> {
        if self.space.is_full() && !self.heals() && has_put {
            let message = "no space left on the device: free some; reads and deletes go on";
            return Err(Error::new(ErrorKind::NoSpace, message).with_file(&self.context.dir));
        }
        Ok(())
    }

    /// Whether puts are accepted again. If not, background work looks for space to free.
    #[cold]
    fn heals(&self) -> bool {
        if !self.space.probe_is_due() {
            return false;
        }
        let level_0_count = self.tree.views.load().version.tables(0).len();
        let can_work = !self.compaction_has_no_room.load(Ordering::Relaxed)
            && level_0_count < self.context.options.l0_stop_count;
        let healed = can_work && self.space.heal(self.working_bytes());
        if healed {
            self.update_gate();
        } else {
            self.context.wake(TaskName::Flush);
            self.context.wake(TaskName::Compact);
        }
        healed
    }

    /// Refuses puts until space has returned.
    pub(crate) fn note_disk_full(&self) {
        if self.space.note_full() {
            // Deletes no longer wait for flushes; puts that wait are refused.
            self.update_gate();
        }
    }

    /// Refuses puts when less is available than the next flush and compaction need, with the tables
    /// that are about to be removed.
    pub(crate) fn check_space(&self) {
        let Some(available_bytes) = self.space.available_bytes() else { return };
        let working_bytes = self.working_bytes();
        if !self.space.is_full()
            && available_bytes < working_bytes
            && available_bytes + self.tree.obsolete.waiting_bytes() < working_bytes
        {
            self.note_disk_full();
        }
    }

    /// After work that has freed space, or may have.
    pub(crate) fn note_space_freed(&self) {
        self.space.restore_reserve();
        self.check_space();
    }

    /// Room for a flush and one step of a compaction: the largest memtable, the largest table below
    /// level 0, and the edits of all steps.
    pub(crate) fn working_bytes(&self) -> u64 {
        let view = self.tree.views.load();
        let sealed = view.sealed.iter().map(|sealed| flush_bytes(&sealed.memtable));
        let memtable_bytes = sealed.fold(flush_bytes(&view.active), u64::max);
        let tables = (1..LEVELS).flat_map(|level| view.version.tables(level));
        let (table_bytes, edit_bytes) = tables.fold((0, 0), |(largest, edits), table| {
            (table.meta.file_bytes.max(largest), edits + table.meta.edit_bytes())
        });
        memtable_bytes + table_bytes + edit_bytes
    }

    /// Level 0 is too large and cannot be compacted, because of unreadable tables: a stall of
    /// writes would never end, so level 0 is left to grow.
    pub(crate) fn note_level_0_stuck(&self, stuck: bool) {
        if self.level_0_stuck.swap(stuck, Ordering::Relaxed) != stuck {
            if stuck {
                self.context.log.event(kvant_base::log::Level::Error, "level_0_stuck", &[]);
            }
            self.update_gate();
        }
    }

    /// Moves the gate to the position that the state of the tree asks for.
    pub(crate) fn update_gate(&self) {
        self.gate.update(|before| self.position(before));
    }

    /// Whether something waits for the running flush, or will soon.
    pub(crate) fn flush_is_urgent(&self) -> bool {
        let view = self.tree.views.load();
        self.space.is_full() || self.backlog(&view).flush_is_urgent(&self.context.options)
    }

    /// Whether something waits for the running compaction, or will soon.
    pub(crate) fn compaction_is_urgent(&self) -> bool {
        let view = self.tree.views.load();
        self.space.is_full() || self.backlog(&view).compaction_is_urgent(&self.context.options)
    }

    fn backlog(&self, view: &SuperVersion) -> Backlog<'_> {
        Backlog {
            progress: &self.progress,
            sealed_count: view.sealed.len(),
            active_share: full_share(&view.active, &self.context.options),
            level_0_count: view.version.tables(0).len(),
            level_0_stuck: self.level_0_stuck.load(Ordering::Relaxed),
        }
    }

    fn position(&self, before: Position) -> Position {
        if self.context.fence_cause().is_some() || self.context.is_closed() {
            // Writers that wait must learn that no write will ever pass.
            return Position::Open;
        }
        if self.sync.is_overdue() {
            return Position::Closed { reason: StallReason::SyncOverdue };
        }
        if self.space.is_full() {
            // Puts are refused before they reach the gate; a delete waits for no flush or
            // compaction, which may find no room.
            return Position::Open;
        }
        self.backlog(&self.tree.views.load()).position(&self.context.options, before)
    }
}
