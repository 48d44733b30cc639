//! The small background tasks: syncing the log and removing obsolete tables. Flush and compaction
//! have files of their own.

use super::core::Core;
use crate::commit::sync::Synced;
use crate::format::{FileKind, file_path};
use kvant_base::tag::{self, Activity, Stage};
use kvant_base::{ErrorKind, Result};
use kvant_env::{Step, Task};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Syncs the log when its level says so, and completes who waited for it.
pub(crate) struct SyncTask(pub(crate) Arc<Core>);

impl Task for SyncTask {
    fn name(&self) -> &str {
        "kvant-sync"
    }

    fn step(&self) -> Step {
        // The last part of writes.
        let _tag = tag::enter_at(Activity::Put, Stage::Sync);
        let core = &self.0;
        let fenced = core.check_writable();
        if fenced.is_err() {
            // Groups that were written while the failing sync ran: nothing will make them durable.
            core.complete(
                core.log_sync.take_waiting(),
                &fenced.map_err(|e| e.with_kind(ErrorKind::OutcomeUnknown)),
            );
            return if core.is_closed() { Step::Finished } else { Step::Idle };
        }
        match core.log_sync.sync_due() {
            Synced::NotDue(_) if core.is_closed() => Step::Finished,
            Synced::NotDue(Some(at_ns)) => Step::IdleUntil(at_ns),
            Synced::NotDue(None) => Step::Idle,
            Synced::Done { visible, done } => {
                if let Some(seq) = visible {
                    core.visible_seq.store(seq.0, Ordering::Release);
                    core.wake(|tasks| &tasks.flush);
                }
                core.complete(done, &Ok(()));
                core.update_gate();
                Step::Worked
            }
            Synced::Failed { error, done } => {
                let cause = core.fence(error);
                let unknown: Result<()> = Err(cause.with_kind(ErrorKind::OutcomeUnknown));
                core.complete(done, &unknown);
                core.update_gate();
                Step::Worked
            }
        }
    }
}

/// Removes tables that no version and no reader needs any more.
pub(crate) struct CleanTask(pub(crate) Arc<Core>);

impl Task for CleanTask {
    fn name(&self) -> &str {
        "kvant-clean"
    }

    fn step(&self) -> Step {
        let _tag = tag::enter(Activity::Housekeeping);
        let core = &self.0;
        let has_removed = core.remove_obsolete_tables();
        if has_removed && core.space.is_full() {
            core.space.restore_reserve();
            core.wake(|tasks| &tasks.compact);
        }
        core.tables.cache.shrink_to_capacity();
        match (has_removed, core.is_closed()) {
            (false, true) => Step::Finished,
            (false, false) => Step::Idle,
            (true, _) => Step::Worked,
        }
    }
}

impl Core {
    /// True when there were any.
    pub(crate) fn remove_obsolete_tables(&self) -> bool {
        let mut has_removed = false;
        while let Some(file) = self.obsolete.pop() {
            self.tables.cache.erase_file(file.num);
            self.remove_file(&file_path(&self.dir, FileKind::Table, file.num));
            has_removed = true;
        }
        has_removed
    }
}
