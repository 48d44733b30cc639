//! What workers do, and what comes back: each kind of work has a reply of its own type.

use crate::admission::{Class, Refusal};
use crate::key::Key;
use crate::store::{Lookup, Write};
use crate::timing::StorageWork;
use crate::work::range_reader::RangeReader;
use kvant_base::Result;
use kvant_base::tag::Activity;

/// A point read for a worker.
#[derive(Debug)]
pub(in crate::work) struct GetRequest {
    pub(in crate::work) key: Key,
    pub(in crate::work) block_bytes_max: u32,
}

/// Work that a selector can send to the pool.
pub(in crate::work) trait PoolWork: Sized {
    /// What a worker makes of it.
    type Output;
}

impl PoolWork for GetRequest {
    type Output = Result<Lookup>;
}

/// Committed together. The outcome: whether the sync level is reached.
impl PoolWork for Vec<Write> {
    type Output = Result<()>;
}

/// One piece of a range.
impl PoolWork for Box<RangeReader> {
    type Output = (Box<RangeReader>, Result<()>);
}

/// What became of a job.
pub(in crate::work) enum PoolReply<W: PoolWork> {
    Finished(W::Output),
    /// Nothing of it was done.
    Refused(Refusal, W),
    /// The selector does it itself (`--overload caller-runs`).
    CallerRuns(W),
}

/// What became of a job, and when.
pub(in crate::work) struct Done<W: PoolWork> {
    pub(crate) reply: PoolReply<W>,
    /// For a job that was not finished, `started_ns` and `done_ns` are when that was decided.
    /// `stall` is not set.
    pub(crate) work: StorageWork,
}

/// Where the reply to a job goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ticket {
    pub(super) selector: usize,
    pub(super) slot: usize,
}

/// A job in the queue.
pub(in crate::work) enum Work {
    Get(GetRequest),
    Write(Vec<Write>),
    Range(Box<RangeReader>),
}

impl Work {
    /// Its priority.
    pub(super) fn class(&self) -> Class {
        match self {
            Work::Get(_) => Class::Read,
            Work::Write(_) => Class::Write,
            Work::Range(_) => Class::Range,
        }
    }

    /// The activity under which profiles show it: for writes, that of the first.
    pub(super) fn activity(&self) -> Activity {
        match self {
            Work::Get(_) => Activity::Get,
            Work::Write(writes) => writes.first().map_or(Activity::None, Write::activity),
            Work::Range(_) => Activity::Range,
        }
    }

    /// The requests that it is done for: what it takes of the queue's capacity.
    pub(super) fn request_count(&self) -> usize {
        match self {
            Work::Write(writes) => writes.len(),
            Work::Get(_) | Work::Range(_) => 1,
        }
    }

    /// Whether it goes on with a response that has begun, and so is never refused.
    pub(super) fn is_begun(&self) -> bool {
        matches!(self, Work::Range(reader) if reader.is_begun())
    }
}
