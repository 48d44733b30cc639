//! Kvant over HTTP.
//!
//! The layers, each of which knows only those below it:
//!
//! - `selector`, `server`: threads, listeners, start and stop;
//! - `routes`: what each path does;
//! - `conn`: sockets, the fast path, hyper, time limits;
//! - `work`: storage work: dispatch, batches, the pool of workers, ranges, entities;
//! - `turns`: turns of the event loop;
//! - `history`: the last minutes, as they are kept;
//! - `admission`, `timing`, `counters`: what is refused, where the time went, what happened;
//! - `store`: the seam to a storage engine;
//! - `http`: heads, queries, problems, encodings;
//! - `config`, `memory`, `key`, `affinity`, `descriptors`: settings and resources.
//!
//! `docs/architecture.md` follows a PUT and a GET through the files; `docs/http.md` is the
//! interface; `openapi.json` the same for machines.
//!
//! Threads: each selector thread runs a single-threaded runtime and owns its connections; the
//! selectors share the store, the workers, the memory budget, the lifecycle and the figures that
//! `/metrics` reads.
#![cfg_attr(not(test), deny(clippy::disallowed_methods, clippy::disallowed_types))]
#![cfg_attr(not(test), deny(clippy::unused_result_ok, clippy::unwrap_used))]

mod admission;
mod affinity;
mod config;
mod conn;
mod counters;
mod descriptors;
mod history;
mod http;
mod key;
mod memory;
mod routes;
#[expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "an event loop owns its thread and blocks in it; its start is reported once"
)]
mod selector;
#[expect(clippy::disallowed_types, reason = "listens")]
mod server;
mod store;
mod timing;
mod turns;
mod work;

pub use affinity::cpus_problem;
pub use config::{DispatchMode, Overload, ServerConfig};
pub use http::site::allowed_host_problem;
pub use key::Key;
pub use server::Server;
#[cfg(feature = "cassandra")]
pub use store::CassandraStore;
#[cfg(feature = "leveldb")]
pub use store::LevelDbStore;
pub use store::{
    Backend, Capability, Completion, LocalStore, Lookup, LsmStore, MemoryStore, Pending, ReadTrace,
    Records, RemoteAsk, RemoteCourse, RemoteStore, Store, Write, WriteHealth,
};
