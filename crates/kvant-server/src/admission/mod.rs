//! Admission control: which requests are served under overload, and how the others are refused.
//!
//! A request that cannot be done in time is refused at once: the client can do something else, and
//! the server does no work whose result comes too late. Two places decide: the queue in front of
//! the workers ([`crate::work::pool`]), and each selector for the work that it does itself
//! ([`Lag`]). An engine on other machines decides for each of them. Requests for status and health
//! are always admitted.
//!
//! The place that refuses a request counts it in [`Refusals`]; the response does not count again.

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

use crate::http::Problem;
use kvant_base::named_enum;

/// The longest wait for storage work in a server that is busy for longer than [`INTERVAL_NS`].
pub(crate) const TARGET_NS: u64 = 5_000_000;
/// How long a queue may stand before it counts as overload: bursts that drain within it are
/// admitted whole.
pub(crate) const INTERVAL_NS: u64 = 100_000_000;

named_enum! {
    /// The kinds of storage work, by priority: the first goes first.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) enum Class {
        Read = "read",
        /// A put or a delete.
        Write = "write",
        /// A piece of a range.
        Range = "range",
    }
}

impl Class {
    pub(crate) const COUNT: usize = Class::ALL.len();
}

named_enum! {
    /// Why a request was refused. Nothing of it was done.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) enum Refusal {
        /// The queue has no room for it.
        QueueFull = "queue-full",
        /// A newer request took its place (`--overload discard-oldest`).
        Discarded = "discarded",
        /// It waited for longer than `--queue-wait-max`.
        WaitedTooLong = "waited-too-long",
        /// It would have waited for too long, or has, while more requests came than the server can
        /// do.
        Overloaded = "overloaded",
        /// The nodes of the cluster that would do it have no room.
        NodesBusy = "nodes-busy",
        Stopping = "stopping",
    }
}

impl Refusal {
    pub(crate) const COUNT: usize = Refusal::ALL.len();

    pub(crate) fn problem(self) -> Problem {
        let (kind, title, detail) = match self {
            Refusal::QueueFull => (
                "overloaded",
                "Queue full",
                "nothing was done: as many requests wait for a worker as --queue-capacity allows; retry later",
            ),
            Refusal::Overloaded => (
                "overloaded",
                "Too much to do",
                "nothing was done: more is asked of the server than it can do, and the request would have waited too long; \
                 retry later, or send less",
            ),
            Refusal::NodesBusy => (
                "overloaded",
                "Nodes too busy",
                "nothing was done: the nodes of the cluster that store the record have as many requests as they can do in \
                 time; retry later, or send less",
            ),
            Refusal::Discarded => (
                "discarded",
                "Request discarded",
                "nothing was done: the queue was full, and a newer request took its place; retry later",
            ),
            Refusal::WaitedTooLong => (
                "waited-too-long",
                "Waited too long",
                "nothing was done: the request waited for longer than --queue-wait-max; retry later, or send less",
            ),
            Refusal::Stopping => (
                "stopping",
                "Server stopping",
                "nothing was done: the server stops; retry when it is back",
            ),
        };
        Problem::unavailable(kind, title, detail).with("reason", self.name())
    }
}
