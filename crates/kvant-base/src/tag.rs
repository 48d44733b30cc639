//! What the calling thread works on, for profiles: a sample of a worker or of an event loop would
//! not say by itself which kind of request it served.
//!
//! Invariants:
//! 1. A tag is one word of thread-local memory that only its thread writes, so that the profiler's
//!    signal handler, which runs on that thread, may read it at any moment.
//! 2. [`Entered`] puts back what was there before: work inside of other work (a commit inside of a
//!    request) nests. It must not live across an `await`: other work runs on the thread meanwhile.
//!
//! Threads: each has its own tag.

use std::cell::Cell;
use std::marker::PhantomData;

crate::named_enum! {
    /// For whom work is done.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    #[repr(u8)]
    pub enum Activity {
        /// Nothing that was named.
        #[default]
        None = "none",
        /// `/v0/status`.
        Status = "status",
        /// Reads of an entity.
        Get = "get",
        /// Writes of an entity.
        Put = "put",
        /// Deletions of an entity.
        Delete = "delete",
        /// Reads of a range.
        Range = "range",
        /// The operator's requests.
        Operator = "operator",
        /// A memtable becomes a table.
        Flush = "flush",
        /// Tables are merged.
        Compaction = "compaction",
        /// The database is opened.
        Recovery = "recovery",
        /// Files that nobody needs any more are removed, snapshots are collected.
        Housekeeping = "housekeeping",
        /// The load generator.
        Load = "load",
        /// The profiler itself.
        Profiler = "profiler",
    }
}

crate::named_enum! {
    /// Which part of the work it is.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    #[repr(u8)]
    pub enum Stage {
        /// No part that was named.
        #[default]
        None = "none",
        /// Bytes from a socket become a request.
        Parse = "parse",
        /// Deciding who does it and whether.
        Dispatch = "dispatch",
        /// Reading or writing memtables.
        Memtable = "memtable",
        /// Filters, indexes and blocks of tables.
        Table = "table",
        /// Putting a group of writes into the write-ahead log.
        Wal = "wal",
        /// Waiting for or making things durable.
        Sync = "sync",
        /// Merging entries.
        Merge = "merge",
        /// Writing tables.
        Build = "build",
        /// The answer goes to a socket.
        Respond = "respond",
    }
}

/// An activity and a stage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tag {
    /// For whom.
    pub activity: Activity,
    /// Which part.
    pub stage: Stage,
}

thread_local! {
    // Constant and without a destructor: reading it is one load, also in a signal handler.
    static CURRENT: Cell<u16> = const { Cell::new(0) };
}

impl Tag {
    /// The tag as a number: the activity in the low byte, the stage in the high one.
    #[inline]
    pub fn code(self) -> u16 {
        self.activity as u16 | (self.stage as u16) << 8
    }

    /// The tag of a number; what is not known is `None`.
    pub fn of_code(code: u16) -> Tag {
        Tag {
            activity: Activity::ALL.get(usize::from(code & 0xff)).copied().unwrap_or_default(),
            stage: Stage::ALL.get(usize::from(code >> 8)).copied().unwrap_or_default(),
        }
    }

    /// The number of the calling thread's tag. May be called in a signal handler.
    #[inline]
    pub fn current_code() -> u16 {
        if IS_NOTED { CURRENT.get() } else { 0 }
    }
}

/// Whether anything reads tags: without the profiler nothing does, and they compile to nothing.
const IS_NOTED: bool = cfg!(feature = "profiler");

/// Changes the calling thread's tag; returns what it was.
#[inline]
fn replace(code: u16) -> u16 {
    if IS_NOTED { CURRENT.replace(code) } else { 0 }
}

/// From now on the thread works for `activity`.
#[inline]
pub fn enter(activity: Activity) -> Entered {
    Entered::set(activity as u16)
}

/// From now on the thread works for `activity`, and this part of it.
#[inline]
pub fn enter_at(activity: Activity, stage: Stage) -> Entered {
    Entered::set(Tag { activity, stage }.code())
}

/// From now on the thread does this part of what it is doing.
#[inline]
pub fn stage(stage: Stage) -> Entered {
    Entered::set(Tag::current_code() & 0xff | (stage as u16) << 8)
}

/// The tag holds until this is dropped.
#[must_use = "the tag ends when this is dropped"]
pub struct Entered {
    before: u16,
    /// Belongs to its thread.
    _not_send: PhantomData<*const ()>,
}

impl Entered {
    #[inline]
    fn set(code: u16) -> Entered {
        Entered { before: replace(code), _not_send: PhantomData }
    }

    /// The work goes on with this part.
    #[inline]
    pub fn stage(&self, stage: Stage) {
        replace(Tag::current_code() & 0xff | (stage as u16) << 8);
    }

    /// It has turned out for whom the work is, and it goes on with this part.
    #[inline]
    pub fn is_for(&self, activity: Activity, stage: Stage) {
        replace(Tag { activity, stage }.code());
    }
}

impl Drop for Entered {
    #[inline]
    fn drop(&mut self) {
        replace(self.before);
    }
}

#[cfg(test)]
mod tests;
