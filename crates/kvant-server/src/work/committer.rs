//! The writes of one turn of the event loop, committed together.
//!
//! A request appends its write and waits. The first write of a turn wakes the committer, which the
//! runtime's first-in first-out queue runs after every connection that was ready in this turn; it
//! submits all their writes as one batch: one record in the write-ahead log instead of one for each
//! request, and no hand-over to another thread. With `--dispatch pool` a worker submits the batch.
//!
//! Merging is safe: a connection has at most one request in progress, so two writes in a batch come
//! from two clients, neither of which has seen a response. Every order of them could have been
//! observed.
//!
//! Invariants:
//! 1. A batch has puts or deletes, not both, so that a put that finds no space never fails a
//!    delete. The kind of the oldest write goes first; writes of a kind are submitted in the order
//!    in which they were appended. (Several workers may commit batches in any order.)
//! 2. Every write gets exactly one outcome. `Stalled` and `NoSpace` mean that nothing of it was
//!    written.
//! 3. A time to live is counted from the submission that succeeded: a write that waited does not
//!    expire early.
//!
//! Threads: all of it belongs to one selector. Only a store's completion, and a worker's part, run
//! elsewhere; outcomes are sent back.

use super::batcher::{self, PendingWrite};
use super::failure::Failure;
use super::pool::PoolReply;
use super::storage::Storage;
use crate::config::DispatchMode;
use crate::store::{Backend, Completion, LocalStore};
use kvant_base::tag::{self, Activity, Stage};
use kvant_base::wait::{self, WaitKind};
use kvant_base::{Error, ErrorKind, Result};
use std::fmt::Debug;
use std::rc::Rc;
use std::sync::Arc;
use tokio::sync::oneshot;
use tokio::time::Instant;

/// Keys and values of one batch, unless a single write is longer: bounds a record of the log and
/// the time to write it.
const BATCH_BYTES_MAX: usize = 1 << 20;

/// The committer: submits what requests append. Never returns.
pub(super) async fn run(storage: Rc<Storage>) {
    let mut writes = Vec::new();
    loop {
        storage.batcher.take_into(&mut writes).await;
        let Some(store) = storage.lifecycle.store().and_then(Backend::local).cloned() else {
            // Unreachable in practice: a request appends only when there is a local store.
            let closed = Error::new(ErrorKind::Closed, "there is no store");
            finish(&storage, writes.drain(..), &Err(closed.into()));
            continue;
        };
        let mut retries = storage.batcher.retries.take();
        if !retries.is_empty() {
            retries.append(&mut writes);
            writes = retries;
            wait_out_stall(&storage, &*store, &mut writes).await;
        }
        while !writes.is_empty() {
            let count = batch_len(&writes);
            if storage.config.dispatch == DispatchMode::Pool {
                let count = count.min(storage.write_count_max());
                send(&storage, &store, writes.drain(..count).collect());
                continue;
            }
            match submit(&storage, &*store, &mut writes[..count]) {
                Submitted::Done(result) if is_stalled(&result) => {
                    wait_out_stall(&storage, &*store, &mut writes).await;
                }
                Submitted::Done(result) => {
                    finish(&storage, writes.drain(..count), &result.map_err(Failure::from));
                }
                Submitted::Later(outcome) => {
                    let batch: Vec<PendingWrite> = writes.drain(..count).collect();
                    let storage = Rc::clone(&storage);
                    tokio::task::spawn_local(async move {
                        finish_or_retry(&storage, batch, received(outcome.await));
                    });
                }
            }
        }
    }
}

/// How many of the first writes make one batch: all puts or all deletes.
fn batch_len(writes: &[PendingWrite]) -> usize {
    let mut bytes = 0;
    let fits = writes.iter().take_while(|pending| {
        bytes += pending.write.bytes();
        bytes <= BATCH_BYTES_MAX && pending.write.is_delete() == writes[0].write.is_delete()
    });
    fits.count().max(1)
}

fn send(storage: &Rc<Storage>, store: &Arc<dyn LocalStore>, mut batch: Vec<PendingWrite>) {
    start_ttls(storage, &mut batch);
    let later = storage.send_writes(batch.iter().map(|pending| pending.write.clone()).collect());
    let (storage, store) = (Rc::clone(storage), Arc::clone(store));
    tokio::task::spawn_local(async move {
        let done = later.await;
        for pending in &mut batch {
            pending.work.started_ns = done.work.started_ns;
        }
        let result = match done.reply {
            PoolReply::Finished(result) => {
                if result.is_ok() {
                    count_batch(&storage, &batch);
                }
                result
            }
            PoolReply::CallerRuns(_) => match submit(&storage, &*store, &mut batch) {
                Submitted::Done(result) => result,
                Submitted::Later(outcome) => received(outcome.await),
            },
            PoolReply::Refused(refusal, _) => {
                return finish(&storage, batch.into_iter(), &Err(Failure::Refused(refusal)));
            }
        };
        finish_or_retry(&storage, batch, result);
    });
}

enum Submitted {
    Done(Result<()>),
    Later(oneshot::Receiver<Result<()>>),
}

fn submit(storage: &Storage, store: &dyn LocalStore, writes: &mut [PendingWrite]) -> Submitted {
    let activity = writes.first().map_or(Activity::None, |pending| pending.write.activity());
    let _tag = tag::enter_at(activity, Stage::Dispatch);
    let started_ns = storage.meter.now_ns();
    writes.iter_mut().for_each(|pending| pending.work.started_ns = started_ns);
    start_ttls(storage, writes);
    let (sender, mut receiver) = oneshot::channel();
    let done = Completion::new(move |result| {
        // The receiver is gone when the selector has stopped; the write stands all the same.
        drop(sender.send(result));
    });
    store.submit(&mut writes.iter().map(|pending| &pending.write), done);
    match receiver.try_recv() {
        Err(oneshot::error::TryRecvError::Empty) => {
            count_batch(storage, writes);
            Submitted::Later(receiver)
        }
        outcome => {
            let result = received(outcome);
            if result.is_ok() {
                count_batch(storage, writes);
            }
            Submitted::Done(result)
        }
    }
}

/// What came through the channel of a completion.
fn received<E: Debug>(outcome: std::result::Result<Result<()>, E>) -> Result<()> {
    outcome.expect("a completion reports an outcome even when it is dropped")
}

fn is_stalled(result: &Result<()>) -> bool {
    matches!(result, Err(error) if error.kind() == ErrorKind::Stalled)
}

fn count_batch(storage: &Storage, writes: &[PendingWrite]) {
    storage.meter.counters.write_batches.add(1);
    storage.meter.counters.batched_writes.add(writes.len() as u64);
}

/// Counts times to live from now.
fn start_ttls(storage: &Storage, writes: &mut [PendingWrite]) {
    let mut wall_ms = None;
    for pending in writes.iter_mut().filter(|pending| pending.write.ttl_ms.is_some()) {
        let wall_ms = *wall_ms.get_or_insert_with(|| storage.meter.clock.wall_ms());
        pending.write.start_ttl(wall_ms);
    }
}

fn finish_or_retry(storage: &Storage, batch: Vec<PendingWrite>, result: Result<()>) {
    if is_stalled(&result) {
        return storage.batcher.retry(batch);
    }
    finish(storage, batch.into_iter(), &result.map_err(Failure::from));
}

fn finish(
    storage: &Storage,
    writes: impl Iterator<Item = PendingWrite>,
    result: &std::result::Result<(), Failure>,
) {
    let done_ns = storage.meter.now_ns();
    writes.for_each(|pending| pending.finish(result.clone(), done_ns));
}

struct Writable;

/// Waits until the store may take `writes` again. Writes that wait too long, these or ones appended
/// meanwhile, fail as stalled; the rest is in `writes` afterwards.
async fn wait_out_stall(storage: &Storage, store: &dyn LocalStore, writes: &mut Vec<PendingWrite>) {
    let batcher = &storage.batcher;
    let counters = &storage.meter.counters;
    let wait_max = storage.config.queue_wait_max;
    counters.write_stalls.add(1);
    let _waiting = store.stall().map(|reason| wait::begin(WaitKind::Backpressure, reason));
    batcher.is_stalled.set(true);
    let (wake, mut writable) = oneshot::channel();
    store.on_writable(Box::new(move || {
        // The receiver is gone when every write has given up.
        drop(wake.send(Writable));
    }));
    let (mut reason, mut is_over) = (None, false);
    loop {
        writes.append(&mut batcher.retries.borrow_mut());
        writes.append(&mut batcher.queue.borrow_mut());
        let now = Instant::now();
        reason = store.stall().or(reason);
        for pending in writes.iter_mut() {
            pending.waits_since.get_or_insert(now);
            pending.work.stall = pending.work.stall.or(reason);
            // The submission at this time was rejected.
            pending.work.started_ns = 0;
        }
        if is_over {
            break;
        }
        let is_late = |pending: &mut PendingWrite| {
            pending.waits_since.is_some_and(|since| since + wait_max <= now)
        };
        let late: Vec<PendingWrite> = writes.extract_if(.., is_late).collect();
        counters.writes_stalled_out.add(late.len() as u64);
        // The stall may just have ended.
        let stalled = Error::new(ErrorKind::Stalled, store.stall().unwrap_or("over"));
        finish(storage, late.into_iter(), &Err(stalled.into()));
        let Some(first_since) = writes.iter().filter_map(|pending| pending.waits_since).min()
        else {
            break;
        };
        tokio::select! {
            biased;
            _ = &mut writable => is_over = true,
            () = tokio::time::sleep_until(first_since + wait_max) => {}
        }
    }
    batcher.is_stalled.set(false);
    batcher::group_by_kind(writes);
    // A store that is writable and stalls again at once must not keep the selector from its
    // connections.
    tokio::task::yield_now().await;
}

#[cfg(test)]
mod tests;
