//! Non-blocking sockets, plain or with TLS.

use super::address::Address;
use super::tls::TlsStream;
use rustix::fd::{BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketFlags, SocketType, sockopt,
};
use std::io;

pub(crate) enum Stream {
    Plain(OwnedFd),
    Tls(Box<TlsStream>),
}

/// Starts to connect. When the socket becomes writable, [`connect_result`] has the result.
pub(crate) fn connect(address: &Address) -> io::Result<OwnedFd> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let open = |family| rustix::net::socket_with(family, SocketType::STREAM, flags, None);
    let (socket, connected) = match address {
        Address::Tcp(address) => {
            let is_ipv4 = address.is_ipv4();
            let socket = open(if is_ipv4 { AddressFamily::INET } else { AddressFamily::INET6 })?;
            sockopt::set_tcp_nodelay(&socket, true)?;
            let connected = rustix::net::connect(&socket, address);
            (socket, connected)
        }
        Address::Unix(path) => {
            let socket = open(AddressFamily::UNIX)?;
            let connected = rustix::net::connect(&socket, &SocketAddrUnix::new(path)?);
            (socket, connected)
        }
    };
    match connected {
        Ok(()) | Err(Errno::INPROGRESS) => Ok(socket),
        Err(error) => Err(error.into()),
    }
}

pub(crate) fn connect_result(socket: BorrowedFd<'_>) -> io::Result<()> {
    sockopt::socket_error(socket)?.map_err(io::Error::from)
}

impl Stream {
    /// Reads available bytes; 0 at the end of the stream.
    #[inline]
    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Plain(socket) => Ok(rustix::net::recv(&*socket, buffer, RecvFlags::empty())?.0),
            Stream::Tls(tls) => tls.read(buffer),
        }
    }

    /// Writes as many bytes as the kernel takes.
    #[inline]
    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Plain(socket) => Ok(rustix::net::send(&*socket, bytes, SendFlags::NOSIGNAL)?),
            Stream::Tls(tls) => tls.write(bytes),
        }
    }

    /// Whether a read that leaves room in the buffer has drained the socket. A read of TLS ends
    /// with a record.
    #[inline]
    pub(crate) fn ends_with_short_read(&self) -> bool {
        matches!(self, Stream::Plain(_))
    }

    /// Writes buffered bytes, as many as the kernel takes.
    #[inline]
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        match self {
            Stream::Plain(_) => Ok(()),
            Stream::Tls(tls) => tls.flush(),
        }
    }

    /// Closes the connection, TLS with a `close_notify`.
    pub(crate) fn close(self) {
        if let Stream::Tls(mut tls) = self {
            tls.close_notify();
        }
    }
}
