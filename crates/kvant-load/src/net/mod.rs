//! Sockets: connecting, reading, writing, waiting for events.

mod tls;
