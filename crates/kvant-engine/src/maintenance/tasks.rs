//! The background tasks, each a loop of steps.

use super::Maintenance;
use crate::commit::pipeline::SyncStep;
use crate::compaction::expiry_wait_ms;
use crate::context::{TaskName, Tasks};
use kvant_base::ErrorKind;
use kvant_base::tag::{self, Activity, Stage};
use kvant_env::{Step, Task};
use std::sync::Arc;

/// The compaction task looks for expired tables at most once per second, since there may be many.
const EXPIRY_WAIT_MS_MIN: u64 = 1000;
/// And once per hour if any expire: the wall clock may be set.
const EXPIRY_WAIT_MS_MAX: u64 = 3_600_000;

pub(crate) fn spawn(maintenance: &Arc<Maintenance>) {
    let spawner = &maintenance.context.env.spawner;
    let spawn = |task| {
        spawner.spawn(Arc::new(MaintenanceTask { task, maintenance: Arc::clone(maintenance) }))
    };
    let tasks: Tasks =
        [TaskName::Sync, TaskName::Flush, TaskName::Compact, TaskName::Clean, TaskName::Chunks]
            .map(spawn);
    let chunks = Arc::clone(&tasks[TaskName::Chunks as usize]);
    maintenance.context.chunks.on_work(move || chunks.wake());
    let clean = Arc::clone(&tasks[TaskName::Clean as usize]);
    maintenance.tree.obsolete.on_push(move || clean.wake());
    maintenance.context.set_tasks(tasks);
}

struct MaintenanceTask {
    task: TaskName,
    maintenance: Arc<Maintenance>,
}

impl Task for MaintenanceTask {
    fn name(&self) -> &str {
        match self.task {
            TaskName::Sync => "kvant-sync",
            TaskName::Flush => "kvant-flush",
            TaskName::Compact => "kvant-compact",
            TaskName::Clean => "kvant-clean",
            TaskName::Chunks => "kvant-chunks",
        }
    }

    /// Where writes do wait for a compaction, the gate has slowed them long before.
    fn is_background(&self) -> bool {
        matches!(self.task, TaskName::Compact)
    }

    fn step(&self) -> Step {
        match self.task {
            TaskName::Sync => self.maintenance.sync_task(),
            TaskName::Flush => self.maintenance.flush_task(),
            TaskName::Compact => self.maintenance.compact_task(),
            TaskName::Clean => self.maintenance.clean_task(),
            TaskName::Chunks => self.maintenance.chunks_task(),
        }
    }
}

impl Maintenance {
    /// Syncs the log, and completes the writes that waited for it.
    fn sync_task(&self) -> Step {
        // The last part of writes.
        let _tag = tag::enter_at(Activity::Put, Stage::Dispatch);
        // Before the step: a group that is written during it must get another one. No group follows
        // a close.
        let was_closed = self.context.is_closed();
        let step = self.log.sync_step();
        match step {
            SyncStep::NotDue(_) if was_closed => return Step::Finished,
            SyncStep::NotDue(Some(at_ns)) => return Step::IdleUntil(at_ns),
            SyncStep::NotDue(None) => return Step::Idle,
            SyncStep::Synced { has_published: true } => self.context.wake(TaskName::Flush),
            SyncStep::Synced { has_published: false } | SyncStep::Fenced => {}
        }
        self.admission.update_gate();
        match step {
            SyncStep::Fenced if was_closed => Step::Finished,
            SyncStep::Fenced => Step::Idle,
            _ => Step::Worked,
        }
    }

    fn flush_task(&self) -> Step {
        let _tag = tag::enter(Activity::Flush);
        if self.context.is_closed() {
            return Step::Finished;
        }
        if self.context.fence_cause().is_some() {
            // The sync task may hang in the disk.
            self.admission.update_gate();
            return Step::Idle;
        }
        if let Some(until_ns) = self.context.paused_until_ns() {
            return Step::IdleUntil(until_ns);
        }
        match self.flush_step() {
            Ok(has_worked) => {
                self.flushes.last_failure.note_success();
                if has_worked { Step::Worked } else { Step::Idle }
            }
            Err(error) => {
                self.note_failure(&self.flushes, error, |error| self.note_flush_failure(error))
            }
        }
    }

    fn compact_task(&self) -> Step {
        let _tag = tag::enter(Activity::Compaction);
        if self.context.is_closed() {
            return Step::Finished;
        }
        if let Some(cause) = self.context.fence_cause() {
            self.serve_manual(u64::MAX, Some(cause.clone().with_kind(ErrorKind::Fenced)));
            return Step::Idle;
        }
        if let Some(until_ns) = self.context.paused_until_ns() {
            return Step::IdleUntil(until_ns);
        }
        let requested = self.manual.lock().requested;
        match self.compact_step(requested) {
            Ok(has_worked) => {
                self.compactions.last_failure.note_success();
                if has_worked { Step::Worked } else { self.until_expiry() }
            }
            Err(error) if error.kind() == ErrorKind::Closed => Step::Finished,
            Err(error) => self.note_failure(&self.compactions, error, |error| {
                self.serve_manual(requested, Some(error));
            }),
        }
    }

    /// Idle until tables may have expired.
    fn until_expiry(&self) -> Step {
        let wait_ms = self.tree.with_summary(expiry_wait_ms);
        wait_ms.map_or(Step::Idle, |wait_ms| {
            let wait_ns = wait_ms.clamp(EXPIRY_WAIT_MS_MIN, EXPIRY_WAIT_MS_MAX) * 1_000_000;
            Step::IdleUntil(self.context.env.clock.monotonic_ns() + wait_ns)
        })
    }

    /// Prepares chunks for memtables, and releases those that are not used.
    fn chunks_task(&self) -> Step {
        let _tag = tag::enter(Activity::Housekeeping);
        if self.context.is_closed() {
            return Step::Finished;
        }
        self.context.chunks.tend(self.context.env.clock.monotonic_ns())
    }

    /// Removes the tables that no version and no reader needs any more.
    fn clean_task(&self) -> Step {
        let _tag = tag::enter(Activity::Housekeeping);
        let has_removed = self.tree.remove_obsolete_tables();
        if has_removed {
            self.admission.space.restore_reserve();
        }
        if has_removed && self.admission.space.is_full() {
            self.context.wake(TaskName::Compact);
        }
        self.tree.tables.cache.shrink_to_capacity();
        match (has_removed, self.context.is_closed()) {
            (false, true) => Step::Finished,
            (false, false) => Step::Idle,
            (true, _) => Step::Worked,
        }
    }
}
