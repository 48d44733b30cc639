//! Who is loaded: an `http://` or `https://` URL, or a socket of this machine.
//!
//! A unix socket is written as a URL whose host is its path, percent-encoded: `http+unix://%2Frun%2Fkvant.sock/v0/status`.

use std::net::SocketAddr;
use std::path::PathBuf;

/// A URL and where it leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// As it was given.
    pub url: String,
    /// Whether TLS is spoken.
    pub is_tls: bool,
    /// Host without port, for TLS and scripts; without the brackets of an IPv6 address.
    pub host: String,
    /// Port as it was written, if it was.
    pub port: Option<u16>,
    /// Value of the `Host` header: host, and port where the URL has one.
    pub authority: String,
    /// Path and query; at least `/`.
    pub path: String,
    /// Where to connect; the first is used, the others when it cannot be reached.
    pub addresses: Vec<Address>,
}

/// The address of a socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// TCP.
    Tcp(SocketAddr),
    /// A path in the file system.
    Unix(PathBuf),
}
