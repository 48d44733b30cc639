//! The file-system traits on the simulated disk.

use super::FaultyFs;
use super::disk::{Disk, InodeCell, SyncTarget};
use super::faults::FaultOp;
use super::inode::Edit;
use super::tree::{self, Change, DirId, Tree};
use crate::fs::{DirEntry, File, FileLock, Fs, MappedFile};
use kvant_base::lock::{NamedGuard, NamedMutex};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

impl FaultyFs {
    /// Locks the disk, unless `op` is to fail.
    fn begin(&self, op: FaultOp, paths: &[&Path]) -> io::Result<NamedGuard<'_, Disk>> {
        let mut disk = self.disk.lock();
        disk.check(op, paths)?;
        Ok(disk)
    }

    /// Sleeps for the delay of a slow disk, without its lock.
    fn wait(&self, delay_of: impl FnOnce(&Disk) -> Duration) {
        let delay = delay_of(&self.disk.lock());
        if !delay.is_zero() {
            thread::sleep(delay);
        }
    }

    fn handle(&self, inode: Arc<InodeCell>, path: &Path, access: Access) -> Arc<dyn File> {
        Arc::new(FaultyFile { fs: self.clone(), inode, path: path.to_path_buf(), access })
    }

    fn open_as(&self, path: &Path, access: Access) -> io::Result<Arc<dyn File>> {
        let inode = self.begin(FaultOp::Open, &[path])?.names.file(path)?;
        Ok(self.handle(inode, path, access))
    }

    fn change_names(
        &self,
        op: FaultOp,
        paths: &[&Path],
        plan: impl FnOnce(&Tree<InodeCell>) -> io::Result<Vec<Change<InodeCell>>>,
    ) -> io::Result<()> {
        let mut disk = self.begin(op, paths)?;
        let changes = plan(&disk.names)?;
        disk.change_names(changes);
        Ok(())
    }
}

impl Fs for FaultyFs {
    fn create(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        let mut disk = self.begin(FaultOp::Create, &[path])?;
        let inode = disk.file_or_new(path)?;
        if inode.lock().len_bytes() > 0 {
            disk.resize(&inode, Edit::SetLen(0))?;
        }
        Ok(self.handle(inode, path, Access::ReadWrite))
    }

    fn open(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        self.open_as(path, Access::Read)
    }

    fn open_writable(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        self.open_as(path, Access::ReadWrite)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.change_names(FaultOp::Rename, &[from, to], |names| names.plan_rename(from, to))
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.change_names(FaultOp::RemoveFile, &[path], |names| names.plan_remove_file(path))
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        self.change_names(FaultOp::RemoveDir, &[path], |names| names.plan_remove_dir(path))
    }

    fn remove_dir_all(&self, path: &Path) -> io::Result<()> {
        let mut disk = self.begin(FaultOp::RemoveDirAll, &[path])?;
        for change in disk.names.plan_remove_dir_all(path)? {
            disk.change_names(vec![change]);
        }
        Ok(())
    }

    fn hard_link(&self, from: &Path, to: &Path) -> io::Result<()> {
        let plan = |names: &Tree<InodeCell>| names.plan_insert(to, names.file(from)?);
        self.change_names(FaultOp::HardLink, &[from, to], plan)
    }

    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        let mut disk = self.begin(FaultOp::CreateDirAll, &[path])?;
        for change in disk.names.plan_create_dir_all(path)? {
            disk.change_names(vec![change]);
        }
        Ok(())
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<DirEntry>> {
        self.begin(FaultOp::List, &[dir])?.names.list(dir, |inode| inode.lock().len_bytes())
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        self.wait(|disk| disk.sync_delay);
        let mut disk = self.disk.lock();
        disk.check_power()?;
        let target = SyncTarget::Dir(disk.names.dir(dir)?);
        disk.sync(target, FaultOp::SyncDir, dir)
    }

    fn available_bytes(&self, path: &Path) -> io::Result<u64> {
        match self.exists(path)? {
            true => Ok(self.disk.lock().available_bytes()),
            false => Err(ErrorKind::NotFound.into()),
        }
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        let disk = self.disk.lock();
        disk.check_power()?;
        disk.names.exists(path)
    }

    fn canonical(&self, path: &Path) -> io::Result<PathBuf> {
        match self.exists(path)? {
            true => Ok(tree::absolute(path)),
            false => Err(ErrorKind::NotFound.into()),
        }
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn FileLock>> {
        let mut disk = self.begin(FaultOp::Lock, &[path])?;
        let dir = disk.names.parent_dir(path)?;
        if disk.locked.contains(&dir) {
            let message = format!("{} is locked by process {}", path.display(), std::process::id());
            return Err(io::Error::new(ErrorKind::WouldBlock, message));
        }
        let inode = disk.file_or_new(path)?;
        let process_id = format!("{}\n", std::process::id());
        disk.write(&inode, process_id.as_bytes(), 0)?;
        disk.resize(&inode, Edit::SetLen(process_id.len() as u64))?;
        disk.locked.push(dir);
        Ok(Box::new(FaultyLock { disk: Arc::clone(&self.disk), dir }))
    }
}

/// The permitted use of an open file.
#[derive(Clone, Copy)]
enum Access {
    Read,
    ReadWrite,
}

#[derive(Clone)]
struct FaultyFile {
    fs: FaultyFs,
    inode: Arc<InodeCell>,
    /// The path that it was opened by.
    path: PathBuf,
    access: Access,
}

impl FaultyFile {
    fn begin(&self, op: FaultOp) -> io::Result<NamedGuard<'_, Disk>> {
        self.fs.begin(op, &[&self.path])
    }

    fn check_writable(&self) -> io::Result<()> {
        match self.access {
            Access::Read => Err(io::Error::other("the file is open for reading only")),
            Access::ReadWrite => Ok(()),
        }
    }

    /// Reads with the disk locked, so that no write comes in between.
    fn read(
        &self,
        disk: NamedGuard<'_, Disk>,
        buffer: &mut [u8],
        offset_bytes: u64,
    ) -> io::Result<()> {
        let range = offset_bytes..offset_bytes.saturating_add(buffer.len() as u64);
        let is_lost = |(path, byte): &(PathBuf, u64)| *path == self.path && range.contains(byte);
        if disk.lost_bytes.iter().any(is_lost) {
            return Err(io::Error::from_raw_os_error(libc::EIO));
        }
        let inode = self.inode.lock();
        let rest = usize::try_from(offset_bytes).ok().and_then(|start| inode.live.get(start..));
        let bytes = rest.and_then(|rest| rest.get(..buffer.len()));
        buffer.copy_from_slice(bytes.ok_or(ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn resize(&self, op: FaultOp, edit: Edit) -> io::Result<()> {
        self.check_writable()?;
        self.begin(op)?.resize(&self.inode, edit)
    }
}

impl File for FaultyFile {
    fn read_exact_at(&self, buffer: &mut [u8], offset_bytes: u64) -> io::Result<()> {
        self.fs.wait(|disk| disk.read_delay);
        self.read(self.begin(FaultOp::Read)?, buffer, offset_bytes)
    }

    fn try_read_exact_at(&self, buffer: &mut [u8], offset_bytes: u64) -> io::Result<bool> {
        let mut disk = self.fs.disk.lock();
        if !disk.read_delay.is_zero() {
            return Ok(false);
        }
        disk.check(FaultOp::Read, &[&self.path])?;
        self.read(disk, buffer, offset_bytes).map(|()| true)
    }

    fn write_all_at(&self, bytes: &[u8], offset_bytes: u64) -> io::Result<()> {
        self.check_writable()?;
        let mut disk = self.fs.disk.lock();
        disk.check_power()?;
        match disk.faults.check(FaultOp::Write, &[&self.path]) {
            Ok(()) => disk.write(&self.inode, bytes, offset_bytes),
            Err(error) => disk.write_part(&self.inode, bytes, offset_bytes).and(Err(error)),
        }
    }

    fn sync_data(&self) -> io::Result<()> {
        self.fs.wait(|disk| disk.sync_delay);
        let target = SyncTarget::File(Arc::clone(&self.inode));
        self.fs.disk.lock().sync(target, FaultOp::SyncData, &self.path)
    }

    fn set_len(&self, len_bytes: u64) -> io::Result<()> {
        self.resize(FaultOp::SetLen, Edit::SetLen(len_bytes))
    }

    fn allocate(&self, len_bytes: u64) -> io::Result<()> {
        self.resize(FaultOp::Allocate, Edit::Extend(len_bytes))
    }

    fn map(&self, len_bytes: u64) -> Option<Box<dyn MappedFile>> {
        self.allocate(len_bytes).ok()?;
        Some(Box::new(FaultyMapping { file: self.clone(), len_bytes }))
    }

    fn len_bytes(&self) -> io::Result<u64> {
        self.fs.disk.lock().check_power()?;
        Ok(self.inode.lock().len_bytes())
    }
}

/// The start of a file, of which each write is as any other.
struct FaultyMapping {
    file: FaultyFile,
    len_bytes: u64,
}

impl MappedFile for FaultyMapping {
    fn len_bytes(&self) -> u64 {
        self.len_bytes
    }

    fn write(&mut self, bytes: &[u8], offset_bytes: u64) -> io::Result<()> {
        self.file.write_all_at(bytes, offset_bytes)
    }
}

struct FaultyLock {
    disk: Arc<NamedMutex<Disk>>,
    dir: DirId,
}

impl FileLock for FaultyLock {}

impl Drop for FaultyLock {
    fn drop(&mut self) {
        self.disk.lock().locked.retain(|held| *held != self.dir);
    }
}
