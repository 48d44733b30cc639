//! The limit of open descriptors: each connection needs one.

use kvant_base::{Error, ErrorKind, Result};
use kvant_env::posix::raise_descriptor_limit;

/// Descriptors for standard streams, files, and whatever else the process has open.
const DESCRIPTORS_KEPT: u64 = 64;
/// Descriptors of a worker: its epoll instance and its waker.
const DESCRIPTORS_PER_THREAD: u64 = 2;

/// Raises the soft limit as far as these connections need.
///
/// # Errors
/// `Io` when the hard limit is lower, with the remedy.
pub fn raise_limit(connection_count: usize, thread_count: usize) -> Result<()> {
    let kept = DESCRIPTORS_KEPT + DESCRIPTORS_PER_THREAD * thread_count as u64;
    let connection_count = connection_count as u64;
    check(raise_descriptor_limit(connection_count + kept), connection_count, kept)
}

/// Fails if `limit` is too low, with the remedy.
fn check(limit: u64, connection_count: u64, kept: u64) -> Result<()> {
    let needed = connection_count + kept;
    if limit >= needed {
        return Ok(());
    }
    let fitting = match limit.saturating_sub(kept) {
        0 => String::new(),
        fitting => format!(", or use at most {fitting} connections"),
    };
    let message = format!(
        "{connection_count} connections need {needed} file descriptors, but this process may open {limit}: raise the \
         hard limit (`ulimit -Hn {needed}` as root, `nofile` in limits.conf, `LimitNOFILE={needed}` in a systemd \
         unit){fitting}"
    );
    Err(Error::new(ErrorKind::Io, message))
}

#[cfg(test)]
mod tests;
