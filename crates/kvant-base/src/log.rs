//! The log as components see it: something that takes named events with fields.
//!
//! An event is one line for a person and one object for a machine, so its name is a stable word
//! (`flush`, `recovery_done`) and everything that varies is a field. Field names carry their unit
//! last (`wal_bytes`, `sync_us`). Where the lines go and how they look is decided by the binary.
//!
//! Threads: a log may be called from any thread, also while locks are held: it must not call back
//! into the caller.

use std::fmt::{self, Display};

/// How much an event matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Normal life: start, recovery, flush, compaction.
    Info,
    /// Works, but someone should know: a stall, a discarded log suffix, a full disk.
    Warn,
    /// Something is broken and needs a person: corruption, a failed fsync.
    Error,
}

impl Level {
    /// The word in the log line.
    pub fn name(self) -> &'static str {
        match self {
            Level::Info => "info",
            Level::Warn => "warn",
            Level::Error => "error",
        }
    }
}

impl Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Takes events.
pub trait Log: Send + Sync {
    /// Writes one event. A log that cannot write loses the event: no caller can do anything about
    /// it.
    fn event(&self, level: Level, name: &'static str, fields: &[(&str, &dyn Display)]);
}

/// A log that drops every event.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoLog;

impl Log for NoLog {
    fn event(&self, _level: Level, _name: &'static str, _fields: &[(&str, &dyn Display)]) {}
}
