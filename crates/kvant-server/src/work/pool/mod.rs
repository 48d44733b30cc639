//! Workers that do what selectors should not wait for, behind a bounded queue (`--dispatch pool`
//! and `hybrid`).
//!
//! `Port` (a selector's side: gathers what one turn of its event loop sends) -> `Queue` (admits jobs
//! and orders them) -> `Worker` -> `Inbox` -> `Port` (wakes the futures that wait). Both hand-overs
//! take many jobs at once: one lock, one wake-up.
//!
//! Reads go before writes and writes before pieces of ranges, under every policy; within a class
//! the oldest goes first.
//!
//! Threads: ports belong to selectors, workers to their own threads; the queue and the idle workers
//! are under one lock, which no thread holds while storage is at work or while it wakes another.

mod inbox;
mod port;
mod queue;
mod slots;
mod work;
mod worker;

pub(in crate::work) use port::Later;
pub(crate) use port::Port;
pub(in crate::work) use work::{Done, PoolReply, PoolWork};

use crate::admission::{Class, Refusals};
use crate::config::{Overload, ServerConfig};
use crate::timing::StorageWork;
use crate::work::lifecycle::Lifecycle;
use inbox::{AnyDone, Inbox};
use kvant_base::lock::NamedMutex;
use kvant_env::{Clock, Env, Step, TaskHandle};
use queue::{FinishedJobs, Job, Queue, RemovedJob};
use std::sync::{Arc, OnceLock};
use worker::{Outbox, Worker};

/// Settings of a pool.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PoolConfig {
    /// At least 1.
    pub(crate) workers: usize,
    /// Requests that may wait.
    pub(crate) queue_capacity: usize,
    pub(crate) overload: Overload,
    pub(crate) queue_wait_max_ns: u64,
}

impl From<&ServerConfig> for PoolConfig {
    fn from(config: &ServerConfig) -> PoolConfig {
        PoolConfig {
            workers: config.workers,
            queue_capacity: config.queue_capacity,
            overload: config.overload,
            queue_wait_max_ns: u64::try_from(config.queue_wait_max.as_nanos()).unwrap_or(u64::MAX),
        }
    }
}

impl PoolConfig {
    /// Requests of all classes together beyond which none of this one is let in: a flood of cheap
    /// writes leaves room for reads, which are done before them.
    pub(crate) fn capacity_of(&self, class: Class) -> usize {
        let share_per_cent = match (self.overload, class) {
            (Overload::Adaptive, Class::Write) => 90,
            (Overload::Adaptive, Class::Range) => 70,
            _ => 100,
        };
        self.queue_capacity * share_per_cent / 100
    }
}

/// Workers and their queue.
pub(crate) struct Pool {
    // Immutable.
    config: PoolConfig,
    clock: Arc<dyn Clock>,
    lifecycle: Arc<Lifecycle>,
    /// One for each selector.
    inboxes: Vec<Inbox>,
    // Own synchronisation.
    refusals: Arc<Refusals>,
    /// Set once all of them have been started.
    workers: OnceLock<Vec<Arc<dyn TaskHandle>>>,
    state: NamedMutex<State>,
}

struct State {
    queue: Queue,
    /// Sleeping workers. The last one went to sleep last and has the warmest caches.
    idle: Vec<usize>,
    hand_over_count: u64,
    wake_count: u64,
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

/// What a pool has done and does.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PoolStats {
    pub(crate) worker_count: usize,
    pub(crate) busy_count: usize,
    pub(crate) queue_capacity: usize,
    /// Requests that wait, by class, and the most that ever waited together.
    pub(crate) queued: [usize; Class::COUNT],
    pub(crate) queued_max: usize,
    /// Requests that were done, by class.
    pub(crate) done: [u64; Class::COUNT],
    /// What a request costs a worker, by class, smoothed.
    pub(crate) cost_ns: [u64; Class::COUNT],
    /// Whether the adaptive limit holds a class down to what can be done within the target.
    pub(crate) limited: [bool; Class::COUNT],
    /// Times that selectors handed work over, and that a sleeping worker was woken.
    pub(crate) hand_over_count: u64,
    pub(crate) wake_count: u64,
}

impl Pool {
    /// Starts the workers. Work is for when the lifecycle has a store.
    ///
    /// # Panics
    /// If the operating system refuses a thread.
    pub(crate) fn start(
        config: PoolConfig,
        env: &Env,
        lifecycle: Arc<Lifecycle>,
        refusals: Arc<Refusals>,
        selectors: usize,
    ) -> Arc<Pool> {
        let pool = Arc::new(Pool {
            config,
            clock: Arc::clone(&env.clock),
            lifecycle,
            inboxes: (0..selectors).map(|_| Inbox::new()).collect(),
            refusals,
            workers: OnceLock::new(),
            state: NamedMutex::new(
                "pool",
                State {
                    queue: Queue::new(config),
                    idle: Vec::with_capacity(config.workers),
                    hand_over_count: 0,
                    wake_count: 0,
                },
            ),
        });
        let spawn = |index| env.spawner.spawn(Arc::new(Worker::new(&pool, index)));
        let workers = (0..config.workers).map(spawn).collect();
        pool.workers.get_or_init(|| workers);
        pool
    }

    /// Refuses what is queued and what is still sent, and waits for the workers to end. A second
    /// call does nothing.
    pub(crate) fn stop(&self) {
        let mut removed = Vec::new();
        self.state.lock().queue.stop(&mut removed);
        let mut outbox = Outbox::default();
        self.settle(&mut removed, self.clock.monotonic_ns(), &mut outbox);
        outbox.deliver(self);
        let workers = self.workers();
        workers.iter().for_each(|worker| worker.wake());
        workers.iter().for_each(|worker| worker.join());
    }

    /// What it has done and does, for any thread.
    pub(crate) fn stats(&self) -> PoolStats {
        let state = self.state.lock();
        let queue = &state.queue;
        PoolStats {
            worker_count: self.config.workers,
            busy_count: queue.busy_count(),
            queue_capacity: self.config.queue_capacity,
            queued: queue.queued(),
            queued_max: queue.queued_max(),
            done: queue.done(),
            cost_ns: queue.cost_ns(),
            limited: queue.overloaded(),
            hand_over_count: state.hand_over_count,
            wake_count: state.wake_count,
        }
    }

    fn workers(&self) -> &[Arc<dyn TaskHandle>] {
        self.workers.get().map_or(&[], Vec::as_slice)
    }

    fn clock(&self) -> &dyn Clock {
        &*self.clock
    }

    fn inbox(&self, selector: usize) -> &Inbox {
        &self.inboxes[selector]
    }

    /// Takes over the jobs that a selector gathered. What is not admitted is added to `removed`.
    fn hand_over(&self, jobs: &mut Vec<Job>, removed: &mut Vec<RemovedJob>, now_ns: u64) {
        let worker = {
            let mut state = self.state.lock();
            state.hand_over_count += 1;
            for job in jobs.drain(..) {
                state.queue.offer(job, now_ns, removed);
            }
            state.worker_to_wake()
        };
        self.wake(worker);
        self.refusals.look(now_ns);
    }

    /// Notes what the worker `index` has finished, and moves its next jobs to `taken`.
    fn next(
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
    fn give_up(&self) {
        let now_ns = self.clock.monotonic_ns();
        let mut removed = Vec::new();
        self.state.lock().queue.give_up(now_ns, &mut removed);
        let mut outbox = Outbox::default();
        self.settle(&mut removed, now_ns, &mut outbox);
        outbox.deliver(self);
    }

    /// Counts refusals, and makes replies of jobs that no worker will do.
    fn settle(&self, removed: &mut Vec<RemovedJob>, now_ns: u64, outbox: &mut Outbox) {
        for RemovedJob { job, refusal } in removed.drain(..) {
            if let Some(refusal) = refusal {
                self.refusals.add(job.class, refusal, job.request_count, now_ns);
            }
            let decided_ns = now_ns.max(job.queued_ns);
            let work = StorageWork {
                queued_ns: job.queued_ns,
                started_ns: decided_ns,
                done_ns: decided_ns,
                ..StorageWork::default()
            };
            outbox.add(job.ticket, AnyDone::not_done(refusal, job.work, work));
        }
    }
}

#[cfg(test)]
mod tests;
