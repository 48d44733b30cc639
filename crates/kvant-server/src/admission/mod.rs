//! Which requests are let in, and what becomes of the others.
//!
//! A request that cannot be done in time is best refused at once: the client learns it while it can
//! still do something else, and the server spends a refusal on it instead of work that nobody waits
//! for any more. Two places decide: the queue in front of the workers ([`crate::pool`]), and each
//! selector for what it does itself ([`Lag`]). Status and health are never asked here.
//!
//! Every refusal is counted once, by whoever decides it ([`Refusals`]); those who pass it on to the
//! client do not count again.

mod codel;
mod control;
mod cost;
mod lag;
mod pacer;
mod refusals;

pub(crate) use control::Control;
pub(crate) use lag::Lag;
pub(crate) use pacer::Pacer;
pub(crate) use refusals::Refusals;

/// The longest that a request should wait for its storage work while the server is busy for longer
/// than [`INTERVAL_NS`].
pub(crate) const TARGET_NS: u64 = 5_000_000;
/// How long a queue may stand before it counts as overload: bursts that drain within it are taken
/// whole.
pub(crate) const INTERVAL_NS: u64 = 100_000_000;

/// What a request asks of storage, and its priority: earlier ones are done first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    /// A point read.
    Read,
    /// A put or a delete.
    Write,
    /// A piece of a range.
    Range,
}

impl Class {
    pub(crate) const COUNT: usize = 3;
    pub(crate) const ALL: [Class; Class::COUNT] = [Class::Read, Class::Write, Class::Range];

    /// Its name in metrics and statistics.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Class::Read => "read",
            Class::Write => "write",
            Class::Range => "range",
        }
    }
}

/// Why a request was not done. Nothing of it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The queue has no room for it.
    QueueFull,
    /// As `QueueFull`, under the policies that discard.
    Discarded,
    /// It waited for longer than `--queue-wait-max`.
    WaitedTooLong,
    /// It would have waited too long, or has, while the server has more to do than it can.
    Overloaded,
    /// The server is about to end.
    Stopping,
}

impl Refusal {
    pub(crate) const COUNT: usize = 5;
    pub(crate) const ALL: [Refusal; Refusal::COUNT] = [
        Refusal::QueueFull,
        Refusal::Discarded,
        Refusal::WaitedTooLong,
        Refusal::Overloaded,
        Refusal::Stopping,
    ];

    /// Its name in metrics, statistics, events and answers.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Refusal::QueueFull => "queue-full",
            Refusal::Discarded => "discarded",
            Refusal::WaitedTooLong => "waited-too-long",
            Refusal::Overloaded => "overloaded",
            Refusal::Stopping => "stopping",
        }
    }
}
