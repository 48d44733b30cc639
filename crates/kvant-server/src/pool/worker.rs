//! A worker: takes jobs, does them, delivers what came of them.
//!
//! Invariants:
//! 1. A job that was taken is delivered once. That of a write is delivered by its completion, which
//!    the store may call on another thread after the worker has gone on.
//! 2. No lock of the pool is held while storage is at work.
//!
//! Threads: each worker is a task with a thread of its own.

use super::Pool;
use super::inbox::Arrival;
use super::queue::{Finished, Gone, Job, Ticket};
use super::work::{Done, Outcome, Work};
use crate::admission::Refusal;
use crate::stores::{Store, Write};
use crate::timing::StorageWork;
use kvant_base::lock::NamedMutex;
use kvant_base::tag::{self, Stage};
use kvant_base::{Error, ErrorKind, Result};
use kvant_env::{Step, Task};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

/// One worker.
pub(super) struct Worker {
    pool: Arc<Pool>,
    index: usize,
    name: String,
    own: NamedMutex<Own>,
}

/// What only the worker's thread uses.
#[derive(Default)]
struct Own {
    taken: Vec<Job>,
    gone: Vec<Gone>,
    finished: Option<Finished>,
    outbox: Outbox,
}

/// Outcomes by selector, to be delivered together.
#[derive(Default)]
pub(super) struct Outbox(Vec<Vec<Arrival>>);

impl Outbox {
    pub(super) fn add(&mut self, ticket: Ticket, done: Done) {
        let Ticket { selector, slot } = ticket;
        self.of(selector).push(Arrival { slot, done });
    }

    /// What goes to one selector.
    pub(super) fn of(&mut self, selector: usize) -> &mut Vec<Arrival> {
        if self.0.len() <= selector {
            self.0.resize_with(selector + 1, Vec::new);
        }
        &mut self.0[selector]
    }

    pub(super) fn deliver(&mut self, pool: &Pool) {
        for (selector, arrivals) in self.0.iter_mut().enumerate() {
            if !arrivals.is_empty() {
                pool.inbox(selector).deliver(arrivals);
            }
        }
    }
}

impl Worker {
    pub(super) fn new(pool: &Arc<Pool>, index: usize) -> Worker {
        Worker {
            pool: Arc::clone(pool),
            index,
            name: format!("worker-{index}"),
            own: NamedMutex::new("worker", Own::default()),
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
        let own = &mut *self.own.lock();
        let now_ns = self.pool.clock().monotonic_ns();
        let finished = own.finished.take();
        let step = self.pool.next(self.index, finished, now_ns, &mut own.taken, &mut own.gone);
        self.pool.settle(&mut own.gone, now_ns, &mut own.outbox);
        own.outbox.deliver(&self.pool);
        let Some(first) = own.taken.first() else {
            return step;
        };
        let class = first.class;
        let request_count = own.taken.iter().map(|job| job.request_count).sum();
        let mut started_ns = now_ns;
        match self.pool.lifecycle.store() {
            Some(store) => {
                for job in own.taken.drain(..) {
                    started_ns = self.run(&**store, job, started_ns, &mut own.outbox);
                }
            }
            None => {
                // Selectors send work only when there is a store.
                own.gone.extend(
                    own.taken.drain(..).map(|job| Gone { job, refusal: Some(Refusal::Stopping) }),
                );
                self.pool.settle(&mut own.gone, now_ns, &mut own.outbox);
            }
        }
        own.outbox.deliver(&self.pool);
        own.finished = Some(Finished { class, request_count, worked_ns: started_ns - now_ns });
        step
    }
}

impl Worker {
    /// Does one job: the time when that was done.
    fn run(&self, store: &dyn Store, job: Job, started_ns: u64, outbox: &mut Outbox) -> u64 {
        let _tag = tag::enter_at(job.work.activity(), Stage::Dispatch);
        let mut work = StorageWork {
            queued_ns: job.queued_ns,
            // It may have come while this worker, which had looked at the clock, waited for the
            // lock.
            started_ns: started_ns.max(job.queued_ns),
            ..StorageWork::default()
        };
        let outcome = match job.work {
            Work::Get(key, block_bytes_max) => {
                Outcome::Got(store.get_bounded(&key, block_bytes_max, &mut work.read))
            }
            Work::Range(mut range) => {
                let result = range.read_piece(store);
                work.read = range.trace();
                Outcome::Piece(range, result)
            }
            Work::Write(writes) => return self.write(store, writes, job.ticket, work, outbox),
        };
        work.done_ns = self.pool.clock().monotonic_ns();
        let done_ns = work.done_ns;
        outbox.add(job.ticket, Done { outcome, work });
        done_ns
    }

    fn write(
        &self,
        store: &dyn Store,
        mut writes: Vec<Write>,
        ticket: Ticket,
        work: StorageWork,
        outbox: &mut Outbox,
    ) -> u64 {
        let waited_ms = (work.started_ns - work.queued_ns).div_ceil(1_000_000);
        for write in &mut writes {
            write.expires_at_ms = write.expires_at_ms.map(|at_ms| at_ms + waited_ms);
        }
        let submission = Arc::new(Submission {
            pool: Arc::clone(&self.pool),
            writes,
            ticket,
            work,
            state: AtomicU8::new(SUBMITTING),
        });
        let completion = Completing(Arc::clone(&submission));
        let done = Box::new(move |result| completion.complete(result));
        let submitted = store.submit(&mut submission.writes.iter(), done);
        let done_ns = self.pool.clock().monotonic_ns();
        match submitted {
            Ok(()) => {
                let state = &submission.state;
                let seen = state.compare_exchange(
                    SUBMITTING,
                    SUBMITTED,
                    Ordering::AcqRel,
                    Ordering::Acquire,
                );
                if seen == Err(DROPPED) {
                    outbox.add(ticket, submission.done(Err(lost_outcome()), done_ns));
                }
            }
            Err(error) => outbox.add(ticket, submission.done(Err(error), done_ns)),
        }
        done_ns
    }
}

fn lost_outcome() -> Error {
    Error::new(ErrorKind::OutcomeUnknown, "the store dropped a write without an outcome")
}

/// The store has the writes and has not said yet whether it takes them.
const SUBMITTING: u8 = 0;
/// It has taken them: its completion delivers the outcome.
const SUBMITTED: u8 = 1;
/// Its completion was dropped without being called. The worker, which alone knows whether the store
/// took the writes, delivers.
const DROPPED: u8 = 2;
/// Its completion has been called.
const COMPLETED: u8 = 3;

/// Writes on their way through the store.
struct Submission {
    pool: Arc<Pool>,
    writes: Vec<Write>,
    ticket: Ticket,
    work: StorageWork,
    state: AtomicU8,
}

impl Submission {
    fn done(&self, result: Result<()>, done_ns: u64) -> Done {
        let work = StorageWork { done_ns, ..self.work };
        Done { outcome: Outcome::Written(result), work }
    }

    fn deliver(&self, result: Result<()>) {
        let done = self.done(result, self.pool.clock().monotonic_ns());
        self.pool
            .inbox(self.ticket.selector)
            .deliver(&mut vec![Arrival { slot: self.ticket.slot, done }]);
    }
}

/// A completion, which knows when it is dropped without having been called.
struct Completing(Arc<Submission>);

impl Completing {
    fn complete(self, result: Result<()>) {
        self.0.state.store(COMPLETED, Ordering::Release);
        self.0.deliver(result);
    }
}

impl Drop for Completing {
    fn drop(&mut self) {
        let state = &self.0.state;
        let seen = state.compare_exchange(SUBMITTING, DROPPED, Ordering::AcqRel, Ordering::Acquire);
        if seen == Err(SUBMITTED) {
            self.0.deliver(Err(lost_outcome()));
        }
    }
}
