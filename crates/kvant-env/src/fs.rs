//! The file-system operations that a log-structured store needs.
//!
//! Durability rules that every backend keeps and the engine relies on:
//! 1. Written bytes are durable once `sync_data` of the file has returned, and not before.
//! 2. A created, renamed, linked or removed name of a file or directory is durable once `sync_dir`
//!    of the directory with that name has returned, and not before.
//! 3. After a failed `sync_data` or `sync_dir` the state of the data it covered is unknown for
//!    good, also for later processes: a later successful sync proves nothing, and reads may return
//!    what is only in memory (Rebello et al., "Can Applications Recover from fsync Failures?",
//!    USENIX ATC 2020). Data that is written again is covered by the next sync.

use kvant_base::{Error, ErrorKind, Result};
use std::io::{self, IoSlice};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Bytes that [`File::write_again`] has in memory.
const REWRITE_BYTES: u64 = 1 << 20;

/// An open file. One thread may append while another syncs.
pub trait File: Send + Sync {
    /// Fills `buffer` from `offset_bytes`; `UnexpectedEof` if the file is too short. See
    /// [`read_error`].
    fn read_exact_at(&self, buffer: &mut [u8], offset_bytes: u64) -> io::Result<()>;
    /// As [`File::read_exact_at`], but only if that does not block on the device. Returns false if
    /// it would block, or if the file system cannot tell; the contents of `buffer` are then
    /// unspecified. A read past the end of the file returns false or `UnexpectedEof`.
    fn try_read_exact_at(&self, buffer: &mut [u8], offset_bytes: u64) -> io::Result<bool>;
    /// Writes all of `bytes` at `offset_bytes`, extending the file as needed. After an error any
    /// part of them may have been written.
    fn write_all_at(&self, bytes: &[u8], offset_bytes: u64) -> io::Result<()>;
    /// Writes `parts` one after another, as [`File::write_all_at`].
    fn write_parts_at(&self, parts: &mut [IoSlice<'_>], offset_bytes: u64) -> io::Result<()> {
        let parts: Vec<&[u8]> = parts.iter().map(|part| &**part).collect();
        self.write_all_at(&parts.concat(), offset_bytes)
    }
    /// Writes what is read at `range` again: `sync_data` then covers it, even if an earlier one
    /// failed.
    fn write_again(&self, range: Range<u64>) -> io::Result<()> {
        let mut buffer = Vec::new();
        let mut offset_bytes = range.start;
        while offset_bytes < range.end {
            let count = (range.end - offset_bytes).min(REWRITE_BYTES);
            buffer.resize(count as usize, 0);
            self.read_exact_at(&mut buffer, offset_bytes)?;
            self.write_all_at(&buffer, offset_bytes)?;
            offset_bytes += count;
        }
        Ok(())
    }
    /// Makes the contents, and the length needed to read them, durable.
    fn sync_data(&self) -> io::Result<()>;
    /// Starts to write `len_bytes` from `offset_bytes` to the device, so that a later `sync_data`
    /// is short. Makes nothing durable.
    fn begin_write_back(&self, _offset_bytes: u64, _len_bytes: u64) -> io::Result<()> {
        Ok(())
    }
    /// Truncates the file, or extends it with zeros, to `len_bytes`.
    fn set_len(&self, len_bytes: u64) -> io::Result<()>;
    /// Reserves space for the first `len_bytes`, so that writing them cannot fail with a full disk.
    /// Extends the file with zeros to that length if it is shorter. Writes zeros where the file
    /// system cannot reserve space. After an error the length is unchanged. Must not be called
    /// while another thread extends the file.
    fn allocate(&self, len_bytes: u64) -> io::Result<()>;
    /// Reserves space for the first `len_bytes` and maps them. `None`: there is no space, or the
    /// backend maps no files; the length is then unchanged. Must not be called while another thread
    /// extends the file.
    fn map(&self, _len_bytes: u64) -> Option<Box<dyn MappedFile>> {
        None
    }
    /// The current length.
    fn len_bytes(&self) -> io::Result<u64>;
}

/// The error of a failed read of `path`, at `offset_bytes`.
///
/// `Corruption` where the medium, or the file system's checksum of it, is damaged: reading again
/// would not help, and other parts of the file may be readable. Else as of [`Error::io`].
pub fn read_error(error: io::Error, path: &Path, offset_bytes: u64) -> Error {
    let is_damage = matches!(error.raw_os_error(), Some(libc::EIO | libc::EBADMSG | libc::EUCLEAN));
    let error = Error::io("read", path, error).with_offset(offset_bytes);
    if is_damage { error.with_kind(ErrorKind::Corruption) } else { error }
}

/// The start of a file in memory. What is written there is in the file at once, as by
/// [`File::write_all_at`], without a system call. It must end before the file is shortened.
pub trait MappedFile: Send {
    /// The length.
    fn len_bytes(&self) -> u64;
    /// Writes `bytes` at `offset_bytes`, which grows from call to call; both end within the
    /// mapping. After an error any part of them may have been written, and the mapping must not be
    /// used again.
    fn write(&mut self, bytes: &[u8], offset_bytes: u64) -> io::Result<()>;
}

/// A file in a directory listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirEntry {
    /// The name without its directory. Names that are not UTF-8 are not listed, since Kvant creates
    /// none.
    pub name: String,
    /// The file's length.
    pub len_bytes: u64,
}

/// Exclusive ownership of a directory until dropped.
pub trait FileLock: Send + Sync {}

/// Files and directories. On the operating system's disk only the owner may read what this creates.
pub trait Fs: Send + Sync {
    /// Opens `path` for reading and writing; creates the file, or truncates an existing one.
    fn create(&self, path: &Path) -> io::Result<Arc<dyn File>>;
    /// Opens an existing file for reading.
    fn open(&self, path: &Path) -> io::Result<Arc<dyn File>>;
    /// As [`Fs::open`], for reads past the page cache, where the backend has one: short ones, for
    /// which it would keep more than was asked for. Each of them may wait for the device. An error
    /// of the kind `InvalidInput` or `Unsupported` says that the file system has no such reads.
    fn open_direct(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        self.open(path)
    }
    /// Opens an existing file for reading and writing.
    fn open_writable(&self, path: &Path) -> io::Result<Arc<dyn File>>;
    /// Renames a file, replacing an existing file `to`, or a directory, replacing an existing empty
    /// directory `to`.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Removes a file.
    fn remove_file(&self, path: &Path) -> io::Result<()>;
    /// Frees the pages in which the system caches a synced file, and calls `after_step` after every
    /// 1 MiB. The removal of the file, which else frees them all at once, then takes little CPU
    /// time. Other names of the file lose these pages, too.
    fn forget_cached(&self, _path: &Path, _after_step: &dyn Fn()) -> io::Result<()> {
        Ok(())
    }
    /// Removes an empty directory.
    fn remove_dir(&self, path: &Path) -> io::Result<()>;
    /// Removes a directory with its contents.
    fn remove_dir_all(&self, path: &Path) -> io::Result<()>;
    /// Adds the name `to` to the file `from`; fails if `to` exists. Both must be on one device.
    fn hard_link(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Creates a directory and its missing parents.
    fn create_dir_all(&self, path: &Path) -> io::Result<()>;
    /// The files in a directory, in name order.
    fn list(&self, dir: &Path) -> io::Result<Vec<DirEntry>>;
    /// Makes created, renamed, linked and removed names in `dir` durable. While this [`Fs`] holds
    /// the lock of `dir` it opens no descriptor, so that a lack of descriptors does not look like a
    /// failed sync.
    fn sync_dir(&self, dir: &Path) -> io::Result<()>;
    /// Free space on the device of `path`.
    fn available_bytes(&self, path: &Path) -> io::Result<u64>;
    /// Whether `path` is a file or directory.
    fn exists(&self, path: &Path) -> io::Result<bool>;
    /// The absolute path of an existing file or directory, without `..` and symbolic links.
    fn canonical(&self, path: &Path) -> io::Result<PathBuf>;
    /// Acquires the exclusive lock of the parent directory of `path`. Creates the file `path` and
    /// writes the process id into it. The lock survives the removal of the file.
    ///
    /// # Errors
    /// `WouldBlock`, with a message that names the owner's process id, if another process, or
    /// another holder in this one, has the lock.
    fn lock(&self, path: &Path) -> io::Result<Box<dyn FileLock>>;

    /// Reads a whole file.
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        let file = self.open(path)?;
        let len = usize::try_from(file.len_bytes()?).map_err(io::Error::other)?;
        let mut contents = vec![0; len];
        file.read_exact_at(&mut contents, 0)?;
        Ok(contents)
    }
}

/// The directory with the name of `path`.
pub fn parent_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// `dir` and its ancestors, up to the first that exists, `dir` first.
pub fn missing_dirs<'a>(fs: &dyn Fs, dir: &'a Path) -> io::Result<Vec<&'a Path>> {
    let mut missing = Vec::new();
    // A relative path has an empty ancestor.
    for dir in dir.ancestors().filter(|dir| !dir.as_os_str().is_empty()) {
        if fs.exists(dir)? {
            break;
        }
        missing.push(dir);
    }
    Ok(missing)
}

/// Creates `dir` and its missing parents where they do not exist, and makes their names durable.
///
/// Nothing is created in a directory before its own name is durable. So an earlier attempt, which a
/// crash may have ended at any point, leaves in doubt only the name of the last directory that it
/// created, and that is synced first.
pub fn create_dir_durably(fs: &dyn Fs, dir: &Path) -> Result<()> {
    let missing = missing_dirs(fs, dir).map_err(|error| Error::io("look at", dir, error))?;
    let found = missing.last().map_or(dir, |top| parent_of(top));
    // Also that of `.` and of what a symbolic link refers to.
    let above = found.join("..");
    match fs.sync_dir(&above) {
        // A read-only file system need not support it, and a directory of the system need not be
        // readable. Kvant has not made the names there.
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::PermissionDenied | io::ErrorKind::InvalidInput
            ) => {}
        synced => synced.map_err(|error| Error::io("sync", &above, error))?,
    }
    for dir in missing.into_iter().rev() {
        fs.create_dir_all(dir).map_err(|error| Error::io("create", dir, error))?;
        let parent = parent_of(dir);
        fs.sync_dir(parent).map_err(|error| {
            // Rule 3: a later attempt has to create it again. Where another process has files in it
            // by now, it stays.
            let _removed = fs.remove_dir(dir);
            Error::io("sync", parent, error)
        })?;
    }
    Ok(())
}

#[cfg(test)]
pub(crate) mod tests;
