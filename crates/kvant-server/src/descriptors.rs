//! The limit on open descriptors: raises it to the hard limit, and divides it between connections
//! and everything else.
//!
//! Files come first: a client that is not accepted waits in the kernel, but a flush that cannot
//! open its table blocks all writes.

use kvant_env::posix::raise_descriptor_limit;
use std::io;

/// Descriptors kept for files and other uses than connections, where the limit allows it.
const KEPT_MAX: u64 = 1000;
/// Descriptors open before the first connection: standard streams, listeners, signals, the
/// database's directory, lock, logs, manifest and reserve.
const OWN: u64 = 20;
/// Descriptors of a selector: its event queue, and those that wake it.
const OF_SELECTOR: u64 = 4;
/// Tables of a small database, and of one flush and one compaction.
const FILES_MIN: u64 = 16;
/// A server for fewer connections does not start.
const CONNECTIONS_MIN: u64 = 4;

/// Raises the soft limit to the hard one, and returns the number of connections that fit.
///
/// # Errors
/// The limit is too low; the message says what to do.
pub(crate) fn room_for_connections(selectors: usize) -> io::Result<usize> {
    let limit = raise_descriptor_limit(u64::MAX);
    let needed = OWN + OF_SELECTOR * selectors as u64 + FILES_MIN;
    let kept = KEPT_MAX.min(limit / 4 * 3).max(needed);
    match limit.saturating_sub(kept) {
        connections @ CONNECTIONS_MIN.. => Ok(usize::try_from(connections).unwrap_or(usize::MAX)),
        _ => Err(io::Error::other(format!(
            "this process may open {limit} descriptors, but {selectors} selectors, files and {CONNECTIONS_MIN} connections \
             need {}: raise the hard limit (ulimit -Hn) or lower --selectors",
            needed + CONNECTIONS_MIN
        ))),
    }
}
