//! The operating system's files and directories.
//!
//! Invariants:
//! 1. A failed sync is never retried and no error is dropped. Rule 3 of [`crate::fs`] is up to the
//!    caller.
//! 2. A lock belongs to an open file, not to the process, so that a second attempt in the same
//!    process also fails.
//! 3. The first nonblocking read shows whether the system supports them. The result applies to all
//!    files of a [`PosixFs`], which are assumed to be on one device.
//! 4. Only the owner may read new files and directories, regardless of the umask.
//!
//! Calls that may block on the disk report their duration to a profiler.
//!
//! Threads: any. Files are read and written at explicit offsets and have no cursor.

use crate::fs::{DirEntry, File, FileLock, Fs, MappedFile};
use direct::DirectFile;
use kvant_base::wait::{self, WaitKind};
use mode::{DIR_MODE, FILE_MODE};
use rustix::fs::{Advice, FallocateFlags, fadvise};
use rustix::io::{Errno, ReadWriteFlags, preadv2, retry_on_intr};
use rustix::process::{Flock, FlockType, Resource, Rlimit, getrlimit, setrlimit};
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::num::NonZeroU64;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

mod direct;
mod lock;
mod mapped_file;
mod memory;
mod mode;
mod pages;
mod slice;

pub use memory::{Mapping, keep_little_freed_memory, release_freed_memory, resident_bytes};
pub use pages::{
    Buffer, Page, free_page_bytes, on_pages_wanted, prepare_pages, release_free_pages,
};
pub use slice::{TIME_SLICE_MIN, set_time_slice};

/// Pages of 1 MiB are mostly freed in 0.03 ms.
const FORGET_STEP_BYTES: u64 = 1 << 20;
/// Parts that one system call takes (`IOV_MAX`).
const WRITE_PARTS_MAX: usize = 1024;

/// The operating system's file system.
#[derive(Default)]
pub struct PosixFs {
    always_blocks: Arc<AtomicBool>,
    /// Locked directories.
    owned_dirs: Arc<lock::OwnedDirs>,
}

/// Makes writes beyond the file-size limit (`RLIMIT_FSIZE`) fail instead of killing the process.
pub fn ignore_file_size_signal() -> io::Result<()> {
    // SAFETY: ignoring a signal installs no handler.
    match unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) } {
        libc::SIG_ERR => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// Raises the process's soft limit on open descriptors to `wanted`, or to the hard limit if that is
/// lower, and returns the soft limit.
pub fn raise_descriptor_limit(wanted: u64) -> u64 {
    let limit = getrlimit(Resource::Nofile);
    let current = limit.current.unwrap_or(u64::MAX);
    let raised = limit.maximum.unwrap_or(u64::MAX).min(wanted);
    if raised <= current {
        return current;
    }
    match setrlimit(Resource::Nofile, Rlimit { current: Some(raised), ..limit }) {
        Ok(()) => raised,
        // The hard limit is above `fs.nr_open`, or a sandbox refuses the call.
        Err(_refused) => current,
    }
}

/// How often a thread has given its processor up.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct ThreadSwitches {
    /// To sleep: for the disk, a lock or anything else.
    pub sleep_count: u64,
    /// To another thread, while it had work to do.
    pub preempted_count: u64,
}

/// The switches of this thread.
pub fn thread_switches() -> ThreadSwitches {
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the call fills the structure, which is valid when zeroed. It fails only for other
    // arguments than these.
    let usage = unsafe {
        libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr());
        usage.assume_init()
    };
    ThreadSwitches { sleep_count: usage.ru_nvcsw as u64, preempted_count: usage.ru_nivcsw as u64 }
}

impl PosixFs {
    /// The file system of this process.
    pub fn new() -> PosixFs {
        PosixFs::default()
    }

    fn handle(&self, file: fs::File, direct: Option<DirectFile>) -> Arc<dyn File> {
        Arc::new(PosixFile { file, direct, always_blocks: Arc::clone(&self.always_blocks) })
    }
}

struct PosixFile {
    file: fs::File,
    /// For reads past the page cache.
    direct: Option<DirectFile>,
    /// The system does not support nonblocking reads.
    always_blocks: Arc<AtomicBool>,
}

impl File for PosixFile {
    fn read_exact_at(&self, buffer: &mut [u8], offset_bytes: u64) -> io::Result<()> {
        let _waiting = wait::begin(WaitKind::Io, "pread");
        if let Some(direct) = &self.direct
            && buffer.len() <= direct::READ_BYTES_MAX
            && direct.try_read_exact_at(buffer, offset_bytes)?
        {
            return Ok(());
        }
        self.file.read_exact_at(buffer, offset_bytes)
    }

    fn try_read_exact_at(&self, buffer: &mut [u8], offset_bytes: u64) -> io::Result<bool> {
        if self.direct.is_some() || self.always_blocks.load(Ordering::Relaxed) {
            return Ok(false);
        }
        match read_nonblocking(&self.file, buffer, offset_bytes) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
            Err(error) if is_unsupported(&error) => {
                self.always_blocks.store(true, Ordering::Relaxed);
                Ok(false)
            }
            // A short read ends at the page cache or at the end of the file. A blocking read tells
            // which.
            outcome => Ok(outcome? == buffer.len()),
        }
    }

    fn write_all_at(&self, bytes: &[u8], offset_bytes: u64) -> io::Result<()> {
        let _waiting = wait::begin(WaitKind::Io, "pwrite");
        self.file.write_all_at(bytes, offset_bytes)
    }

    fn write_parts_at(
        &self,
        mut parts: &mut [IoSlice<'_>],
        mut offset_bytes: u64,
    ) -> io::Result<()> {
        let _waiting = wait::begin(WaitKind::Io, "pwrite");
        while !parts.is_empty() {
            let count = parts.len().min(WRITE_PARTS_MAX);
            match retry_on_intr(|| rustix::io::pwritev(&self.file, &parts[..count], offset_bytes))?
            {
                0 => return Err(io::ErrorKind::WriteZero.into()),
                written_bytes => {
                    offset_bytes += written_bytes as u64;
                    IoSlice::advance_slices(&mut parts, written_bytes);
                }
            }
        }
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        let _waiting = wait::begin(WaitKind::Io, "fsync");
        self.file.sync_data()
    }

    fn begin_write_back(&self, offset_bytes: u64, len_bytes: u64) -> io::Result<()> {
        let _waiting = wait::begin(WaitKind::Io, "sync_file_range");
        let offset = libc::off64_t::try_from(offset_bytes).map_err(io::Error::other)?;
        let len = libc::off64_t::try_from(len_bytes).map_err(io::Error::other)?;
        let file = self.file.as_raw_fd();
        // SAFETY: the descriptor is open, and the call touches no memory of the process.
        match unsafe { libc::sync_file_range(file, offset, len, libc::SYNC_FILE_RANGE_WRITE) } {
            0 => Ok(()),
            _ => match io::Error::last_os_error() {
                error if is_unsupported(&error) => Ok(()),
                error => Err(error),
            },
        }
    }

    fn set_len(&self, len_bytes: u64) -> io::Result<()> {
        let _waiting = wait::begin(WaitKind::Io, "ftruncate");
        self.file.set_len(len_bytes)
    }

    fn allocate(&self, len_bytes: u64) -> io::Result<()> {
        if len_bytes == 0 {
            return Ok(());
        }
        let _waiting = wait::begin(WaitKind::Io, "fallocate");
        let len_bytes_before = self.len_bytes()?;
        let outcome = match fallocate(&self.file, len_bytes) {
            Err(error) if error.kind() == io::ErrorKind::Unsupported => {
                write_zeros_to(&self.file, len_bytes)
            }
            outcome => outcome,
        };
        if outcome.is_err() {
            // ext4 keeps the space that it could reserve, and a full disk would stay full.
            self.file.set_len(len_bytes_before)?;
        }
        outcome
    }

    fn map(&self, len_bytes: u64) -> Option<Box<dyn MappedFile>> {
        let _waiting = wait::begin(WaitKind::Io, "fallocate");
        let len_bytes_before = self.len_bytes().ok()?;
        let mapped =
            fallocate(&self.file, len_bytes).and_then(|()| mapped_file::map(&self.file, len_bytes));
        match mapped {
            Ok(mapped) => Some(Box::new(mapped)),
            Err(_unsupported_or_full) => {
                // What could not be given back is taken by writes to this file.
                let _kept = self.file.set_len(len_bytes_before);
                None
            }
        }
    }

    fn len_bytes(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }
}

impl Fs for PosixFs {
    fn create(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .mode(FILE_MODE)
            .open(path)?;
        Ok(self.handle(file, None))
    }

    fn open(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        Ok(self.handle(fs::File::open(path)?, None))
    }

    fn open_direct(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        Ok(self.handle(fs::File::open(path)?, Some(DirectFile::open(path)?)))
    }

    fn open_writable(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        Ok(self.handle(OpenOptions::new().read(true).write(true).open(path)?, None))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let _waiting = wait::begin(WaitKind::Io, "rename");
        fs::rename(from, to)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        let _waiting = wait::begin(WaitKind::Io, "unlink");
        fs::remove_file(path)
    }

    fn forget_cached(&self, path: &Path, after_step: &dyn Fn()) -> io::Result<()> {
        let file = fs::File::open(path)?;
        let len_bytes = file.metadata()?.len();
        for start_bytes in (0..len_bytes).step_by(FORGET_STEP_BYTES as usize) {
            let step_bytes = NonZeroU64::new(FORGET_STEP_BYTES);
            fadvise(&file, start_bytes, step_bytes, Advice::DontNeed)?;
            after_step();
        }
        Ok(())
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        fs::remove_dir(path)
    }

    fn remove_dir_all(&self, path: &Path) -> io::Result<()> {
        fs::remove_dir_all(path)
    }

    fn hard_link(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::hard_link(from, to)
    }

    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        DirBuilder::new().recursive(true).mode(DIR_MODE).create(path)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<DirEntry>> {
        let mut files = Vec::new();
        for entry in fs::read_dir(dir)? {
            let entry = entry?;
            let metadata = match entry.metadata() {
                Ok(metadata) => metadata,
                // Removed since the directory was read.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(error),
            };
            if let (true, Ok(name)) = (metadata.is_file(), entry.file_name().into_string()) {
                files.push(DirEntry { name, len_bytes: metadata.len() });
            }
        }
        files.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        Ok(files)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        let _waiting = wait::begin(WaitKind::Io, "fsync");
        match self.owned_dirs.get(dir)? {
            Some(owned) => owned.sync_all(),
            None => fs::File::open(dir)?.sync_all(),
        }
    }

    fn available_bytes(&self, path: &Path) -> io::Result<u64> {
        let stat = retry_on_intr(|| rustix::fs::statvfs(path))?;
        Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        path.try_exists()
    }

    fn canonical(&self, path: &Path) -> io::Result<PathBuf> {
        fs::canonicalize(path)
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn FileLock>> {
        lock::take(&self.owned_dirs, path)
    }
}

/// Reserves the first `len_bytes` of `file` and makes it at least that long.
fn fallocate(file: &fs::File, len_bytes: u64) -> io::Result<()> {
    /// Short enough to finish between two signals.
    const PIECE_BYTES_MIN: u64 = 64 << 10;

    if i64::try_from(len_bytes).is_err() {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    let mut done = 0;
    let mut piece = len_bytes;
    while done < len_bytes {
        piece = piece.min(len_bytes - done);
        match rustix::fs::fallocate(file, FallocateFlags::empty(), done, piece) {
            Ok(()) => done += piece,
            // tmpfs discards all of an interrupted piece. Under a profiler's steady signals a piece
            // of the same length might never succeed.
            Err(Errno::INTR) => piece = (piece / 2).max(PIECE_BYTES_MIN),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Reads what is in the page cache; `WouldBlock` if that is nothing.
fn read_nonblocking(file: &fs::File, buffer: &mut [u8], offset_bytes: u64) -> io::Result<usize> {
    let read = retry_on_intr(|| {
        let parts = &mut [IoSliceMut::new(buffer)];
        preadv2(file, parts, offset_bytes, ReadWriteFlags::NOWAIT)
    });
    read.map_err(io::Error::from)
}

/// Whether the kernel (`ENOSYS`) or the file system (`EOPNOTSUPP`, some `EINVAL`) has no
/// nonblocking reads.
fn is_unsupported(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::Unsupported | io::ErrorKind::InvalidInput)
}

/// Extends `file` to `len_bytes` by writing zeros.
fn write_zeros_to(file: &fs::File, len_bytes: u64) -> io::Result<()> {
    const ZEROS: &[u8] = &[0; 64 * 1024];

    let mut offset_bytes = file.metadata()?.len();
    while offset_bytes < len_bytes {
        let count =
            usize::try_from(len_bytes - offset_bytes).unwrap_or(usize::MAX).min(ZEROS.len());
        file.write_all_at(&ZEROS[..count], offset_bytes)?;
        offset_bytes += count as u64;
    }
    Ok(())
}

/// Bytes written to a TCP socket that its peer has not acknowledged.
pub fn unacknowledged_bytes(socket: BorrowedFd<'_>) -> io::Result<u64> {
    let mut bytes: libc::c_int = 0;
    // SAFETY: the descriptor is open for as long as it is borrowed, and the call writes one
    // integer.
    let status = unsafe { libc::ioctl(socket.as_raw_fd(), libc::TIOCOUTQ, &raw mut bytes) };
    if status != 0 {
        return Err(io::Error::last_os_error());
    }
    u64::try_from(bytes).map_err(io::Error::other)
}

/// The process that holds a record lock (`fcntl`) on the file `path`, as programs other than Kvant
/// take; `None` if there is none, or its process cannot be seen from here. The record locks that
/// this process has on the file end with the call, as with any that closes a descriptor of it.
pub fn record_lock_owner(path: &Path) -> io::Result<Option<u32>> {
    let file = fs::File::open(path)?;
    let held = rustix::process::fcntl_getlk(&file, &Flock::from(FlockType::WriteLock))?;
    let owner = held.and_then(|held| held.pid);
    Ok(owner.and_then(|pid| u32::try_from(pid.as_raw_nonzero().get()).ok()))
}

#[cfg(test)]
mod tests;
