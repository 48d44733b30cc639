//! A memory control group, of version 1 or 2: it limits what a process has of memory, pages of the
//! page cache that it reads first included.

use crate::Failure;
use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::path::Path;

/// The file with the limit, by version.
const LIMITS: [&str; 2] = ["memory.limit_in_bytes", "memory.max"];

pub(crate) fn limit(group: &Path, bytes: u64) -> Result<(), Failure> {
    let file = LIMITS.iter().map(|name| group.join(name)).find(|file| file.exists());
    let file = file.ok_or_else(|| format!("{} limits no memory", group.display()))?;
    Ok(fs::write(file, bytes.to_string())?)
}

/// Moves this process into the group.
pub(crate) fn enter(group: &Path) -> Result<(), Failure> {
    Ok(fs::write(group.join("cgroup.procs"), std::process::id().to_string())?)
}

/// Removes the files of a directory from the page cache. A page that stayed there would cost the
/// group nothing: pages count for the group that reads them first.
pub(crate) fn forget(dir: &Path) -> Result<(), Failure> {
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        if path.is_dir() {
            forget(&path)?;
            continue;
        }
        let file = File::open(&path)?;
        file.sync_all()?;
        // SAFETY: the descriptor is open.
        let code =
            unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) };
        if code != 0 {
            return Err(format!("{}: posix_fadvise: error {code}", path.display()).into());
        }
    }
    Ok(())
}
