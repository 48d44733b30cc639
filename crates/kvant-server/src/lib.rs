//! Kvant over HTTP.
//!
//! A request goes through these modules, in this order: `selector` (threads, accepting) -> `connection`, `io` (one socket, hyper's
//! HTTP/1 state machine on it) -> `service`, `head` (what is refused before any route) -> `routes` (one file each) -> `dispatch`
//! (where storage is called) -> `batcher` (writes of one turn of the event loop, committed together) -> `stores`.
//!
//! `docs/http.md` is the interface; `openapi.json` the same for machines.
//!
//! Threads: each selector thread runs a single-threaded runtime and owns its connections; what they share with the other selectors
//! is the store, the memory budget, the lifecycle and the counters that `/metrics` reads.

mod config;
mod key;
mod lifecycle;
mod log;
mod server;
mod stores;

pub use config::ServerConfig;
pub use key::Key;
pub use log::{Event, Level, Log, NoLog};
pub use server::Server;
pub use stores::{Completion, LsmStore, Records, Store, Write};
