//! The limit of open descriptors: each connection needs one.

use kvant_base::{Error, ErrorKind, Result};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Descriptors for standard streams, files, and whatever else the process has open.
const DESCRIPTORS_KEPT: u64 = 64;
/// Descriptors of a worker: its epoll instance and its waker.
const DESCRIPTORS_PER_THREAD: u64 = 2;

/// Raises the soft limit as far as these connections need.
pub(super) fn raise_limit(connection_count: usize, thread_count: usize) -> Result<()> {
    let limit = getrlimit(Resource::Nofile);
    let Some(limit) = raised(limit, connection_count as u64, thread_count as u64)? else {
        return Ok(());
    };
    setrlimit(Resource::Nofile, limit).map_err(|error| {
        let message = format!("cannot raise the limit on open file descriptors: {error}");
        Error::new(ErrorKind::Io, message)
    })
}

/// The limit to set; `None` if the current one suffices.
fn raised(limit: Rlimit, connection_count: u64, thread_count: u64) -> Result<Option<Rlimit>> {
    let kept = DESCRIPTORS_KEPT + DESCRIPTORS_PER_THREAD * thread_count;
    let needed = connection_count + kept;
    if limit.current.is_none_or(|current| current >= needed) {
        return Ok(None);
    }
    match limit.maximum {
        Some(maximum) if maximum < needed => {
            let fitting = match maximum.saturating_sub(kept) {
                0 => String::new(),
                fitting => format!(", or use at most {fitting} connections"),
            };
            let message = format!(
                "{connection_count} connections need {needed} file descriptors, but the hard limit is {maximum}: raise it \
                 (`ulimit -Hn {needed}` as root, `nofile` in limits.conf, `LimitNOFILE={needed}` in a systemd \
                 unit){fitting}"
            );
            Err(Error::new(ErrorKind::Io, message))
        }
        maximum => Ok(Some(Rlimit { current: Some(needed), maximum })),
    }
}

#[cfg(test)]
mod tests;
