//! The commit pipeline: batches become durable and visible in one order.
//!
//! - [`gate`]: back-pressure, in front of the pipeline;
//! - [`queue`]: batches in order of arrival, and the groups that they form;
//! - [`pipeline`]: the leader takes groups from the queue to the log and into the memtable;
//! - [`sync`]: when the log is synced, and the groups that wait for it;
//! - [`fence`]: no write after a failure that leaves the log in doubt.

pub(crate) mod fence;
pub(crate) mod gate;
pub(crate) mod pipeline;
pub(crate) mod queue;
pub(crate) mod sync;
