//! A file system in memory, for tests that need no crashes: a disk of [`crate::faulty`] on which
//! everything is durable at once.

use crate::faulty::FaultyFs;
use crate::fs::{DirEntry, File, FileLock, Fs};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Files in memory. Clones share the same files.
#[derive(Clone)]
pub struct MemoryFs(FaultyFs);

impl MemoryFs {
    /// A file system with an empty root directory.
    pub fn new() -> MemoryFs {
        MemoryFs(FaultyFs::without_journal())
    }
}

impl Default for MemoryFs {
    fn default() -> Self {
        MemoryFs::new()
    }
}

impl Fs for MemoryFs {
    fn create(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        self.0.create(path)
    }

    fn open(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        self.0.open(path)
    }

    fn open_writable(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        self.0.open_writable(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.0.rename(from, to)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.0.remove_file(path)
    }

    fn remove_dir_all(&self, path: &Path) -> io::Result<()> {
        self.0.remove_dir_all(path)
    }

    fn hard_link(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.0.hard_link(from, to)
    }

    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        self.0.create_dir_all(path)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<DirEntry>> {
        self.0.list(dir)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        self.0.sync_dir(dir)
    }

    fn available_bytes(&self, path: &Path) -> io::Result<u64> {
        self.0.available_bytes(path)
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        self.0.exists(path)
    }

    fn canonical(&self, path: &Path) -> io::Result<PathBuf> {
        self.0.canonical(path)
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn FileLock>> {
        self.0.lock(path)
    }
}

#[cfg(test)]
mod tests;
