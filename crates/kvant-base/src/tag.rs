//! The calling thread's current activity, for profiles: the stack of a worker or event loop does
//! not show which kind of request it serves.
//!
//! Invariants:
//! 1. A tag is one thread-local word that only its thread writes. The profiler's signal handler
//!    runs on that thread and may read it at any time.
//! 2. [`Entered`] restores the previous tag, so activities nest (a commit within a request). It
//!    must not be held across an `await`, because other work then runs on the thread.
//!
//! 3. While an experiment slows stages down ([`crate::dilation`]), each change of a tag ends a
//!    stretch of its stage. What a stage has done must not be told to others before it ends.
//!
//! Threads: each has its own tag.

use crate::dilation;
use serde::{Deserialize, Serialize};
use std::cell::Cell;
use std::marker::PhantomData;

crate::named_enum! {
    /// The purpose of the work.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    #[repr(u8)]
    pub enum Activity {
        /// Not set.
        #[default]
        None = "none",
        /// `/v0/status`.
        Status = "status",
        /// Reading an entity.
        Get = "get",
        /// Writing an entity.
        Put = "put",
        /// Deleting an entity.
        Delete = "delete",
        /// Reading a range.
        Range = "range",
        /// Administrative requests.
        Operator = "operator",
        /// Writing a memtable to a table.
        Flush = "flush",
        /// Merging tables.
        Compaction = "compaction",
        /// Opening the database.
        Recovery = "recovery",
        /// Removing obsolete files, expiring snapshots.
        Housekeeping = "housekeeping",
        /// The load generator.
        Load = "load",
        /// The profiler itself.
        Profiler = "profiler",
    }
}

crate::named_enum! {
    /// The stage of an activity.
    #[derive(
        Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
    )]
    #[serde(rename_all = "lowercase")]
    #[repr(u8)]
    pub enum Stage {
        /// Not set.
        #[default]
        None = "none",
        /// Parsing a request.
        Parse = "parse",
        /// Admission and choice of the thread.
        Dispatch = "dispatch",
        /// Reading or writing memtables.
        Memtable = "memtable",
        /// Reading filters, indexes and blocks of tables.
        Table = "table",
        /// Writing a group to the write-ahead log.
        Wal = "wal",
        /// Syncing, or waiting for a sync.
        Sync = "sync",
        /// Merging entries.
        Merge = "merge",
        /// Writing tables.
        Build = "build",
        /// Writing the response to a socket.
        Respond = "respond",
    }
}

/// An activity and a stage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tag {
    /// The activity.
    pub activity: Activity,
    /// The stage.
    pub stage: Stage,
}

thread_local! {
    // Constant and without a destructor, so that a signal handler reads it with one load.
    static CURRENT: Cell<u16> = const { Cell::new(0) };
}

impl Tag {
    /// The tag as a number: the activity in the low byte, the stage in the high byte.
    #[inline]
    pub fn code(self) -> u16 {
        self.activity as u16 | (self.stage as u16) << 8
    }

    /// The tag of a number. Unknown parts become `None`.
    pub fn of_code(code: u16) -> Tag {
        Tag {
            activity: Activity::ALL.get(usize::from(code & 0xff)).copied().unwrap_or_default(),
            stage: Stage::ALL.get(usize::from(code >> 8)).copied().unwrap_or_default(),
        }
    }

    /// The number of the calling thread's tag. Safe to call from a signal handler.
    #[inline]
    pub fn current_code() -> u16 {
        if IS_RECORDED { CURRENT.get() } else { 0 }
    }
}

/// Without the profiler nothing reads tags, and they compile to nothing.
const IS_RECORDED: bool = cfg!(feature = "profiler");

/// A stretch of a thread without an activity that is longer was rest: a selector's own work between
/// two requests takes microseconds, while some threads wait without naming it.
const UNNAMED_NS_MAX: u64 = 10_000_000;
/// The same with an activity: more than any sync of a disk in use takes.
const NAMED_NS_MAX: u64 = 1_000_000_000;

const _: () = assert!(Stage::ALL.len() == dilation::STAGE_COUNT);

/// Sets the calling thread's tag and returns the previous one.
#[inline]
fn replace(code: u16) -> u16 {
    if !IS_RECORDED {
        return 0;
    }
    if dilation::is_on() {
        end_stretch();
    }
    CURRENT.replace(code)
}

/// Ends the calling thread's stretch of the current stage, in an experiment that slows stages down.
/// The load generator and the profiler are no part of what is slowed down.
#[cold]
fn end_stretch() {
    let Tag { activity, stage } = Tag::of_code(CURRENT.get());
    match activity {
        Activity::Load | Activity::Profiler => dilation::restart(),
        Activity::None => dilation::end_stretch(stage as usize, UNNAMED_NS_MAX),
        _ => dilation::end_stretch(stage as usize, NAMED_NS_MAX),
    }
}

/// Rest of the calling thread, until dropped: in an experiment that slows stages down it is not
/// part of a stage.
#[must_use = "the rest ends when this is dropped"]
pub struct Resting(());

/// Begins a rest, or a wait for what another thread does.
#[inline]
pub fn rest() -> Resting {
    if dilation::is_on() {
        end_stretch();
    }
    Resting(())
}

impl Drop for Resting {
    #[inline]
    fn drop(&mut self) {
        if dilation::is_on() {
            dilation::restart();
        }
    }
}

/// Sets the thread's activity until the result is dropped.
#[inline]
pub fn enter(activity: Activity) -> Entered {
    Entered::set(activity as u16)
}

/// Sets the thread's activity and stage until the result is dropped.
#[inline]
pub fn enter_at(activity: Activity, stage: Stage) -> Entered {
    Entered::set(Tag { activity, stage }.code())
}

/// Sets the stage of the thread's activity until the result is dropped.
#[inline]
pub fn stage(stage: Stage) -> Entered {
    Entered::set(Tag::current_code() & 0xff | (stage as u16) << 8)
}

/// Restores the previous tag when dropped.
#[must_use = "the tag ends when this is dropped"]
pub struct Entered {
    before: u16,
    /// The tag belongs to this thread.
    _not_send: PhantomData<*const ()>,
}

impl Entered {
    #[inline]
    fn set(code: u16) -> Entered {
        Entered { before: replace(code), _not_send: PhantomData }
    }

    /// Changes the stage.
    #[inline]
    pub fn stage(&self, stage: Stage) {
        replace(Tag::current_code() & 0xff | (stage as u16) << 8);
    }

    /// Sets the activity, once it is known, and the stage.
    #[inline]
    pub fn set_activity(&self, activity: Activity, stage: Stage) {
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
