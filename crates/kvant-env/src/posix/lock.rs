//! The exclusive lock of a directory.
//!
//! Invariants:
//! 1. An owner holds two locks: on the directory, which survives any change of the names in it, and
//!    on the lock file, which names the owner. File systems without directory locks (NFS) have only
//!    the second.
//! 2. The lock file is never removed, because it names the owner.
//! 3. A locked directory stays open, so that syncing it needs no new descriptor.
//!
//! Threads: any.

use super::mode::FILE_MODE;
use crate::fs::{FileLock, parent_of};
use kvant_base::error::is_no_space;
use kvant_base::lock::NamedMutex;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Locked directories, open, with the paths that they were opened by.
pub(super) struct OwnedDirs(NamedMutex<Vec<(PathBuf, Arc<File>)>>);

impl Default for OwnedDirs {
    fn default() -> Self {
        OwnedDirs(NamedMutex::new("owned_dirs", Vec::new()))
    }
}

impl OwnedDirs {
    /// The open directory, if it is locked.
    ///
    /// # Errors
    /// The path now refers to another directory, about which a sync of the locked one proves
    /// nothing.
    pub(super) fn get(&self, dir: &Path) -> io::Result<Option<Arc<File>>> {
        let owned = self.0.lock().iter().find(|(path, _)| path == dir).cloned();
        let Some((_, owned)) = owned else { return Ok(None) };
        match fs::metadata(dir) {
            Ok(found) if identity(&found) != identity(&owned.metadata()?) => {
                Err(io::Error::other("another directory has taken its place"))
            }
            // If the path is gone, all names created through it are in the locked directory.
            _ => Ok(Some(owned)),
        }
    }
}

/// Device and inode number.
fn identity(metadata: &fs::Metadata) -> (u64, u64) {
    (metadata.dev(), metadata.ino())
}

/// The locks last as long as the open files.
struct PosixLock {
    dir: Arc<File>,
    _file: File,
    owned_dirs: Arc<OwnedDirs>,
}

impl FileLock for PosixLock {}

impl Drop for PosixLock {
    fn drop(&mut self) {
        let mut owned = self.owned_dirs.0.lock();
        owned.retain(|(_, dir)| !Arc::ptr_eq(dir, &self.dir));
    }
}

/// Locks the parent directory of the lock file `path`.
pub(super) fn take(owned_dirs: &Arc<OwnedDirs>, path: &Path) -> io::Result<Box<dyn FileLock>> {
    let dir_path = parent_of(path);
    let dir = File::open(dir_path)?;
    match dir.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Err(locked_by_other(path, &dir)),
        Err(TryLockError::Error(error)) if locks_no_directories(&error) => {}
        Err(TryLockError::Error(error)) => return Err(error),
    }
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(FILE_MODE)
        .open(path)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Err(locked_by_other(path, &file)),
        Err(TryLockError::Error(error)) => return Err(error),
    }
    // The id overwrites the last owner's before the truncation, so that a refused process never
    // reads an empty file.
    let process_id = format!("{}\n", std::process::id());
    let written = file
        .write_all_at(process_id.as_bytes(), 0)
        .and_then(|()| file.set_len(process_id.len() as u64));
    match written {
        // The id is informative. On a full disk the lock is held without it.
        Err(error) if is_no_space(&error) => {}
        written => written?,
    }
    let dir = Arc::new(dir);
    owned_dirs.0.lock().push((dir_path.to_path_buf(), Arc::clone(&dir)));
    Ok(Box::new(PosixLock { dir, _file: file, owned_dirs: Arc::clone(owned_dirs) }))
}

/// NFS maps these locks to byte-range locks, which need a file open for writing.
fn locks_no_directories(error: &io::Error) -> bool {
    error.kind() == ErrorKind::Unsupported || error.raw_os_error() == Some(libc::EBADF)
}

/// The refusal, with the owner's process id from the lock file or, without one, from the kernel.
fn locked_by_other(path: &Path, locked: &File) -> io::Error {
    let written = fs::read_to_string(path).ok();
    let written = written.and_then(|contents| contents.trim().parse::<u32>().ok());
    let owner = match written.or_else(|| lock_holder(locked)) {
        Some(process_id) => format!("process {process_id}"),
        None => "an unknown process".to_owned(),
    };
    let message = format!("{} is locked by {owner}", path.display());
    io::Error::new(ErrorKind::WouldBlock, message)
}

/// The process that holds the lock of `locked`, from `/proc/locks`.
fn lock_holder(locked: &File) -> Option<u32> {
    let metadata = locked.metadata().ok()?;
    let (dev, ino) = identity(&metadata);
    let (major, minor) = (rustix::fs::major(dev), rustix::fs::minor(dev));
    let inode = format!("{major:02x}:{minor:02x}:{ino}");
    let locks = fs::read_to_string("/proc/locks").ok()?;
    let holder = locks.lines().find_map(|line| {
        let fields: Vec<_> = line.split_whitespace().collect();
        let held = fields.get(1) == Some(&"FLOCK") && fields.get(5) == Some(&inode.as_str());
        fields.get(4).filter(|_| held)?.parse().ok()
    })?;
    // 0 is a process of another container.
    (holder > 0).then_some(holder)
}
