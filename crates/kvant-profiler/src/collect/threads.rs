//! The threads of the process, as `/proc` knows them.
//!
//! A listing may miss a thread while others come and go: only that a thread's own directory is gone
//! proves that it has ended.
//!
//! Threads: the drain asks.

use rustix::fd::OwnedFd;
use rustix::fs::{Access, Dir, Mode, OFlags};
use std::io;
use std::path::Path;

/// The numbers of all threads that are seen.
///
/// # Errors
/// When `/proc` cannot be read.
pub(super) fn list() -> io::Result<Vec<u32>> {
    let dir = rustix::fs::open(
        "/proc/self/task",
        OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC,
        Mode::empty(),
    )?;
    let mut ids = Vec::new();
    for entry in Dir::new(dir)? {
        // Besides the threads there are `.` and `..`.
        if let Ok(id) = entry?.file_name().to_string_lossy().parse() {
            ids.push(id);
        }
    }
    Ok(ids)
}

/// Whether a thread has ended.
pub(super) fn is_gone(id: u32) -> bool {
    rustix::fs::access(format!("/proc/self/task/{id}"), Access::EXISTS)
        == Err(rustix::io::Errno::NOENT)
}

/// A thread's name; `None` when it has ended.
pub(super) fn name_of(id: u32) -> Option<String> {
    let text = kvant_env::host::read_text(Path::new(&format!("/proc/self/task/{id}/comm"))).ok()?;
    Some(text.trim_end_matches('\n').to_owned())
}

/// The kernel's account of a thread. It is that of this thread even when another one gets its
/// number later.
pub(super) struct Account {
    /// `schedstat`; `None` where the kernel has none.
    file: Option<OwnedFd>,
}

/// What an account says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Balance {
    /// How long the thread was ready but had no processor, since it began.
    Waited { ns: u64 },
    /// The kernel does not tell.
    Unknown,
    /// The thread has ended.
    Gone,
}

impl Account {
    pub(super) fn open(id: u32) -> Account {
        let path = format!("/proc/self/task/{id}/schedstat");
        Account {
            file: rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).ok(),
        }
    }

    pub(super) fn read(&self) -> Balance {
        let Some(file) = &self.file else {
            return Balance::Unknown;
        };
        let mut text = [0; 96];
        match rustix::io::pread(file, &mut text, 0) {
            Ok(count) => {
                parse(&text[..count]).map_or(Balance::Unknown, |ns| Balance::Waited { ns })
            }
            Err(rustix::io::Errno::SRCH) => Balance::Gone,
            Err(_unreadable) => Balance::Unknown,
        }
    }
}

/// The second of three numbers: time on a processor, time ready without one, count of times on one.
fn parse(text: &[u8]) -> Option<u64> {
    std::str::from_utf8(text).ok()?.split_ascii_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests;
