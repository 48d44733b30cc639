//! Sockets: readiness, connecting, TLS.

pub(crate) mod poller;
pub(crate) mod stream;
pub(crate) mod tls;
