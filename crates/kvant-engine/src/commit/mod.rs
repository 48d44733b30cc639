//! Commits: batches become durable and visible in one order. In the order of a batch:
//!
//! - [`admission`]: refuses it on a full disk ([`space`]) or holds it back ([`gate`], as far as the
//!   [`backlog`] asks for it);
//! - [`queue`]: batches in order of arrival, and the groups that they form;
//! - [`pipeline`]: the leader takes groups from the queue, in the environment [`log`](self::log);
//! - [`log`](self::log): the log file and the active memtable that a group is written to;
//! - [`next_log`]: the log file after it, made ahead of time;
//! - [`sync`]: when the log is synced, and the groups that wait for it.

pub(crate) mod admission;
pub(crate) mod backlog;
pub(crate) mod gate;
pub(crate) mod log;
pub(crate) mod next_log;
pub(crate) mod pipeline;
pub(crate) mod queue;
pub(crate) mod space;
pub(crate) mod sync;
