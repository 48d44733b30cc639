//! The file system, reduced to what a log-structured store needs.
//!
//! Durability rules that every backend keeps and that the engine relies on:
//! 1. bytes written are durable once `sync_data` of that file has returned, and not before;
//! 2. a created, renamed, linked or removed name, of a file or a directory, is durable once
//!    `sync_dir` of the directory that holds the name has returned, and not before;
//! 3. a failed `sync_data` or `sync_dir` leaves what it covered in an unknown state for good:
//!    calling it again proves nothing (Rebello et al., "Can Applications Recover from fsync
//!    Failures?", USENIX ATC 2020).

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// An open file. Methods take `&self`: one thread may append while another syncs.
pub trait File: Send + Sync {
    /// Fills `buffer` from `offset_bytes`; `UnexpectedEof` when the file ends before.
    fn read_exact_at(&self, buffer: &mut [u8], offset_bytes: u64) -> io::Result<()>;
    /// As [`File::read_exact_at`] (true), if that needs no waiting for the device. False when it
    /// would have to wait, when the file system cannot tell, and where a backend does not know
    /// before waiting that the file has ended; `buffer` then holds anything.
    fn try_read_exact_at(&self, buffer: &mut [u8], offset_bytes: u64) -> io::Result<bool>;
    /// Writes all of `bytes` at `offset_bytes`, extending the file as needed. After an error, what
    /// part was written is unknown.
    fn write_all_at(&self, bytes: &[u8], offset_bytes: u64) -> io::Result<()>;
    /// Makes the contents, and the length needed to read them, durable.
    fn sync_data(&self) -> io::Result<()>;
    /// Cuts the file to, or extends it with zeros to, `len_bytes`.
    fn set_len(&self, len_bytes: u64) -> io::Result<()>;
    /// Reserves space for the first `len_bytes`, so that writing them cannot fail for want of it.
    /// The file becomes at least that long; what is new in it reads as zeros. Where the file system
    /// cannot reserve, zeros are written. After an error the length is as before. Not to be called
    /// while another thread extends the file.
    fn allocate(&self, len_bytes: u64) -> io::Result<()>;
    /// Current length.
    fn len_bytes(&self) -> io::Result<u64>;
}

/// What [`Fs::list`] returns for each entry that is a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirEntry {
    /// The name without its directory. Names that are not UTF-8 are not listed: none is ours.
    pub name: String,
    /// Length of the file.
    pub len_bytes: u64,
}

/// Exclusive ownership of a directory until dropped.
pub trait FileLock: Send + Sync {}

/// Files and directories. What a backend of the operating system creates, its owner alone may read.
pub trait Fs: Send + Sync {
    /// Opens `path` for reading and writing, creating it empty, or cutting it to empty if it
    /// exists.
    fn create(&self, path: &Path) -> io::Result<Arc<dyn File>>;
    /// Opens an existing file for reading.
    fn open(&self, path: &Path) -> io::Result<Arc<dyn File>>;
    /// Opens an existing file for reading and writing.
    fn open_writable(&self, path: &Path) -> io::Result<Arc<dyn File>>;
    /// Renames a file, replacing a file `to`; or a directory, replacing an empty directory `to`.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Removes a file.
    fn remove_file(&self, path: &Path) -> io::Result<()>;
    /// Removes a directory and all it holds.
    fn remove_dir_all(&self, path: &Path) -> io::Result<()>;
    /// A second name for the same file; fails if `to` exists. Both must be on one file system.
    fn hard_link(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Creates a directory and its missing parents.
    fn create_dir_all(&self, path: &Path) -> io::Result<()>;
    /// The files in a directory, in name order.
    fn list(&self, dir: &Path) -> io::Result<Vec<DirEntry>>;
    /// Makes created, renamed, linked and removed names in `dir` durable. Opens nothing while this
    /// [`Fs`] holds the lock of `dir`, so that a lack of descriptors does not look like a failed
    /// sync.
    fn sync_dir(&self, dir: &Path) -> io::Result<()>;
    /// Bytes that can still be written on the device that holds `path`.
    fn available_bytes(&self, path: &Path) -> io::Result<u64>;
    /// Whether `path` names a file or directory.
    fn exists(&self, path: &Path) -> io::Result<bool>;
    /// The absolute path of an existing file or directory, without `..` and symbolic links.
    fn canonical(&self, path: &Path) -> io::Result<PathBuf>;
    /// Takes the exclusive lock of the directory that holds `path`, creating the file and writing
    /// the caller's process id into it. The lock lasts also when the file is removed.
    ///
    /// # Errors
    /// `WouldBlock`, with a message that names the owner's process id, when another process (or
    /// another holder in this one) has it.
    fn lock(&self, path: &Path) -> io::Result<Box<dyn FileLock>>;

    /// The whole contents of a file.
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        let file = self.open(path)?;
        let len = usize::try_from(file.len_bytes()?).map_err(io::Error::other)?;
        let mut contents = vec![0; len];
        file.read_exact_at(&mut contents, 0)?;
        Ok(contents)
    }
}
