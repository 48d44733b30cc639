//! Where the server's events go. The binary decides how a line looks; this crate only names what happened.

use std::fmt::Display;

/// How much an event matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Something failed that a person has to look at.
    Error,
    /// Something is wrong that may pass by itself.
    Warn,
    /// The normal course of things.
    Info,
    /// Detail for whoever hunts a bug.
    Debug,
}

/// One event: a sentence without a final period, and named values.
pub struct Event<'a> {
    /// How much it matters.
    pub level: Level,
    /// What happened.
    pub message: &'a str,
    /// Details, in the order in which they should be shown.
    pub fields: &'a [(&'a str, &'a dyn Display)],
}

/// Takes events, from any thread, without waiting long.
pub trait Log: Send + Sync {
    /// Records one event.
    fn log(&self, event: &Event<'_>);
}

/// A log that forgets everything.
#[derive(Debug, Default)]
pub struct NoLog;

impl Log for NoLog {
    fn log(&self, _event: &Event<'_>) {}
}
