//! What this process has not yet read from a connection.

use rustix::io::ioctl_fionread;
use rustix::net::{getpeername, getsockname};
use std::net::SocketAddr;
use std::os::fd::{BorrowedFd, RawFd};

/// Bytes that have arrived at this process's end `local` of the connection with `peer` and are
/// unread. `None` if this process has closed that end.
///
/// For tests in which the server and its client are one process, and how bytes are read matters.
pub fn unread_bytes(local: SocketAddr, peer: SocketAddr) -> Option<u64> {
    let open = std::fs::read_dir("/proc/self/fd").expect("the process's descriptors");
    let numbers = open.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    numbers.into_iter().find_map(|number: RawFd| {
        // SAFETY: it is not closed from here. Another thread may close it at any time; then the
        // calls fail, or are about a file opened since, and change nothing.
        let descriptor = unsafe { BorrowedFd::borrow_raw(number) };
        let own = SocketAddr::try_from(getsockname(descriptor).ok()?).ok()?;
        let other = SocketAddr::try_from(getpeername(descriptor).ok()??).ok()?;
        if (own, other) == (local, peer) { ioctl_fionread(descriptor).ok() } else { None }
    })
}
