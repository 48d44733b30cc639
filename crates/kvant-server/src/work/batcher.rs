//! The writes that a selector's requests append, until the committer takes them.
//!
//! Threads: belongs to one selector.

use super::failure::Failure;
use crate::store::Write;
use crate::timing::StorageWork;
use kvant_base::Reservation;
use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::mem;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use tokio::time::Instant;

#[derive(Default)]
pub(crate) struct Batcher {
    pub(super) queue: RefCell<Vec<PendingWrite>>,
    /// Writes that workers could not commit because of a stall: they go before the queue.
    pub(super) retries: RefCell<Vec<PendingWrite>>,
    committer: Cell<Option<Waker>>,
    /// The committer waits for a stall to end: new writes note when they came.
    pub(super) is_stalled: Cell<bool>,
}

pub(super) struct PendingWrite {
    pub(super) write: Write,
    outcome: Rc<WriteCell>,
    /// Set when the write meets a stall.
    pub(super) waits_since: Option<Instant>,
    pub(super) work: StorageWork,
    /// For a write that came during a stall.
    _memory: Option<Reservation>,
}

#[derive(Default)]
struct WriteCell {
    outcome: Cell<Option<WriteOutcome>>,
    waiter: Cell<Option<Waker>>,
}

/// What became of a write, and when.
pub(crate) struct WriteOutcome {
    pub(super) result: std::result::Result<(), Failure>,
    pub(super) work: StorageWork,
}

/// Resolves when a write has its outcome. Dropping it does not take the write back.
pub(crate) struct Writing(Rc<WriteCell>);

impl Future for Writing {
    type Output = WriteOutcome;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<WriteOutcome> {
        match self.0.outcome.take() {
            Some(outcome) => Poll::Ready(outcome),
            None => {
                self.0.waiter.set(Some(cx.waker().clone()));
                Poll::Pending
            }
        }
    }
}

impl PendingWrite {
    /// Reports the outcome, which is known since `done_ns`.
    pub(super) fn finish(self, result: std::result::Result<(), Failure>, done_ns: u64) {
        let mut work = self.work;
        work.done_ns = done_ns;
        // A write that was never submitted has waited all the time.
        work.started_ns = if work.started_ns == 0 { done_ns } else { work.started_ns };
        self.outcome.outcome.set(Some(WriteOutcome { result, work }));
        if let Some(waiter) = self.outcome.waiter.take() {
            waiter.wake();
        }
    }
}

impl Batcher {
    /// Appends a write to this turn's batch, at `queued_ns`.
    pub(super) fn append(
        &self,
        write: Write,
        memory: Option<Reservation>,
        queued_ns: u64,
    ) -> Writing {
        let outcome = Rc::<WriteCell>::default();
        self.queue.borrow_mut().push(PendingWrite {
            write,
            outcome: Rc::clone(&outcome),
            waits_since: self.is_stalled.get().then(Instant::now),
            work: StorageWork { queued_ns, ..StorageWork::default() },
            _memory: memory,
        });
        self.wake_committer();
        Writing(outcome)
    }

    /// Moves the appended writes to `writes`, which is empty, puts first. Waits for the first
    /// write.
    pub(super) async fn take_into(&self, writes: &mut Vec<PendingWrite>) {
        poll_fn(|cx| {
            let mut queue = self.queue.borrow_mut();
            if queue.is_empty() && self.retries.borrow().is_empty() {
                self.committer.set(Some(cx.waker().clone()));
                return Poll::Pending;
            }
            mem::swap(writes, &mut queue);
            Poll::Ready(())
        })
        .await;
        group_by_kind(writes);
    }

    /// Takes back writes that have to wait for the end of a stall.
    pub(super) fn retry(&self, mut writes: Vec<PendingWrite>) {
        let now = Instant::now();
        for pending in &mut writes {
            pending.waits_since.get_or_insert(now);
        }
        self.retries.borrow_mut().append(&mut writes);
        self.wake_committer();
    }

    pub(super) fn is_stalled(&self) -> bool {
        self.is_stalled.get()
    }

    fn wake_committer(&self) {
        if let Some(committer) = self.committer.take() {
            committer.wake();
        }
    }
}

/// Moves puts together and deletes together, so that they make two batches. The kind of the oldest
/// write goes first: in a stall, later writes of the other kind must not overtake it each time.
pub(super) fn group_by_kind(writes: &mut [PendingWrite]) {
    let Some(oldest) = writes.iter().min_by_key(|pending| pending.work.queued_ns) else {
        return;
    };
    let first_is_delete = oldest.write.is_delete();
    let is_second = |pending: &PendingWrite| pending.write.is_delete() != first_is_delete;
    if !writes.is_sorted_by_key(is_second) {
        writes.sort_by_key(is_second);
    }
}

#[cfg(test)]
pub(super) mod tests;
