//! Apache Cassandra and ScyllaDB as a storage engine: the records of a keyspace, in partitions by
//! the hash of their keys.
//!
//! - `options`: settings.
//! - `connect`: a session with the cluster, which waits for it.
//! - `own_connections`: connections of threads that await many requests.
//! - `schema`: keyspace and tables, and whether they are Kvant's.
//! - `consistency`: how many nodes have to answer.
//! - `gate`, `figures`: what each node costs, and how much it may have in flight.
//! - `attempts`: the attempts of one request.
//! - `routing`: which node coordinates a request.
//! - `retries`: which failed attempts are retried, and where.
//! - `second_reads`: slow reads that are sent to a second node.
//! - `traces`: the cluster's own traces.
//! - `statements`: the statements of a keyspace, prepared once.
//! - `session`: what requests share: the driver's session, time stamps.
//! - `cluster`: the engine: reads and writes of single records.
//! - `response`: the pages that come in a response.
//! - `pages`: pages of buckets, fetched together for a range.
//! - `range`: records in key order, merged from all buckets.
//! - `loader`: many records at once: copies from other engines.
//! - `errors`: errors of the driver by what the caller must do.
//!
//! The driver is `scylla`, which speaks to both. `docs/cluster.md` says what the engine can do and
//! what it cannot.
//!
//! Threads: a runtime of this crate has connections, and the pages of ranges. Requests for single
//! records are awaited on the threads of the callers, which may have connections of their own.
#![cfg_attr(not(test), deny(clippy::disallowed_methods, clippy::disallowed_types))]
#![cfg_attr(not(test), deny(clippy::unused_result_ok, clippy::unwrap_used))]

mod attempts;
mod cluster;
mod connect;
mod consistency;
mod errors;
mod figures;
mod gate;
mod loader;
mod options;
mod own_connections;
mod pages;
mod range;
mod response;
mod retries;
mod room;
mod routing;
mod schema;
mod second_reads;
mod session;
mod statements;
mod traces;

pub use attempts::Course;
pub use cluster::{Ask, Cluster, Pending, Stats};
pub use figures::{Kind, NodeStats, Phase, PhaseStats};
pub use loader::Loader;
pub use options::Options;
pub use range::Range;
pub use second_reads::SecondReadStats;
pub use traces::{Trace, TraceEvent};
