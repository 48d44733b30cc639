//! TLS over a non-blocking socket.
