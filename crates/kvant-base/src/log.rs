//! The logging interface of components: named events with fields.
//!
//! An event's name is a stable word (`flush`, `recovery_done`); everything that varies is a field.
//! Field names end with their unit (`wal_bytes`, `sync_us`). The binary chooses destination and
//! layout.
//!
//! Threads: any. A log may be called with locks held, so it must not call back into the caller.

use std::fmt::{self, Display};

crate::named_enum! {
    /// The severity of an event. Names are those of log lines.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub enum Level {
        /// Normal operation: start, recovery, flush, compaction.
        Info = "info",
        /// An operator should know: a stall, a discarded log suffix, a full disk.
        Warn = "warn",
        /// An operator must act: corruption, a failed fsync.
        Error = "error",
    }
}

impl Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A destination of events.
pub trait Log: Send + Sync {
    /// Writes one event. A log that cannot write drops it, since no caller could handle the error.
    fn event(&self, level: Level, name: &'static str, fields: &[(&str, &dyn Display)]);
}

/// A log that drops every event.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoLog;

impl Log for NoLog {
    fn event(&self, _level: Level, _name: &'static str, _fields: &[(&str, &dyn Display)]) {}
}
