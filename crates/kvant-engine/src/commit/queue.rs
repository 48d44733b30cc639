//! The queue in front of the leader, and the groups that it takes from it.

use crate::batch::{Op, WriteBatch};
use crate::format::{InternalKeyRef, SeqNum};
use kvant_base::Result;
use kvant_base::lock::NamedMutex;

/// A group that begins with a small batch: the bytes that may join it.
const SMALL_BYTES: usize = 128 << 10;
/// Largest group, unless its first batch alone is larger. It bounds the log writer's buffer.
const GROUP_BYTES_MAX: usize = 1 << 20;

/// Called exactly once with the outcome of a submitted batch: on the submitting thread, on that of
/// another writer, or on the log's sync thread. It must not wait, and must not own the last clone
/// of the database: dropping that closes it, which waits for these threads.
pub type Completion = Box<dyn FnOnce(Result<()>) + Send>;

pub(crate) struct Pending {
    pub(crate) batch: WriteBatch,
    pub(crate) done: Completion,
}

/// Batches in order of arrival, and whether they have a leader.
pub(crate) struct CommitQueue {
    inner: NamedMutex<Inner>,
}

struct Inner {
    pending: Vec<Pending>,
    is_led: bool,
}

impl CommitQueue {
    pub(crate) fn new() -> CommitQueue {
        let inner = Inner { pending: Vec::new(), is_led: false };
        CommitQueue { inner: NamedMutex::new("commit_queue", inner) }
    }

    /// Queues a batch. True: the caller is the leader now, and must call [`CommitQueue::take`]
    /// until it returns false.
    pub(crate) fn push(&self, pending: Pending) -> bool {
        let mut inner = self.inner.lock();
        inner.pending.push(pending);
        !std::mem::replace(&mut inner.is_led, true)
    }

    /// Moves all queued batches into `taken`, which must be empty. False when there are none, which
    /// ends the leadership.
    pub(crate) fn take(&self, taken: &mut Vec<Pending>) -> bool {
        let mut inner = self.inner.lock();
        debug_assert!(taken.is_empty() && inner.is_led);
        std::mem::swap(&mut inner.pending, taken);
        inner.is_led = !taken.is_empty();
        inner.is_led
    }
}

/// Batches that share one log record.
#[derive(Clone, Copy)]
pub(crate) struct Group<'a> {
    pending: &'a [Pending],
    pub(crate) op_count: usize,
    pub(crate) bytes: usize,
}

impl<'a> Group<'a> {
    /// As many batches from the front of `pending` as make one group; at least one.
    ///
    /// The limit follows the first batch, as in LevelDB: a small one does not wait for much that
    /// came after it.
    pub(crate) fn first_of(pending: &'a [Pending]) -> Group<'a> {
        let mut group = Group::of(&pending[0]);
        let bytes_max =
            if group.bytes <= SMALL_BYTES { group.bytes + SMALL_BYTES } else { GROUP_BYTES_MAX };
        for (index, Pending { batch, .. }) in pending.iter().enumerate().skip(1) {
            if group.bytes + batch.bytes() > bytes_max {
                break;
            }
            group.pending = &pending[..=index];
            group.op_count += batch.len();
            group.bytes += batch.bytes();
        }
        group
    }

    pub(crate) fn of(pending: &'a Pending) -> Group<'a> {
        let (op_count, bytes) = (pending.batch.len(), pending.batch.bytes());
        Group { pending: std::slice::from_ref(pending), op_count, bytes }
    }

    pub(crate) fn batches(self) -> impl ExactSizeIterator<Item = &'a WriteBatch> {
        self.pending.iter().map(|pending| &pending.batch)
    }

    pub(crate) fn deletes_only(self) -> bool {
        self.batches().all(|batch| batch.put_count() == 0)
    }

    /// The entries of the group, the first of which gets the number `first_seq`.
    pub(crate) fn entries(
        self,
        first_seq: SeqNum,
    ) -> impl Iterator<Item = (InternalKeyRef<'a>, &'a [u8])> {
        self.batches().flat_map(WriteBatch::ops).zip(first_seq.0..).map(|(op, seq)| {
            let Op { kind, key, stored } = op.expect("a batch that was built here decodes");
            (InternalKeyRef::new(key, SeqNum(seq), kind), stored)
        })
    }
}
