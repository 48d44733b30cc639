//! The parts of an open database, and its end.
//!
//! - the [`Tree`]: memtables and tables as readers see them, and the manifest;
//! - the [`Log`]: the commit pipeline, behind the [`Admission`] of writes;
//! - [`Maintenance`]: what happens in the background.
//!
//! Each knows only those above it in this list, and all share a [`Context`].
//!
//! The order of the locks is in `docs/architecture.md`.

use crate::commit::admission::Admission;
use crate::commit::log::Log;
use crate::context::{Context, TaskName};
use crate::maintenance::Maintenance;
use crate::stats::RecoveryStats;
use crate::tree::Tree;
use kvant_base::Result;
use kvant_base::lock::NamedMutex;
use kvant_base::log::Level;
use std::sync::Arc;

pub(crate) struct Core {
    pub(crate) context: Arc<Context>,
    pub(crate) tree: Arc<Tree>,
    pub(crate) admission: Arc<Admission>,
    pub(crate) log: Arc<Log>,
    pub(crate) maintenance: Arc<Maintenance>,
    pub(crate) recovery: RecoveryStats,
    /// Held for a whole checkpoint: two at once would take each other's files for leftovers, as
    /// would another process after a close.
    pub(crate) checkpointing: NamedMutex<()>,
}

impl Core {
    /// `Closed`, or `Fenced`, when no write can succeed.
    pub(crate) fn check_writable(&self) -> Result<()> {
        self.context.check_open()?;
        self.context.check_writable()
    }

    /// Syncs the log and ends background work. A second close does nothing.
    pub(crate) fn close(&self) -> Result<()> {
        let (context, sync) = (&*self.context, &self.log.sync);
        {
            // Nothing is written after the last sync: leaders have ended, and later ones refuse.
            let _leader = self.log.lock();
            if context.is_closed() {
                return Ok(());
            }
            context.mark_closing();
        }
        // Without the lock: a completion of this sync may submit a batch.
        sync.request();
        context.wake(TaskName::Sync);
        context.env.spawner.wait_until(&sync.synced, None, &mut || {
            sync.is_clean() || context.fence_cause().is_some() || context.is_closed()
        });
        let mut leader = self.log.lock();
        if context.is_closed() {
            // By another thread, meanwhile.
            return Ok(());
        }
        let result = match sync.put_off_error() {
            Some(error) => Err(error),
            None => context.check_writable(),
        };
        if result.is_ok() {
            self.log.env.write_closing_record(&mut leader);
        }
        context.mark_closed();
        drop(leader);
        sync.synced.notify_all();
        if result.is_ok() {
            self.tree.record_logs(|| self.log.env.known_logs(), true);
        }
        self.admission.update_gate();
        context.progressed.notify_all();
        // A checkpoint works in the directory, which this unlocks. Later ones are refused.
        let _checkpointing = self.checkpointing.lock();
        context.end_tasks();
        result
    }
}

impl Drop for Core {
    fn drop(&mut self) {
        if let Err(error) = self.close() {
            self.context.log.event(Level::Error, "close_failed", &[("error", &error)]);
        }
    }
}
