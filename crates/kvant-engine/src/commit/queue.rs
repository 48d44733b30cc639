//! The queue in front of the leader.

use crate::batch::WriteBatch;
use kvant_base::Result;
use kvant_base::lock::NamedMutex;

/// Called exactly once with the outcome of a submitted batch: on the submitting thread, on that of
/// another writer, or on the log's sync thread. It must not wait, and must not own the last clone
/// of the database: dropping that closes it, which waits for just these threads.
pub type Completion = Box<dyn FnOnce(Result<()>) + Send>;

/// A batch that waits for its commit.
pub(crate) struct Pending {
    pub(crate) batch: WriteBatch,
    pub(crate) done: Completion,
}

/// Batches in order of arrival, and whether somebody is committing them.
pub(crate) struct CommitQueue {
    inner: NamedMutex<Inner>,
}

struct Inner {
    pending: Vec<Pending>,
    led: bool,
}

impl CommitQueue {
    pub(crate) fn new() -> CommitQueue {
        CommitQueue {
            inner: NamedMutex::new("commit_queue", Inner { pending: Vec::new(), led: false }),
        }
    }

    /// Queues a batch. True: the caller is the leader now, and must call [`CommitQueue::take`]
    /// until it returns false.
    pub(crate) fn push(&self, pending: Pending) -> bool {
        let mut inner = self.inner.lock();
        inner.pending.push(pending);
        !std::mem::replace(&mut inner.led, true)
    }

    /// Moves everything that is queued into `group`, which must be empty; false when there is
    /// nothing, which ends the leadership.
    pub(crate) fn take(&self, group: &mut Vec<Pending>) -> bool {
        let mut inner = self.inner.lock();
        debug_assert!(group.is_empty() && inner.led);
        std::mem::swap(&mut inner.pending, group);
        inner.led = !group.is_empty();
        inner.led
    }
}
