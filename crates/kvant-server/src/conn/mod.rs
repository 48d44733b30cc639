//! Connections: sockets, the fast path, hyper, and the limits of time.
//!
//! - [`connection`]: one connection from its first byte to its last; [`context`]: what all share;
//! - [`socket`], [`hyper_io`]: one socket, by itself and as hyper's I/O object;
//! - [`fast_path`]: the commonest requests, without hyper;
//! - [`hyper_service`]: all requests, through hyper; [`request_body`] reads their bodies;
//! - [`short_response`]: the encodings of short responses, for both;
//! - [`phase`], [`open_connections`], [`mod@sweep`]: connections that kept the server waiting for
//!   too long.
//!
//! The routes stand above: they are reached through [`Handler`].
//!
//! Threads: all of it belongs to one selector.

mod connection;
mod context;
mod fast_path;
mod hyper_io;
mod hyper_service;
mod open_connections;
mod phase;
pub(crate) mod request_body;
mod short_response;
mod socket;
mod sweep;

pub(crate) use connection::serve;
pub(crate) use context::{Buffers, Call, ConnContext, Handler, RequestStep};
pub(crate) use open_connections::OpenConnections;
pub(crate) use socket::HEAD_BUFFER_BYTES;
pub(crate) use sweep::run as sweep;
