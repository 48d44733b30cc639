//! The limit on open descriptors: raised to the hard limit, because a connection is one.

use std::io;

/// Descriptors kept for files, listeners and everything else that is no connection.
const DESCRIPTORS_KEPT: u64 = 1000;
/// Connections served even where the limit leaves none: refusing all of them would help nobody.
const CONNECTIONS_MIN: u64 = 64;

/// Raises the soft limit to the hard one; the number of connections that there is room for.
pub(crate) fn connections_max() -> io::Result<usize> {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: `limit` is a valid, writable `rlimit` for the duration of the call.
    if unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) } != 0 {
        return Err(io::Error::last_os_error());
    }
    if limit.rlim_cur < limit.rlim_max {
        let raised = libc::rlimit {
            rlim_cur: limit.rlim_max,
            rlim_max: limit.rlim_max,
        };
        // SAFETY: `raised` is a valid `rlimit` for the duration of the call, which only reads it.
        if unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const raised) } == 0 {
            limit = raised;
        }
    }
    let connections = limit
        .rlim_cur
        .saturating_sub(DESCRIPTORS_KEPT)
        .max(CONNECTIONS_MIN);
    Ok(usize::try_from(connections).unwrap_or(usize::MAX))
}
