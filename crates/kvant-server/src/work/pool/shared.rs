//! The pool as its ports and its workers share it.

use super::inbox::{Inbox, Outbox};
use super::queue::{FinishedJobs, Job, PoolStats, Queue, RemovedJob};
use crate::admission::Refusals;
use crate::config::ServerConfig;
use crate::timing::StorageWork;
use crate::work::lifecycle::Lifecycle;
use kvant_base::lock::NamedMutex;
use kvant_env::{Clock, Step, TaskHandle};
use std::sync::{Arc, OnceLock};

pub(crate) struct Pool {
    // Immutable.
    pub(super) config: Arc<ServerConfig>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) lifecycle: Arc<Lifecycle>,
    /// One for each selector.
    pub(super) inboxes: Vec<Inbox>,
    // Own synchronisation.
    pub(super) refusals: Arc<Refusals>,
    /// Set once all of them have been started.
    pub(super) workers: OnceLock<Vec<Arc<dyn TaskHandle>>>,
    pub(super) state: NamedMutex<State>,
}

pub(super) struct State {
    pub(super) queue: Queue,
    /// Sleeping workers. The last one went to sleep last and has the warmest caches.
    pub(super) idle: Vec<usize>,
    pub(super) hand_over_count: u64,
    pub(super) wake_count: u64,
}

impl State {
    /// Takes a sleeping worker off the list if there is work for it. The caller wakes it.
    fn worker_to_wake(&mut self) -> Option<usize> {
        let worker = match self.queue.can_run() {
            true => self.idle.pop(),
            false => None,
        };
        self.wake_count += u64::from(worker.is_some());
        worker
    }
}

impl Pool {
    /// Refuses what is queued and what is still sent, and waits for the workers to end. A second
    /// call does nothing.
    pub(crate) fn stop(&self) {
        let mut removed = Vec::new();
        self.state.lock().queue.stop(&mut removed);
        let mut outbox = Outbox::default();
        self.settle(&mut removed, self.clock.monotonic_ns(), &mut outbox);
        outbox.deliver(&self.inboxes);
        let workers = self.workers();
        workers.iter().for_each(|worker| worker.wake());
        workers.iter().for_each(|worker| worker.join());
    }

    pub(crate) fn stats(&self) -> PoolStats {
        let state = self.state.lock();
        PoolStats {
            hand_over_count: state.hand_over_count,
            wake_count: state.wake_count,
            ..state.queue.stats()
        }
    }

    fn workers(&self) -> &[Arc<dyn TaskHandle>] {
        self.workers.get().map_or(&[], Vec::as_slice)
    }

    /// Takes over the jobs that a selector gathered. What is not admitted is added to `removed`.
    pub(super) fn hand_over(
        &self,
        jobs: &mut Vec<Job>,
        removed: &mut Vec<RemovedJob>,
        now_ns: u64,
    ) {
        let worker = {
            let mut state = self.state.lock();
            state.hand_over_count += 1;
            for job in jobs.drain(..) {
                state.queue.offer(job, now_ns, removed);
            }
            state.worker_to_wake()
        };
        self.wake(worker);
        self.refusals.end_if_calm(now_ns);
    }

    /// Notes what the worker `index` has finished, and moves its next jobs to `taken`.
    pub(super) fn next(
        &self,
        index: usize,
        finished: Option<FinishedJobs>,
        now_ns: u64,
        taken: &mut Vec<Job>,
        removed: &mut Vec<RemovedJob>,
    ) -> Step {
        let (step, worker) = {
            let mut state = self.state.lock();
            // It is in the list only if it was woken without a job.
            state.idle.retain(|&idle| idle != index);
            if let Some(finished) = finished {
                state.queue.finish(finished);
            }
            state.queue.take(now_ns, taken, removed);
            let step = if !taken.is_empty() {
                Step::Worked
            } else if state.queue.is_stopping() {
                Step::Finished
            } else {
                state.idle.push(index);
                Step::Idle
            };
            let worker = match step {
                Step::Worked => state.worker_to_wake(),
                _ => None,
            };
            (step, worker)
        };
        // Each worker that finds work wakes the next.
        self.wake(worker);
        step
    }

    fn wake(&self, worker: Option<usize>) {
        if let Some(handle) = worker.and_then(|index| self.workers().get(index)) {
            handle.wake();
        }
    }

    /// Gives up jobs that have waited for too long while no worker came.
    pub(super) fn give_up(&self) {
        let now_ns = self.clock.monotonic_ns();
        let mut removed = Vec::new();
        self.state.lock().queue.give_up(now_ns, &mut removed);
        let mut outbox = Outbox::default();
        self.settle(&mut removed, now_ns, &mut outbox);
        outbox.deliver(&self.inboxes);
    }

    /// Counts refusals, and makes replies of jobs that no worker will do.
    pub(super) fn settle(&self, removed: &mut Vec<RemovedJob>, now_ns: u64, outbox: &mut Outbox) {
        for RemovedJob { job, refusal } in removed.drain(..) {
            if let Some(refusal) = refusal {
                self.refusals.add(job.class, refusal, job.request_count, now_ns);
            }
            let decided_ns = now_ns.max(job.queued_ns);
            let work = StorageWork::never_begun(job.queued_ns, decided_ns);
            outbox.add(job.ticket, job.work.not_done(refusal, work));
        }
    }
}
