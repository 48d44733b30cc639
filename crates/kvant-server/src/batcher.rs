//! Writes of one turn of the event loop, committed together.
//!
//! A handler appends its write and waits. The first write of a turn wakes the committer, which the
//! runtime's first-in first-out run queue puts behind every connection that was ready in this turn;
//! when it runs, it submits all their writes as one batch: one record in the write-ahead log
//! instead of one a request, and no hand-over to another thread. With `--dispatch pool` a worker
//! submits the batch.
//!
//! Merging is safe: a connection has at most one request in progress (hyper starts the next when
//! the answer to the last is written), so two writes in a batch come from two clients, neither of
//! which has seen an answer yet. Any order of them is one that could have been observed, and the
//! batch's own is the order in which they arrived.
//!
//! Invariants:
//! 1. Writes are submitted in the order in which they were appended, but for those of 4; a stalled
//!    batch is retried before later ones. Several workers may commit batches in any order.
//! 2. Every write gets exactly one outcome. `Stalled` and `NoSpace` mean that nothing of it was
//!    written.
//! 3. A time to live is counted from the submission that succeeded, so a write that waited does not
//!    expire early.
//! 4. Deletes never fail for want of space because of puts that happen to share their batch: they
//!    are submitted again alone.
//!
//! Threads: all of it belongs to one selector. Only a store's completion, and a worker's part, run
//! elsewhere; outcomes are sent back.

use crate::config::DispatchMode;
use crate::counters;
use crate::dispatch::Failure;
use crate::key::Key;
use crate::pool::{self, Work};
use crate::selector::Selector;
use crate::stores::{Store, Write};
use crate::timing::StorageWork;
use bytes::Bytes;
use kvant_base::tag::{self, Activity, Stage};
use kvant_base::wait::{self, WaitKind};
use kvant_base::{Error, ErrorKind, Result};
use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::mem;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use tokio::sync::oneshot;
use tokio::time::Instant;

/// Keys and values of one batch, unless a single write is longer: bounds a record of the log and
/// the time to write it.
const BATCH_BYTES_MAX: usize = 1 << 20;

/// Collects the writes of one selector.
#[derive(Default)]
pub(crate) struct Batcher {
    queue: RefCell<Vec<Op>>,
    /// What workers could not write for a stall: goes before the queue.
    again: RefCell<Vec<Op>>,
    committer: Cell<Option<Waker>>,
    /// The committer waits for a stall to end: writes note when they came.
    stalled: Cell<bool>,
}

struct Op {
    write: Write,
    outcome: Rc<Outcome>,
    /// Only known of writes that met a stall.
    waits_since: Option<Instant>,
    work: StorageWork,
}

#[derive(Default)]
struct Outcome {
    result: Cell<Option<Written>>,
    waiter: Cell<Option<Waker>>,
}

/// What became of a write, and when.
pub(crate) struct Written {
    pub(crate) result: std::result::Result<(), Failure>,
    pub(crate) work: StorageWork,
}

/// Resolves when a write has its outcome. Dropping it does not take the write back.
pub(crate) struct Writing(Rc<Outcome>);

impl Future for Writing {
    type Output = Written;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Written> {
        match self.0.result.take() {
            Some(written) => Poll::Ready(written),
            None => {
                self.0.waiter.set(Some(cx.waker().clone()));
                Poll::Pending
            }
        }
    }
}

impl Op {
    /// `done_ns`: when the outcome was known.
    fn finish(self, result: std::result::Result<(), Failure>, done_ns: u64) {
        let mut work = self.work;
        work.done_ns = done_ns;
        // One that never came to storage has waited all the time.
        work.started_ns = if work.started_ns == 0 { done_ns } else { work.started_ns };
        self.outcome.result.set(Some(Written { result, work }));
        if let Some(waiter) = self.outcome.waiter.take() {
            waiter.wake();
        }
    }

    fn bytes(&self) -> usize {
        self.write.key.len() + self.write.value.as_ref().map_or(0, Bytes::len)
    }
}

enum Submitted {
    Done(Result<()>),
    Later(oneshot::Receiver<Result<()>>),
    Stalled,
}

impl Batcher {
    /// Appends a write to this turn's batch, at `queued_ns`. No value: a delete.
    pub(crate) fn write(
        &self,
        key: Key,
        value: Option<Bytes>,
        ttl_ms: Option<u64>,
        queued_ns: u64,
    ) -> Writing {
        let outcome = Rc::<Outcome>::default();
        let waits_since = self.stalled.get().then(Instant::now);
        let write = Write { key, value, ttl_ms, expires_at_ms: None };
        self.queue.borrow_mut().push(Op {
            write,
            outcome: Rc::clone(&outcome),
            waits_since,
            work: StorageWork { queued_ns, ..StorageWork::default() },
        });
        if let Some(committer) = self.committer.take() {
            committer.wake();
        }
        Writing(outcome)
    }

    /// Moves what has been appended to the end of `ops`, waiting for the first.
    async fn take_into(&self, ops: &mut Vec<Op>) {
        poll_fn(|cx| {
            let mut queue = self.queue.borrow_mut();
            if queue.is_empty() && self.again.borrow().is_empty() {
                self.committer.set(Some(cx.waker().clone()));
                return Poll::Pending;
            }
            if ops.is_empty() {
                mem::swap(ops, &mut queue);
            } else {
                ops.append(&mut queue);
            }
            Poll::Ready(())
        })
        .await;
    }

    /// Takes back what has to wait for the end of a stall.
    fn wait_with(&self, mut ops: Vec<Op>) {
        let now = Instant::now();
        for op in &mut ops {
            op.waits_since.get_or_insert(now);
        }
        self.again.borrow_mut().append(&mut ops);
        if let Some(committer) = self.committer.take() {
            committer.wake();
        }
    }
}

/// The committer: submits what the selector's handlers append, for ever.
pub(crate) async fn run(selector: Rc<Selector>) {
    let mut ops = Vec::new();
    loop {
        selector.batcher.take_into(&mut ops).await;
        let Some(store) = selector.shared.lifecycle.store().cloned() else {
            // Routes append only when there is a store.
            let closed = Error::new(ErrorKind::Closed, "there is no store");
            finish_all(&selector, ops.drain(..), &Err(closed.into()));
            continue;
        };
        let mut again = selector.batcher.again.take();
        if !again.is_empty() {
            again.append(&mut ops);
            ops = again;
            wait_out_stall(&selector, &store, &mut ops).await;
        }
        while !ops.is_empty() {
            let count = batch_len(&ops);
            if selector.shared.config.dispatch == DispatchMode::Pool {
                let count = count.min(selector.write_count_max());
                send(&selector, &store, ops.drain(..count).collect());
                continue;
            }
            match submit(&selector, &store, &mut ops[..count]) {
                Submitted::Done(result) => finish(&selector, &store, ops.drain(..count), result),
                Submitted::Later(outcome) => {
                    let batch: Vec<Op> = ops.drain(..count).collect();
                    let (selector, store) = (Rc::clone(&selector), Arc::clone(&store));
                    tokio::task::spawn_local(async move {
                        let result = outcome.await.unwrap_or_else(|_| Err(lost_outcome()));
                        finish(&selector, &store, batch.into_iter(), result);
                    });
                }
                Submitted::Stalled => wait_out_stall(&selector, &store, &mut ops).await,
            }
        }
    }
}

/// How many of the first writes make one batch.
fn batch_len(ops: &[Op]) -> usize {
    let mut bytes = 0;
    let fits = ops.iter().take_while(|op| {
        bytes += op.bytes();
        bytes <= BATCH_BYTES_MAX
    });
    fits.count().max(1)
}

/// Has a worker commit a batch.
fn send(selector: &Rc<Selector>, store: &Arc<dyn Store>, mut batch: Vec<Op>) {
    start_ttls(selector, &mut batch);
    let writes = batch.iter().map(|op| op.write.clone()).collect();
    let later = selector.port().send(Work::Write(writes));
    let (selector, store) = (Rc::clone(selector), Arc::clone(store));
    tokio::task::spawn_local(async move {
        let done = later.await;
        for op in &mut batch {
            op.work.started_ns = done.work.started_ns;
        }
        let result = match done.outcome {
            pool::Outcome::Written(Ok(())) => {
                count_batch(&selector, &batch);
                Ok(())
            }
            pool::Outcome::Written(Err(error)) => Err(error),
            pool::Outcome::RunHere(_) => match submit(&selector, &store, &mut batch) {
                Submitted::Done(result) => result,
                Submitted::Later(outcome) => outcome.await.unwrap_or_else(|_| Err(lost_outcome())),
                Submitted::Stalled => return selector.batcher.wait_with(batch),
            },
            pool::Outcome::Refused(refusal, _) => {
                return finish_all(&selector, batch.into_iter(), &Err(Failure::Refused(refusal)));
            }
            _ => unreachable!("the outcome of writes is one of writes"),
        };
        match result {
            Err(error) if error.kind() == ErrorKind::Stalled => selector.batcher.wait_with(batch),
            result => finish(&selector, &store, batch.into_iter(), result),
        }
    });
}

fn submit(selector: &Selector, store: &Arc<dyn Store>, ops: &mut [Op]) -> Submitted {
    // Writes of both kinds may be in a batch: the first one names it.
    let activity = ops.first().map_or(Activity::None, |op| op.write.activity());
    let _tag = tag::enter_at(activity, Stage::Dispatch);
    let started_ns = selector.now_ns();
    ops.iter_mut().for_each(|op| op.work.started_ns = started_ns);
    start_ttls(selector, ops);
    let (sender, mut receiver) = oneshot::channel();
    let done = Box::new(move |result| {
        // Nobody listens any more when the selector has stopped; the write stands all the same.
        drop(sender.send(result));
    });
    match store.submit(&mut ops.iter().map(|op| &op.write), done) {
        Ok(()) => {
            count_batch(selector, ops);
            match receiver.try_recv() {
                Ok(result) => Submitted::Done(result),
                Err(oneshot::error::TryRecvError::Empty) => Submitted::Later(receiver),
                Err(oneshot::error::TryRecvError::Closed) => Submitted::Done(Err(lost_outcome())),
            }
        }
        Err(error) if error.kind() == ErrorKind::Stalled => Submitted::Stalled,
        Err(error) => Submitted::Done(Err(error)),
    }
}

fn count_batch(selector: &Selector, ops: &[Op]) {
    counters::add(&selector.counters.batches, 1);
    counters::add(&selector.counters.batched_writes, ops.len() as u64);
}

/// Counts times to live from now.
fn start_ttls(selector: &Selector, ops: &mut [Op]) {
    let mut wall_ms = None;
    for op in ops.iter_mut().filter(|op| op.write.ttl_ms.is_some()) {
        let wall_ms = *wall_ms.get_or_insert_with(|| selector.shared.env.clock.wall_ms());
        op.write.start_ttl(wall_ms);
    }
}

fn lost_outcome() -> Error {
    Error::new(ErrorKind::OutcomeUnknown, "the store dropped a write without an outcome")
}

/// Gives a batch its outcome; deletes of a mixed batch that found no space get another try without
/// the puts.
fn finish(
    selector: &Rc<Selector>,
    store: &Arc<dyn Store>,
    ops: impl ExactSizeIterator<Item = Op>,
    result: Result<()>,
) {
    match result {
        Err(error) if error.kind() == ErrorKind::NoSpace && ops.len() > 1 => {
            let (puts, deletes): (Vec<Op>, Vec<Op>) = ops.partition(|op| op.write.value.is_some());
            if puts.is_empty() || deletes.is_empty() {
                finish_all(selector, puts.into_iter().chain(deletes), &Err(error.into()));
            } else {
                finish_all(selector, puts.into_iter(), &Err(error.into()));
                let (selector, store) = (Rc::clone(selector), Arc::clone(store));
                tokio::task::spawn_local(commit_deletes(selector, store, deletes));
            }
        }
        result => finish_all(selector, ops, &result.map_err(Failure::from)),
    }
}

fn finish_all(
    selector: &Selector,
    ops: impl Iterator<Item = Op>,
    result: &std::result::Result<(), Failure>,
) {
    let done_ns = selector.now_ns();
    ops.for_each(|op| op.finish(result.clone(), done_ns));
}

async fn commit_deletes(selector: Rc<Selector>, store: Arc<dyn Store>, mut deletes: Vec<Op>) {
    let result = match submit(&selector, &store, &mut deletes) {
        Submitted::Done(result) => result,
        Submitted::Later(outcome) => outcome.await.unwrap_or_else(|_| Err(lost_outcome())),
        // A full disk and a stall at once: the clients may as well retry.
        Submitted::Stalled => Err(stalled_too_long(store.stall())),
    };
    finish_all(&selector, deletes.into_iter(), &result.map_err(Failure::from));
}

fn stalled_too_long(reason: Option<&'static str>) -> Error {
    // The stall may just have ended.
    Error::new(ErrorKind::Stalled, reason.unwrap_or("over"))
}

/// A stall is over.
struct Writable;

/// Waits until the store may take `ops` again. Writes that wait too long, these or ones appended
/// meanwhile, are finished as stalled; the rest is in `ops` afterwards.
async fn wait_out_stall(selector: &Selector, store: &Arc<dyn Store>, ops: &mut Vec<Op>) {
    let batcher = &selector.batcher;
    let wait_max = selector.shared.config.queue_wait_max;
    counters::add(&selector.counters.stalls, 1);
    let _waiting = store.stall().map(|reason| wait::begin(WaitKind::Backpressure, reason));
    batcher.stalled.set(true);
    let (wake, mut writable) = oneshot::channel();
    store.on_writable(Box::new(move || {
        // Nobody listens any more when all that waited have given up.
        drop(wake.send(Writable));
    }));
    let mut is_over = false;
    while !is_over {
        ops.append(&mut batcher.again.borrow_mut());
        ops.append(&mut batcher.queue.borrow_mut());
        let now = Instant::now();
        let reason = store.stall();
        for op in ops.iter_mut() {
            op.waits_since = op.waits_since.or(Some(now));
            op.work.stall = op.work.stall.or(reason);
            // What it was begun for was refused.
            op.work.started_ns = 0;
        }
        let is_late = |op: &mut Op| op.waits_since.is_some_and(|since| since + wait_max <= now);
        let late: Vec<Op> = ops.extract_if(.., is_late).collect();
        counters::add(&selector.counters.stalled_out, late.len() as u64);
        finish_all(selector, late.into_iter(), &Err(stalled_too_long(reason).into()));
        let Some(first_since) = ops.iter().filter_map(|op| op.waits_since).min() else {
            break;
        };
        tokio::select! {
            biased;
            _ = &mut writable => is_over = true,
            () = tokio::time::sleep_until(first_since + wait_max) => {}
        }
    }
    batcher.stalled.set(false);
    // A store that says "writable" and stalls again must not keep the selector from its
    // connections.
    tokio::task::yield_now().await;
}
