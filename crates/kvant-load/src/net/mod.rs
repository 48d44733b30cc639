//! Sockets: addresses, connecting, readiness, TLS.

pub(crate) mod address;
pub(crate) mod poller;
pub(crate) mod stream;
pub(crate) mod tls;
