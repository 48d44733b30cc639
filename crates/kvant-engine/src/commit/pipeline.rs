//! The pipeline: submitted batches, in one order, to the log, into the memtable, to their
//! completions.
//!
//! The leader does this for all writers (flat combining: Hendler, Incze, Shavit, Tzafrir, SPAA
//! 2010; see `docs/decisions/0001-one-thread-inserts-a-group.md`). At
//! [`SyncLevel::Always`](crate::SyncLevel::Always) the sync task completes the groups: one fsync
//! makes all groups durable that were written before it.
//!
//! Invariants:
//! 1. sequence numbers are consecutive and in the order of the log;
//! 2. a batch is visible only when it has reached its sync level, and completed only when it is
//!    visible;
//! 3. the memtable is sealed only between groups, so a log file holds exactly the groups of its
//!    memtable;
//! 4. after an append or a sync whose outcome is unknown, nothing is written any more.
//!
//! Threads: any thread submits; the leader holds the lock of [`Leader`]; one task syncs.

use super::queue::{CommitQueue, Completion, Group, Pending};
use super::sync::{LogSync, Synced};
use crate::batch::WriteBatch;
use crate::format::SeqNum;
use kvant_base::lock::{NamedGuard, NamedMutex};
use kvant_base::tag::{self, Stage};
use kvant_base::{Error, ErrorKind, Result};
use std::sync::Arc;

/// The environment that the pipeline writes to. Tests replace it.
pub(crate) trait CommitEnv: Send + Sync {
    /// The log and the memtable that are being written. Only the leader uses it.
    type Writer: Send;

    fn check_writable(&self) -> Result<()>;
    /// Fences writes, unless that has happened. Returns the first cause.
    fn fence(&self, cause: Error) -> Error;
    /// Sees to it that there is a log, and a memtable that is not full. On error nothing of the
    /// group is written.
    fn prepare(&self, writer: &mut Self::Writer, group: Group<'_>) -> Result<()>;
    /// Appends a group to the log as one record, and returns the new end of the log.
    ///
    /// # Errors
    /// `OutcomeUnknown`: the record may be in the log. Otherwise nothing of it is.
    fn append(&self, writer: &mut Self::Writer, group: Group<'_>, first_seq: SeqNum)
    -> Result<u64>;
    fn insert(&self, writer: &mut Self::Writer, group: Group<'_>, first_seq: SeqNum);
    /// Shows readers everything up to `last_seq`.
    fn publish(&self, last_seq: SeqNum);
    /// Wakes the task that calls [`Pipeline::sync_step`].
    fn wake_sync(&self);
}

pub(crate) struct Pipeline<E: CommitEnv> {
    pub(crate) env: E,
    pub(crate) sync: Arc<LogSync>,
    queue: CommitQueue,
    leader: NamedMutex<Leader<E::Writer>>,
}

pub(crate) struct Leader<W> {
    pub(crate) writer: W,
    pub(crate) next_seq: SeqNum,
    /// Kept between turns for its memory.
    pending: Vec<Pending>,
}

/// What one call of [`Pipeline::sync_step`] did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SyncStep {
    /// Nothing was due, or could be done. The next sync is due at this time, if any.
    NotDue(Option<u64>),
    /// All groups written before the call are durable and visible.
    Synced {
        /// Whether groups became visible now.
        has_published: bool,
    },
    /// Writes are fenced: no group will become durable.
    Fenced,
}

impl<E: CommitEnv> Pipeline<E> {
    pub(crate) fn new(
        env: E,
        sync: Arc<LogSync>,
        writer: E::Writer,
        next_seq: SeqNum,
    ) -> Pipeline<E> {
        let leader = Leader { writer, next_seq, pending: Vec::new() };
        Pipeline { env, sync, queue: CommitQueue::new(), leader: NamedMutex::new("writer", leader) }
    }

    /// Commits `batch` without waiting for an fsync. `done` has been or will be called.
    pub(crate) fn submit(&self, batch: WriteBatch, done: Completion) {
        if batch.is_empty() {
            done(Ok(()));
        } else if self.queue.push(Pending { batch, done }) {
            self.lead();
        }
    }

    /// Waits for the leader and keeps others from writing.
    pub(crate) fn lock(&self) -> NamedGuard<'_, Leader<E::Writer>> {
        self.leader.lock()
    }

    fn lead(&self) {
        let mut leader = self.lock();
        let mut pending = std::mem::take(&mut leader.pending);
        while self.queue.take(&mut pending) {
            while !pending.is_empty() {
                self.commit_first(&mut leader, &mut pending);
            }
        }
        leader.pending = pending;
    }

    fn commit_first(&self, leader: &mut Leader<E::Writer>, pending: &mut Vec<Pending>) {
        let group = Group::first_of(pending);
        let (count, outcome) = (group.batches().len(), self.write(leader, group));
        let batches = pending.drain(..count);
        match outcome {
            Ok(end_bytes) => {
                self.finish(leader, end_bytes, batches.map(|pending| pending.done).collect());
            }
            // A delete must not fail because a put in its group needs space.
            Err(error) if error.kind() == ErrorKind::NoSpace && count > 1 => {
                for pending in batches {
                    match self.write(leader, Group::of(&pending)) {
                        Ok(end_bytes) => self.finish(leader, end_bytes, vec![pending.done]),
                        Err(error) => (pending.done)(Err(error)),
                    }
                }
            }
            Err(error) => fail(batches.map(|pending| pending.done), &error),
        }
    }

    /// Log first, then memtable. Returns the end of the log. On error nothing of the group is in
    /// either, or its outcome is unknown and writes are fenced.
    fn write(&self, leader: &mut Leader<E::Writer>, group: Group<'_>) -> Result<u64> {
        self.env.check_writable()?;
        let Leader { writer, next_seq, .. } = leader;
        self.env.prepare(writer, group)?;
        let first_seq = *next_seq;
        let after_seq = SeqNum(first_seq.0 + group.op_count as u64);
        assert!(after_seq.0 - 1 <= SeqNum::MAX.0, "sequence numbers are used up");
        let tag = tag::stage(Stage::Wal);
        let end_bytes =
            self.env.append(writer, group, first_seq).map_err(|error| match error.kind() {
                ErrorKind::OutcomeUnknown => {
                    self.env.fence(error).with_kind(ErrorKind::OutcomeUnknown)
                }
                _ => error,
            })?;
        tag.stage(Stage::Memtable);
        self.env.insert(writer, group, first_seq);
        *next_seq = after_seq;
        Ok(end_bytes)
    }

    /// Publishes and completes the group that was written last, or leaves that to the sync task.
    fn finish(&self, leader: &Leader<E::Writer>, end_bytes: u64, done: Vec<Completion>) {
        let last_seq = SeqNum(leader.next_seq.0 - 1);
        let (done, must_wake_sync) = self.sync.written(end_bytes, last_seq, done);
        if let Some(done) = done {
            self.env.publish(last_seq);
            done.into_iter().for_each(|done| done(Ok(())));
        }
        if must_wake_sync {
            self.env.wake_sync();
        }
    }

    /// Syncs the log if that is due, and publishes and completes the groups that waited for it.
    /// Only one task calls this.
    pub(crate) fn sync_step(&self) -> SyncStep {
        if let Err(error) = self.env.check_writable() {
            // Groups that were written while the failing sync ran.
            self.fail_unsynced(self.sync.take_waiting(), error);
            return SyncStep::Fenced;
        }
        let syncing = tag::stage(Stage::Sync);
        let synced = self.sync.sync_due();
        drop(syncing);
        match synced {
            Synced::NotDue(at_ns) => SyncStep::NotDue(at_ns),
            Synced::Done { visible, done } => {
                if let Some(last_seq) = visible {
                    self.env.publish(last_seq);
                }
                done.into_iter().for_each(|done| done(Ok(())));
                SyncStep::Synced { has_published: visible.is_some() }
            }
            Synced::Failed { error, done } => {
                let cause = self.env.fence(error);
                self.fail_unsynced(done, cause);
                SyncStep::Fenced
            }
        }
    }

    /// Completes groups whose sync failed, after the fence. A close that waits for the sync
    /// continues first: a completion may wait for the close.
    fn fail_unsynced(&self, done: Vec<Completion>, cause: Error) {
        self.sync.synced.notify_all();
        fail(done, &cause.with_kind(ErrorKind::OutcomeUnknown));
    }
}

fn fail(done: impl IntoIterator<Item = Completion>, error: &Error) {
    done.into_iter().for_each(|done| done(Err(error.clone())));
}

#[cfg(test)]
mod tests;
