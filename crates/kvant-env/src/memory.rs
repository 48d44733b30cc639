//! A file system in memory: for tests, and for benchmarks that leave the disk out.
//!
//! Invariants:
//! 1. Names and contents are separate: hard links share an inode, and an open file survives the
//!    removal of its name.
//! 2. Everything is durable at once; `sync_data` and `sync_dir` only check that what they sync
//!    exists.
//!
//! Threads: any. `state` is held while names change, never while contents are read or written.

use crate::fs::{DirEntry, File, FileLock, Fs};
use crate::tree::{self, Change, DirId, Tree};
use kvant_base::lock::NamedMutex;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// Files in memory. Clones are the same file system.
#[derive(Clone)]
pub struct MemoryFs {
    state: Arc<NamedMutex<State>>,
}

struct State {
    tree: Tree<Inode>,
    /// Directories whose locks are held. A handful at most.
    locked: Vec<DirId>,
}

#[derive(Default)]
struct Inode {
    contents: RwLock<Vec<u8>>,
}

impl MemoryFs {
    /// A file system that holds an empty root directory.
    pub fn new() -> MemoryFs {
        let state = State { tree: Tree::new(), locked: Vec::new() };
        MemoryFs { state: Arc::new(NamedMutex::new("memory_fs", state)) }
    }

    fn open_as(&self, path: &Path, access: Access) -> io::Result<Arc<dyn File>> {
        Ok(Arc::new(MemoryFile { inode: self.state.lock().tree.file(path)?, access }))
    }

    fn change(
        &self,
        plan: impl FnOnce(&mut Tree<Inode>) -> io::Result<Vec<Change<Inode>>>,
    ) -> io::Result<()> {
        self.state.lock().change(plan)
    }
}

impl Default for MemoryFs {
    fn default() -> Self {
        MemoryFs::new()
    }
}

impl State {
    fn change(
        &mut self,
        plan: impl FnOnce(&mut Tree<Inode>) -> io::Result<Vec<Change<Inode>>>,
    ) -> io::Result<()> {
        for change in plan(&mut self.tree)? {
            self.tree.apply(&change);
        }
        Ok(())
    }

    /// The file at `path`, which is created if there is none.
    fn file_or_new(&mut self, path: &Path) -> io::Result<Arc<Inode>> {
        match self.tree.file(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let inode = Arc::new(Inode::default());
                self.change(|tree| tree.plan_insert(path, Arc::clone(&inode)))?;
                Ok(inode)
            }
            found => found,
        }
    }
}

impl Inode {
    fn read(&self) -> RwLockReadGuard<'_, Vec<u8>> {
        self.contents.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Vec<u8>> {
        self.contents.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn len_bytes(&self) -> u64 {
        self.read().len() as u64
    }
}

/// What an open file may be used for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    Read,
    ReadWrite,
}

impl Access {
    pub(crate) fn check_writable(self) -> io::Result<()> {
        match self {
            Access::Read => Err(io::Error::other("the file is open for reading only")),
            Access::ReadWrite => Ok(()),
        }
    }
}

struct MemoryFile {
    inode: Arc<Inode>,
    access: Access,
}

impl MemoryFile {
    fn write(&self) -> io::Result<RwLockWriteGuard<'_, Vec<u8>>> {
        self.access.check_writable()?;
        Ok(self.inode.write())
    }
}

impl File for MemoryFile {
    fn read_exact_at(&self, buffer: &mut [u8], offset_bytes: u64) -> io::Result<()> {
        let contents = self.inode.read();
        buffer.copy_from_slice(
            range(&contents, offset_bytes, buffer.len()).ok_or(ErrorKind::UnexpectedEof)?,
        );
        Ok(())
    }

    fn try_read_exact_at(&self, buffer: &mut [u8], offset_bytes: u64) -> io::Result<bool> {
        self.read_exact_at(buffer, offset_bytes).map(|()| true)
    }

    fn write_all_at(&self, bytes: &[u8], offset_bytes: u64) -> io::Result<()> {
        let mut contents = self.write()?;
        write_at(&mut contents, bytes, offset_bytes)
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }

    fn set_len(&self, len_bytes: u64) -> io::Result<()> {
        self.write()?.resize(to_usize(len_bytes)?, 0);
        Ok(())
    }

    fn allocate(&self, len_bytes: u64) -> io::Result<()> {
        let mut contents = self.write()?;
        let len = contents.len().max(to_usize(len_bytes)?);
        contents.resize(len, 0);
        Ok(())
    }

    fn len_bytes(&self) -> io::Result<u64> {
        Ok(self.inode.len_bytes())
    }
}

/// `len` bytes from `offset_bytes` on; `None` when there are not as many.
pub(crate) fn range(contents: &[u8], offset_bytes: u64, len: usize) -> Option<&[u8]> {
    let start = usize::try_from(offset_bytes).ok()?;
    contents.get(start..start.checked_add(len)?)
}

/// Writes as a file does: a gap between the end and `offset_bytes` is filled with zeros; writing
/// nothing changes nothing.
pub(crate) fn write_at(contents: &mut Vec<u8>, bytes: &[u8], offset_bytes: u64) -> io::Result<()> {
    if bytes.is_empty() {
        return Ok(());
    }
    let start = to_usize(offset_bytes)?;
    let end = start.checked_add(bytes.len()).ok_or(ErrorKind::FileTooLarge)?;
    if start == contents.len() {
        contents.extend_from_slice(bytes);
        return Ok(());
    }
    if contents.len() < end {
        contents.resize(end, 0);
    }
    contents[start..end].copy_from_slice(bytes);
    Ok(())
}

/// A length that can be one in memory.
pub(crate) fn to_usize(len_bytes: u64) -> io::Result<usize> {
    match usize::try_from(len_bytes) {
        Ok(len) if len <= isize::MAX as usize => Ok(len),
        _ => Err(ErrorKind::FileTooLarge.into()),
    }
}

impl Fs for MemoryFs {
    fn create(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        let inode = self.state.lock().file_or_new(path)?;
        inode.write().clear();
        Ok(Arc::new(MemoryFile { inode, access: Access::ReadWrite }))
    }

    fn open(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        self.open_as(path, Access::Read)
    }

    fn open_writable(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        self.open_as(path, Access::ReadWrite)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.change(|tree| tree.plan_rename(from, to))
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.change(|tree| tree.plan_remove_file(path))
    }

    fn remove_dir_all(&self, path: &Path) -> io::Result<()> {
        self.change(|tree| tree.plan_remove_dir_all(path))
    }

    fn hard_link(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.change(|tree| tree.plan_insert(to, tree.file(from)?))
    }

    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        self.change(|tree| tree.plan_create_dir_all(path))
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<DirEntry>> {
        self.state.lock().tree.list(dir, Inode::len_bytes)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        self.state.lock().tree.dir(dir).map(drop)
    }

    /// Memory has no end here: [`crate::faulty`] models a full disk.
    fn available_bytes(&self, path: &Path) -> io::Result<u64> {
        match self.exists(path)? {
            true => Ok(u64::MAX),
            false => Err(ErrorKind::NotFound.into()),
        }
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        self.state.lock().tree.exists(path)
    }

    fn canonical(&self, path: &Path) -> io::Result<PathBuf> {
        match self.exists(path)? {
            true => Ok(tree::absolute(path)),
            false => Err(ErrorKind::NotFound.into()),
        }
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn FileLock>> {
        let mut state = self.state.lock();
        let dir = state.tree.parent_dir(path)?;
        if state.locked.contains(&dir) {
            return Err(locked_by_this_process(path));
        }
        let inode = state.file_or_new(path)?;
        *inode.write() = format!("{}\n", std::process::id()).into_bytes();
        state.locked.push(dir);
        Ok(Box::new(MemoryLock { state: Arc::clone(&self.state), dir }))
    }
}

struct MemoryLock {
    state: Arc<NamedMutex<State>>,
    dir: DirId,
}

impl FileLock for MemoryLock {}

impl Drop for MemoryLock {
    fn drop(&mut self) {
        self.state.lock().locked.retain(|held| *held != self.dir);
    }
}

/// The refusal of a lock that is held: in memory only this process can hold it.
pub(crate) fn locked_by_this_process(path: &Path) -> io::Error {
    let message = format!("{} is locked by process {}", path.display(), std::process::id());
    io::Error::new(ErrorKind::WouldBlock, message)
}

#[cfg(test)]
mod tests;
