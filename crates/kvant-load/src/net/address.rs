//! Socket addresses.

use rustix::fd::OwnedFd;
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;
use std::{fmt, io};

/// The address of a socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// TCP.
    Tcp(SocketAddr),
    /// The path of a Unix socket.
    Unix(PathBuf),
}

impl Address {
    /// Opens a connection in blocking mode.
    pub(crate) fn open(&self, wait_max: Duration) -> io::Result<OwnedFd> {
        match self {
            Address::Tcp(address) => {
                TcpStream::connect_timeout(address, wait_max).map(OwnedFd::from)
            }
            Address::Unix(path) => UnixStream::connect(path).map(OwnedFd::from),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Tcp(address) => address.fmt(f),
            Address::Unix(path) => path.display().fmt(f),
        }
    }
}
