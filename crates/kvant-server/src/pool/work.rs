//! What workers are asked to do, and what comes of it.

use crate::admission::{Class, Refusal};
use crate::key::Key;
use crate::stores::{Store, Write};
use crate::timing::StorageWork;
use kvant_base::Result;
use kvant_base::tag::Activity;
use kvant_engine::{Lookup, ReadTrace};
use std::any::Any;

/// A range that is read piece by piece, on whichever worker is free.
///
/// Who sent it gets it back with its own type: `(piece as Box<dyn Any>).downcast::<T>()`.
pub(crate) trait RangeWork: Any + Send {
    /// Reads the next piece (and opens the range before the first).
    fn read_piece(&mut self, store: &dyn Store) -> Result<()>;

    /// What reading it has touched so far.
    fn trace(&self) -> ReadTrace;

    /// Whether a piece has been read: its client has half an answer, so it is not refused any more.
    fn is_begun(&self) -> bool;
}

/// Storage work.
pub(crate) enum Work {
    /// Blocks of the disk longer than this are left alone.
    Get(Key, u32),
    /// Writes to be committed together. Those that expire do so later by the time that they wait in
    /// the queue.
    Write(Vec<Write>),
    Range(Box<dyn RangeWork>),
}

impl Work {
    /// Its priority.
    pub(crate) fn class(&self) -> Class {
        match self {
            Work::Get(..) => Class::Read,
            Work::Write(_) => Class::Write,
            Work::Range(_) => Class::Range,
        }
    }

    /// For whom profiles show it. Writes of both kinds may be done together: the first one names
    /// them.
    pub(crate) fn activity(&self) -> Activity {
        match self {
            Work::Get(..) => Activity::Get,
            Work::Write(writes) => writes.first().map_or(Activity::None, Write::activity),
            Work::Range(_) => Activity::Range,
        }
    }

    /// The requests that it is done for: what it takes of the queue's capacity.
    pub(crate) fn request_count(&self) -> usize {
        match self {
            Work::Write(writes) => writes.len(),
            Work::Get(..) | Work::Range(_) => 1,
        }
    }
}

/// What came of [`Work`].
pub(crate) enum Outcome {
    Got(Result<Lookup>),
    /// The sync level is reached, or not.
    Written(Result<()>),
    Piece(Box<dyn RangeWork>, Result<()>),
    /// None of it was done.
    Refused(Refusal, Work),
    /// The selector is to do it (`--overload caller-runs`).
    RunHere(Work),
}

/// What came of a job, and when.
pub(crate) struct Done {
    pub(crate) outcome: Outcome,
    /// For a job that was refused or is to be run here, `started_ns` and `done_ns` are when that
    /// was decided. `stall` is not set.
    pub(crate) work: StorageWork,
}
