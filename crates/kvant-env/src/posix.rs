//! (follows)
use crate::fs::{DirEntry, File, FileLock, Fs};
use std::{io, path::Path, sync::Arc};

/// The operating system's file system.
pub struct PosixFs {}
impl PosixFs {
    pub fn new() -> PosixFs {
        PosixFs {}
    }
}
impl Fs for PosixFs {
    fn create(&self, _: &Path) -> io::Result<Arc<dyn File>> { unimplemented!() }
    fn open(&self, _: &Path) -> io::Result<Arc<dyn File>> { unimplemented!() }
    fn open_writable(&self, _: &Path) -> io::Result<Arc<dyn File>> { unimplemented!() }
    fn rename(&self, _: &Path, _: &Path) -> io::Result<()> { unimplemented!() }
    fn remove_file(&self, _: &Path) -> io::Result<()> { unimplemented!() }
    fn remove_dir_all(&self, _: &Path) -> io::Result<()> { unimplemented!() }
    fn hard_link(&self, _: &Path, _: &Path) -> io::Result<()> { unimplemented!() }
    fn create_dir_all(&self, _: &Path) -> io::Result<()> { unimplemented!() }
    fn list(&self, _: &Path) -> io::Result<Vec<DirEntry>> { unimplemented!() }
    fn sync_dir(&self, _: &Path) -> io::Result<()> { unimplemented!() }
    fn available_bytes(&self, _: &Path) -> io::Result<u64> { unimplemented!() }
    fn exists(&self, _: &Path) -> io::Result<bool> { unimplemented!() }
    fn lock(&self, _: &Path) -> io::Result<Box<dyn FileLock>> { unimplemented!() }
}
