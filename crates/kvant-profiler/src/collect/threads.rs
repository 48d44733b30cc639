//! The threads of the process, from `/proc`.
//!
//! A listing may miss a thread while others start and end. Only the absence of the thread's own
//! directory proves that it has ended.
//!
//! Threads: the drain.

use rustix::fd::OwnedFd;
use rustix::fs::{Access, Dir, Mode, OFlags};
use rustix::io::Errno;
use std::io;
use std::path::Path;

const TASKS: &str = "/proc/self/task";

/// Lists the ids of all threads.
pub(super) fn list() -> io::Result<Vec<u32>> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let dir = rustix::fs::open(TASKS, flags, Mode::empty())?;
    let mut ids = Vec::new();
    for entry in Dir::new(dir)? {
        // Other entries are `.` and `..`.
        if let Ok(id) = entry?.file_name().to_string_lossy().parse() {
            ids.push(id);
        }
    }
    Ok(ids)
}

pub(super) fn has_ended(id: u32) -> bool {
    let exists = |path: &str| rustix::fs::access(path, Access::EXISTS);
    // Without `/proc`, as in some chroots, no thread has its directory.
    exists(&format!("{TASKS}/{id}")) == Err(Errno::NOENT) && exists(TASKS).is_ok()
}

/// A thread's name; `None` if it has ended.
pub(super) fn name_of(id: u32) -> Option<String> {
    let text = kvant_env::host::read_text(Path::new(&format!("/proc/self/task/{id}/comm"))).ok()?;
    Some(text.trim_end_matches('\n').to_owned())
}

/// The kernel's scheduler statistics of a thread. They stay those of this thread even if its id is
/// reused.
pub(super) struct SchedulerStats {
    /// `schedstat`; `None` if the kernel has none, or if waits for processors are not sampled.
    file: Option<OwnedFd>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReadyTime {
    /// How long the thread was ready but had no processor, since it started.
    Waited {
        ns: u64,
    },
    Unknown,
    Ended,
}

impl SchedulerStats {
    /// Without a descriptor.
    pub(super) const UNREAD: SchedulerStats = SchedulerStats { file: None };

    pub(super) fn open(id: u32) -> SchedulerStats {
        let path = format!("/proc/self/task/{id}/schedstat");
        let file = rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty());
        SchedulerStats { file: file.ok() }
    }

    pub(super) fn read(&self) -> ReadyTime {
        let Some(file) = &self.file else {
            return ReadyTime::Unknown;
        };
        let mut text = [0; 96];
        match rustix::io::pread(file, &mut text, 0) {
            Ok(count) => {
                parse(&text[..count]).map_or(ReadyTime::Unknown, |ns| ReadyTime::Waited { ns })
            }
            Err(Errno::SRCH) => ReadyTime::Ended,
            Err(_unreadable) => ReadyTime::Unknown,
        }
    }
}

/// The second of three numbers: time on a processor, time ready without one, times scheduled.
fn parse(text: &[u8]) -> Option<u64> {
    std::str::from_utf8(text).ok()?.split_ascii_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests;
