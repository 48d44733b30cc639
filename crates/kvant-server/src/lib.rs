//! Kvant over HTTP.
//!
//! A request goes through these modules, in this order: `selector` (threads, accepting) ->
//! `connection`, `io` (one socket, hyper's HTTP/1 state machine on it; `arrival` says when there
//! was something to read, `turnstile` who may read in this turn) -> `service`, `head` and `site`
//! (what is refused before any route) -> `routes` (one file each), with `query`, `request_body`,
//! `answer`, `range` and `problem` -> `dispatch` (where storage is called), `batcher` (writes of
//! one turn of the event loop, committed together) and `pool` (workers) -> `stores`. The commonest
//! requests take a shorter way from `io` to `dispatch` and `batcher`: `plain_request` and
//! `express`. What keeps a connection waiting is in its `activity`; `sweep` ends what lasts too
//! long. `admission` says what is refused, and `timing` where the time went.
//!
//! `docs/http.md` is the interface; `openapi.json` the same for machines.
//!
//! Threads: each selector thread runs a single-threaded runtime and owns its connections; what they
//! share with the other selectors is the store, the workers, the memory budget, the lifecycle and
//! the figures that `/metrics` reads.

mod activity;
mod admission;
mod affinity;
mod answer;
mod arrival;
mod batcher;
mod config;
mod connection;
mod counters;
#[expect(unsafe_code, reason = "the resource limits of the process have no safe interface in std")]
mod descriptors;
mod dispatch;
mod event_stream;
mod express;
mod head;
mod io;
mod key;
mod lifecycle;
mod memory;
mod plain_request;
mod pool;
mod problem;
mod query;
mod range;
mod report;
mod request_body;
mod routes;
mod selector;
mod server;
mod service;
mod site;
mod stores;
mod sweep;
mod timing;
mod turnstile;

pub use affinity::cpus_problem;
pub use config::{DispatchMode, Overload, ServerConfig};
pub use key::Key;
pub use server::Server;
pub use site::allowed_host_problem;
pub use stores::{Completion, LsmStore, Records, Store, Write};
