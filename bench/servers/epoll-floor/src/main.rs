//! The lower bound: a server that only moves bytes through the kernel.
//!
//! One thread, edge-triggered epoll, one `recv` and one `send` per request. Nothing is parsed:
//! every blank line in the stream ends a head, and every head gets the same response. Pipelined
//! requests therefore get one response each. A body needs no code: without a blank line it looks
//! like the beginning of the next head.
//!
//! Invariants:
//! 1. A turn ends with a short read, a full socket or the end of the connection, so that no edge is
//!    lost.
//! 2. Responses that the kernel did not accept are pending; nothing is read while any are.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::AsRawFd;

const HEAD_END: &[u8; 4] = b"\r\n\r\n";
const RESPONSE: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\nvalue0000001";
/// Responses per `send`, for pipelined requests.
const RESPONSES_PER_SEND: usize = 256;
const READ_BYTES: usize = 64 << 10;
const EVENTS_PER_WAIT: usize = 256;

struct Connection {
    stream: TcpStream,
    /// Bytes of [`HEAD_END`] at the end of the stream so far.
    matched: usize,
    /// Response bytes still to be sent.
    owed_bytes: usize,
}

fn main() -> io::Result<()> {
    let port = std::env::args().nth(1).and_then(|text| text.parse().ok());
    let port: u16 = port.ok_or_else(|| io::Error::other("usage: epoll-floor PORT"))?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
    listener.set_nonblocking(true)?;
    serve(&listener)
}

fn serve(listener: &TcpListener) -> io::Result<()> {
    // SAFETY: no pointers are passed.
    let epoll_fd = check(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) })?;
    watch(epoll_fd, listener.as_raw_fd(), libc::EPOLLIN)?;

    let responses = RESPONSE.repeat(RESPONSES_PER_SEND);
    let mut received = vec![0; HEAD_END.len() + READ_BYTES];
    let mut connections: Vec<Option<Connection>> = Vec::new(); // by descriptor
    let mut events = [libc::epoll_event { events: 0, u64: 0 }; EVENTS_PER_WAIT];
    loop {
        // SAFETY: `events` has room for `EVENTS_PER_WAIT` events.
        let waited =
            unsafe { libc::epoll_wait(epoll_fd, events.as_mut_ptr(), EVENTS_PER_WAIT as i32, -1) };
        let count = match check(waited) {
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            other => other? as usize,
        };
        for event in &events[..count] {
            let fd = event.u64 as usize;
            if fd == listener.as_raw_fd() as usize {
                accept(listener, epoll_fd, &mut connections)?;
            } else if let Some(connection) = &mut connections[fd] {
                match turn(connection, &mut received, &responses) {
                    Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                    // Closed or reset by the peer. Closing the socket removes it from the epoll
                    // set.
                    Err(_) => connections[fd] = None,
                    Ok(()) => {}
                }
            }
        }
    }
}

fn accept(
    listener: &TcpListener,
    epoll_fd: i32,
    connections: &mut Vec<Option<Connection>>,
) -> io::Result<()> {
    let stream = match listener.accept() {
        Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
        other => other?.0,
    };
    stream.set_nonblocking(true)?;
    stream.set_nodelay(true)?;
    let fd = stream.as_raw_fd();
    watch(epoll_fd, fd, libc::EPOLLIN | libc::EPOLLOUT | libc::EPOLLET)?;
    let index = fd as usize;
    if connections.len() <= index {
        connections.resize_with(index + 1, || None);
    }
    connections[index] = Some(Connection { stream, matched: 0, owed_bytes: 0 });
    Ok(())
}

/// Sends pending responses, then responds to all received requests. Any error but `WouldBlock` ends
/// the connection.
fn turn(connection: &mut Connection, received: &mut [u8], responses: &[u8]) -> io::Result<()> {
    send_owed(connection, responses)?;
    loop {
        // An earlier part of a blank line goes in front, so that one search finds every blank line.
        let matched = connection.matched;
        received[..matched].copy_from_slice(&HEAD_END[..matched]);
        let count = connection.stream.read(&mut received[matched..matched + READ_BYTES])?;
        if count == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        let (heads, matched) = count_heads(&received[..matched + count]);
        connection.matched = matched;
        connection.owed_bytes = heads * RESPONSE.len();
        send_owed(connection, responses)?;
        if count < READ_BYTES {
            return Ok(());
        }
    }
}

fn send_owed(connection: &mut Connection, responses: &[u8]) -> io::Result<()> {
    while connection.owed_bytes > 0 {
        // The pending bytes determine how much of a response the peer already has.
        let sent_bytes = (RESPONSE.len() - connection.owed_bytes % RESPONSE.len()) % RESPONSE.len();
        let bytes = &responses[sent_bytes..];
        let bytes = &bytes[..connection.owed_bytes.min(bytes.len())];
        connection.owed_bytes -= connection.stream.write(bytes)?;
    }
    Ok(())
}

/// Number of heads that end in `bytes`, and the part of a blank line at its end.
fn count_heads(mut bytes: &[u8]) -> (usize, usize) {
    let mut heads = 0;
    while let Some(end) = find_head_end(bytes) {
        heads += 1;
        bytes = &bytes[end..];
    }
    let matched = (1..HEAD_END.len()).rev().find(|&count| bytes.ends_with(&HEAD_END[..count]));
    (heads, matched.unwrap_or(0))
}

/// The end of the first blank line of `bytes`.
fn find_head_end(bytes: &[u8]) -> Option<usize> {
    // SAFETY: both pointers have the lengths of their slices.
    let found = unsafe {
        libc::memmem(bytes.as_ptr().cast(), bytes.len(), HEAD_END.as_ptr().cast(), HEAD_END.len())
    };
    (!found.is_null()).then(|| found as usize - bytes.as_ptr() as usize + HEAD_END.len())
}

fn watch(epoll_fd: i32, fd: i32, events: i32) -> io::Result<()> {
    let mut event = libc::epoll_event { events: events as u32, u64: fd as u64 };
    // SAFETY: the kernel copies `event` during the call.
    check(unsafe { libc::epoll_ctl(epoll_fd, libc::EPOLL_CTL_ADD, fd, &mut event) })?;
    Ok(())
}

/// The result of a system call, or its error.
fn check(result: i32) -> io::Result<i32> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}
