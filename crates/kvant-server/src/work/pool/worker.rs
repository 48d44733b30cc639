//! A worker: takes jobs, does them, delivers replies.
//!
//! Invariants:
//! 1. A job that was taken gets one reply. That of writes comes from their completion, which the
//!    store may call on another thread after the worker has gone on.
//! 2. No lock of the pool is held while storage is at work.
//!
//! Threads: each worker is a task with a thread of its own.

use super::inbox::{Delivery, Outbox};
use super::queue::{FinishedJobs, Job, RemovedJob};
use super::shared::Pool;
use super::work::{AnyReply, Done, PoolReply, Ticket, Work};
use crate::admission::Refusal;
use crate::store::{Backend, Completion, LocalStore, Write};
use crate::timing::StorageWork;
use kvant_base::lock::NamedMutex;
use kvant_base::tag::{self, Stage};
use kvant_env::{Step, Task};
use std::sync::Arc;

pub(super) struct Worker {
    pool: Arc<Pool>,
    index: usize,
    name: String,
    state: NamedMutex<WorkerState>,
}

/// Used by the worker's thread alone.
#[derive(Default)]
struct WorkerState {
    taken: Vec<Job>,
    removed: Vec<RemovedJob>,
    finished: Option<FinishedJobs>,
    outbox: Outbox,
}

impl Worker {
    pub(super) fn new(pool: &Arc<Pool>, index: usize) -> Worker {
        Worker {
            pool: Arc::clone(pool),
            index,
            name: format!("worker-{index}"),
            state: NamedMutex::new("worker", WorkerState::default()),
        }
    }
}

impl Task for Worker {
    fn name(&self) -> &str {
        &self.name
    }

    fn idle_name(&self) -> &'static str {
        "worker_queue"
    }

    fn step(&self) -> Step {
        let state = &mut *self.state.lock();
        let now_ns = self.pool.clock.monotonic_ns();
        let finished = state.finished.take();
        let step =
            self.pool.next(self.index, finished, now_ns, &mut state.taken, &mut state.removed);
        self.pool.settle(&mut state.removed, now_ns, &mut state.outbox);
        state.outbox.deliver(&self.pool.inboxes);
        let Some(first) = state.taken.first() else {
            return step;
        };
        let class = first.class;
        let request_count = state.taken.iter().map(|job| job.request_count).sum();
        let mut started_ns = now_ns;
        match self.pool.lifecycle.store().and_then(Backend::local) {
            Some(store) => {
                for job in state.taken.drain(..) {
                    started_ns = self.run(&**store, job, started_ns, &mut state.outbox);
                }
            }
            None => {
                // Selectors send work only when there is a local store.
                let stopping = Some(Refusal::Stopping);
                let removed =
                    state.taken.drain(..).map(|job| RemovedJob { job, refusal: stopping });
                state.removed.extend(removed);
                self.pool.settle(&mut state.removed, now_ns, &mut state.outbox);
            }
        }
        state.outbox.deliver(&self.pool.inboxes);
        let worked_ns = started_ns - now_ns;
        state.finished = Some(FinishedJobs { class, request_count, worked_ns });
        step
    }
}

impl Worker {
    /// Does one job, and returns the time when it was done.
    fn run(&self, store: &dyn LocalStore, job: Job, started_ns: u64, outbox: &mut Outbox) -> u64 {
        let _tag = tag::enter_at(job.work.activity(), Stage::Dispatch);
        let mut work = StorageWork {
            queued_ns: job.queued_ns,
            // The job may have come while this worker, which had read the clock, waited for the
            // lock.
            started_ns: started_ns.max(job.queued_ns),
            ..StorageWork::default()
        };
        let clock = &self.pool.clock;
        let reply = match job.work {
            Work::Get(get) => {
                let found = store.get(&get.key, get.block_bytes_max, &mut work.read);
                work.done_ns = clock.monotonic_ns();
                AnyReply::Get(Done { reply: PoolReply::Finished(found), work })
            }
            Work::Range(mut reader) => {
                let result = reader.read_piece(store);
                work.read = reader.trace();
                work.done_ns = clock.monotonic_ns();
                AnyReply::Range(Done { reply: PoolReply::Finished((reader, result)), work })
            }
            Work::Write(writes) => return self.write(store, writes, job.ticket, work),
        };
        outbox.add(job.ticket, reply);
        work.done_ns
    }

    fn write(
        &self,
        store: &dyn LocalStore,
        mut writes: Vec<Write>,
        ticket: Ticket,
        work: StorageWork,
    ) -> u64 {
        let waited_ms = (work.started_ns - work.queued_ns).div_ceil(1_000_000);
        for write in &mut writes {
            write.expires_at_ms = write.expires_at_ms.map(|at_ms| at_ms + waited_ms);
        }
        let pool = Arc::clone(&self.pool);
        let done = Completion::new(move |result| {
            let work = StorageWork { done_ns: pool.clock.monotonic_ns(), ..work };
            let reply = AnyReply::Write(Done { reply: PoolReply::Finished(result), work });
            let delivery = Delivery { slot: ticket.slot, reply };
            pool.inboxes[ticket.selector].deliver(&mut vec![delivery]);
        });
        store.submit(&mut writes.iter(), done);
        self.pool.clock.monotonic_ns()
    }
}
