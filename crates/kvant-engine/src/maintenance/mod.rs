//! Background work: flushes, compactions, removal of obsolete tables, and syncs of the log.
//!
//! `flush` and `compact` implement the work itself, `tasks` calls it.

mod compact;
mod flush;
mod pace;
pub(crate) mod tasks;

use crate::commit::admission::Admission;
use crate::commit::log::Log;
use crate::context::Context;
use crate::context::last_failure::LastFailure;
use crate::events::failure;
use crate::stats::JobStats;
use crate::tree::Tree;
use crate::tree::outputs::Outputs;
use kvant_base::events::{EventKind, Fields};
use kvant_base::lock::NamedMutex;
use kvant_base::log::Level;
use kvant_base::{Error, ErrorKind, Result};
use kvant_env::Step;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// How long a flush or compaction waits after a failure.
const RETRY_NS: u64 = 500_000_000;

pub(crate) struct Maintenance {
    pub(crate) context: Arc<Context>,
    pub(crate) tree: Arc<Tree>,
    pub(crate) admission: Arc<Admission>,
    pub(crate) log: Arc<Log>,
    pub(crate) flushes: Job,
    pub(crate) compactions: Job,
    /// How many failed flushes there were, and the last one's error: for [`crate::Db::flush`].
    pub(crate) failed_flushes: NamedMutex<(u64, Option<Error>)>,
    pub(crate) manual: NamedMutex<ManualCompaction>,
    /// How many more searches for a compaction must be cautious: see [`crate::compaction::Room`].
    pub(crate) compaction_caution: AtomicU32,
}

/// Requests of [`crate::Db::compact`] and how many have been served.
#[derive(Default)]
pub(crate) struct ManualCompaction {
    pub(crate) requested: u64,
    pub(crate) served: u64,
    pub(crate) failure: Option<Error>,
}

/// The flushes, or the compactions, since the database was opened.
pub(crate) struct Job {
    kind: EventKind,
    failure_event: &'static str,
    pub(crate) last_failure: LastFailure,
    /// All but the debt.
    pub(crate) stats: NamedMutex<JobStats>,
}

impl Job {
    fn new(kind: EventKind, failure_event: &'static str) -> Job {
        Job {
            kind,
            failure_event,
            last_failure: LastFailure::new(),
            stats: NamedMutex::new("job_stats", JobStats::default()),
        }
    }
}

impl Maintenance {
    pub(crate) fn new(
        context: &Arc<Context>,
        tree: &Arc<Tree>,
        admission: &Arc<Admission>,
        log: &Arc<Log>,
    ) -> Maintenance {
        Maintenance {
            context: Arc::clone(context),
            tree: Arc::clone(tree),
            admission: Arc::clone(admission),
            log: Arc::clone(log),
            flushes: Job::new(EventKind::Flush, "flush_failed"),
            compactions: Job::new(EventKind::Compaction, "compaction_failed"),
            failed_flushes: NamedMutex::new("flush_failures", (0, None)),
            manual: NamedMutex::new("manual_compaction", ManualCompaction::default()),
            compaction_caution: AtomicU32::new(0),
        }
    }

    /// Runs a flush or a compaction into `level` as an event, and counts it. `work` returns its
    /// outputs and the bytes that it read; the result adds the microseconds that it took.
    pub(crate) fn run_job(
        &self,
        job: &Job,
        level: usize,
        fields: Fields,
        work: impl FnOnce() -> Result<(Outputs, u64)>,
        end_fields: impl FnOnce(&Outputs) -> Fields,
    ) -> Result<(Outputs, u64, u64)> {
        let started_ns = self.context.env.clock.monotonic_ns();
        job.stats.lock().running = 1;
        let span = self.context.events.begin(job.kind, fields);
        let result = work();
        let end = match &result {
            Ok((outputs, _)) => end_fields(outputs),
            Err(error) => failure(error),
        };
        self.context.events.end(span, end);
        let mut stats = job.stats.lock();
        stats.running = 0;
        let (outputs, read_bytes) = result?;
        let us = (self.context.env.clock.monotonic_ns() - started_ns) / 1000;
        stats.count += 1;
        stats.busy_us_total += us;
        stats.read_bytes += read_bytes;
        stats.written_bytes += outputs.written_bytes;
        self.tree.counters.level_written[level].fetch_add(outputs.written_bytes, Ordering::Relaxed);
        Ok((outputs, read_bytes, us))
    }

    /// After a job: what waits for it may proceed.
    pub(crate) fn note_progress(&self) {
        self.admission.note_space_freed();
        self.admission.update_gate();
        self.context.progressed.notify_all();
    }

    /// Handles a failed job; `report` passes the error to the callers that wait for it. Returns
    /// when to retry.
    pub(crate) fn note_failure(&self, job: &Job, error: Error, report: impl FnOnce(Error)) -> Step {
        job.last_failure.note(&error, self.context.env.clock.monotonic_ns());
        job.stats.lock().failed_count += 1;
        let no_space = error.kind() == ErrorKind::NoSpace;
        if !(no_space && self.admission.space.is_full()) {
            self.context.log.event(Level::Error, job.failure_event, &[("error", &error)]);
        }
        if no_space {
            self.admission.note_disk_full();
            self.admission.note_space_freed();
        }
        report(error);
        Step::IdleUntil(self.context.env.clock.monotonic_ns() + RETRY_NS)
    }
}
