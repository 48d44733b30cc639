//! Non-blocking sockets, plain or with TLS.

use super::tls::TlsStream;
use crate::target::Address;
use rustix::fd::{BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketFlags, SocketType, sockopt,
};
use std::io;

/// An open connection.
pub(crate) enum Stream {
    /// Bytes as they are.
    Plain(OwnedFd),
    /// Bytes in TLS.
    Tls(Box<TlsStream>),
}

/// Starts to connect. The socket is writable when that has ended, and [`connect_result`] says how.
pub(crate) fn connect(address: &Address) -> io::Result<OwnedFd> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let (socket, connected) = match address {
        Address::Tcp(address) => {
            let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
            let socket = rustix::net::socket_with(family, SocketType::STREAM, flags, None)?;
            sockopt::set_tcp_nodelay(&socket, true)?;
            let connected = rustix::net::connect(&socket, address);
            (socket, connected)
        }
        Address::Unix(path) => {
            let socket =
                rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
            let connected = rustix::net::connect(&socket, &SocketAddrUnix::new(path)?);
            (socket, connected)
        }
    };
    match connected {
        Ok(()) | Err(Errno::INPROGRESS) => Ok(socket),
        Err(error) => Err(error.into()),
    }
}

/// What became of a connect that was in progress.
pub(crate) fn connect_result(socket: BorrowedFd<'_>) -> io::Result<()> {
    sockopt::socket_error(socket)?.map_err(io::Error::from)
}

impl Stream {
    /// Reads what there is; 0 when the peer sends no more.
    #[inline]
    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Plain(socket) => Ok(rustix::net::recv(&*socket, buffer, RecvFlags::empty())?.0),
            Stream::Tls(tls) => tls.read(buffer),
        }
    }

    /// Writes what the kernel takes.
    #[inline]
    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Plain(socket) => Ok(rustix::net::send(&*socket, bytes, SendFlags::NOSIGNAL)?),
            Stream::Tls(tls) => tls.write(bytes),
        }
    }

    /// Whether a read that leaves room in the buffer says that the kernel has no more.
    #[inline]
    pub(crate) fn ends_with_short_read(&self) -> bool {
        match self {
            Stream::Plain(_) => true,
            // Records end where they end.
            Stream::Tls(_) => false,
        }
    }

    /// Writes what was taken and waits in memory, as far as the kernel takes it.
    #[inline]
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        match self {
            Stream::Plain(_) => Ok(()),
            Stream::Tls(tls) => tls.flush(),
        }
    }

    /// Says good-bye where the protocol has a word for it.
    pub(crate) fn close(self) {
        match self {
            Stream::Plain(socket) => drop(socket),
            Stream::Tls(mut tls) => tls.close_notify(),
        }
    }
}
