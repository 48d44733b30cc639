//! The operating system's files and directories.
//!
//! Invariants:
//! 1. No call is retried after a failed sync, and no error is swallowed: rule 3 of [`crate::fs`] is
//!    the caller's to keep.
//! 2. A lock belongs to an open file, not to the process: a second holder in the same process is
//!    refused like any other ([`lock`]).
//! 3. Whether the system can read without waiting is found out by trying, and a refusal is
//!    remembered: files of one [`PosixFs`] are taken to lie on one device.
//! 4. What is created here, its owner alone may read, whatever the umask.
//!
//! Calls that may wait for the disk tell a profiler how long they took.
//!
//! Threads: everything may be called from any thread; files are read and written at explicit
//! offsets and have no cursor.

use crate::fs::{DirEntry, File, FileLock, Fs};
use kvant_base::wait::{self, WaitKind};
use std::ffi::CString;
use std::fs::{self, DirBuilder, OpenOptions};
use std::io;
use std::mem::{ManuallyDrop, MaybeUninit};
use std::os::fd::BorrowedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

mod lock;

/// Access to a new file: the owner reads and writes.
const FILE_MODE: u32 = 0o600;
/// Access to a new directory: the owner lists, searches and changes it.
const DIR_MODE: u32 = 0o700;

/// The operating system's file system.
#[derive(Default)]
pub struct PosixFs {
    always_waits: Arc<AtomicBool>,
    /// Directories whose locks are held.
    owned_dirs: Arc<lock::OwnedDirs>,
}

/// A write beyond the limit on file sizes (`RLIMIT_FSIZE`) fails from now on; before, it ended the
/// process without a word.
pub fn ignore_file_size_signal() -> io::Result<()> {
    // SAFETY: to ignore a signal installs no handler, so that no code of ours runs in one.
    match unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) } {
        libc::SIG_ERR => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

impl PosixFs {
    /// The file system of this process.
    pub fn new() -> PosixFs {
        PosixFs::default()
    }

    fn handle(&self, file: fs::File) -> Arc<dyn File> {
        Arc::new(PosixFile { file, always_waits: Arc::clone(&self.always_waits) })
    }
}

struct PosixFile {
    file: fs::File,
    /// The system has refused to read without waiting.
    always_waits: Arc<AtomicBool>,
}

impl File for PosixFile {
    fn read_exact_at(&self, buffer: &mut [u8], offset_bytes: u64) -> io::Result<()> {
        let _waiting = wait::begin(WaitKind::Io, "pread");
        self.file.read_exact_at(buffer, offset_bytes)
    }

    fn try_read_exact_at(&self, buffer: &mut [u8], offset_bytes: u64) -> io::Result<bool> {
        if self.always_waits.load(Ordering::Relaxed) {
            return Ok(false);
        }
        match read_without_waiting(&self.file, buffer, offset_bytes) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
            Err(error) if is_refusal(&error) => {
                self.always_waits.store(true, Ordering::Relaxed);
                Ok(false)
            }
            // A part is what was in memory, or the end of the file: reading all of it, which may
            // wait, will tell.
            outcome => Ok(outcome? == buffer.len()),
        }
    }

    fn write_all_at(&self, bytes: &[u8], offset_bytes: u64) -> io::Result<()> {
        let _waiting = wait::begin(WaitKind::Io, "pwrite");
        self.file.write_all_at(bytes, offset_bytes)
    }

    fn sync_data(&self) -> io::Result<()> {
        let _waiting = wait::begin(WaitKind::Io, "fsync");
        self.file.sync_data()
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
            // ext4 keeps what it could reserve before space ended, and a full disk would stay full.
            self.file.set_len(len_bytes_before)?;
        }
        outcome
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
        Ok(self.handle(file))
    }

    fn open(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        Ok(self.handle(fs::File::open(path)?))
    }

    fn open_writable(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        Ok(self.handle(OpenOptions::new().read(true).write(true).open(path)?))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let _waiting = wait::begin(WaitKind::Io, "rename");
        fs::rename(from, to)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        let _waiting = wait::begin(WaitKind::Io, "unlink");
        fs::remove_file(path)
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
                // Removed by another thread since the directory was read.
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
        statvfs_available_bytes(path)
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
#[cfg(any(target_os = "linux", target_os = "android"))]
fn fallocate(file: &fs::File, len_bytes: u64) -> io::Result<()> {
    use std::os::fd::AsRawFd;

    /// What is reserved faster than any signal comes.
    const PIECE_BYTES_MIN: libc::off64_t = 64 << 10;

    let len = libc::off64_t::try_from(len_bytes)
        .map_err(|_| io::Error::from(io::ErrorKind::FileTooLarge))?;
    let mut done = 0;
    let mut piece = len;
    while done < len {
        piece = piece.min(len - done);
        // SAFETY: the descriptor is open for as long as `file` is borrowed, and the call touches no
        // memory of ours.
        let status = unsafe { libc::fallocate64(file.as_raw_fd(), 0, done, piece) };
        if status == 0 {
            done += piece;
            continue;
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
        // tmpfs gives back all of an interrupted piece: where signals come steadily, as a
        // profiler's do, the same one again might never end.
        piece = (piece / 2).max(PIECE_BYTES_MIN);
    }
    Ok(())
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn fallocate(_file: &fs::File, _len_bytes: u64) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Reads what is in memory already; `WouldBlock` when that is nothing.
#[cfg(target_os = "linux")]
fn read_without_waiting(
    file: &fs::File,
    buffer: &mut [u8],
    offset_bytes: u64,
) -> io::Result<usize> {
    use rustix::io::{IoSliceMut, ReadWriteFlags, preadv2, retry_on_intr};

    let read = retry_on_intr(|| {
        let parts = &mut [IoSliceMut::new(buffer)];
        preadv2(file, parts, offset_bytes, ReadWriteFlags::NOWAIT)
    });
    read.map_err(io::Error::from)
}

#[cfg(not(target_os = "linux"))]
fn read_without_waiting(
    _file: &fs::File,
    _buffer: &mut [u8],
    _offset_bytes: u64,
) -> io::Result<usize> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Whether the kernel (`ENOSYS`) or the file system (`EOPNOTSUPP`, some `EINVAL`) cannot read
/// without waiting.
fn is_refusal(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::Unsupported | io::ErrorKind::InvalidInput)
}

/// Writes zeros from the end of `file` until it is `len_bytes` long.
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

/// Bytes that an ordinary process may still write to the file system of `path`.
fn statvfs_available_bytes(path: &Path) -> io::Result<u64> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    let mut stat = MaybeUninit::<libc::statvfs>::uninit();
    loop {
        // SAFETY: `path` ends with a zero byte, and `stat` has room for what the call writes.
        let status = unsafe { libc::statvfs(path.as_ptr(), stat.as_mut_ptr()) };
        if status == 0 {
            break;
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
    // SAFETY: the call succeeded, so it filled `stat`.
    let stat = unsafe { stat.assume_init() };
    let available = u128::from(stat.f_bavail) * u128::from(stat.f_frsize);
    Ok(u64::try_from(available).unwrap_or(u64::MAX))
}

/// Bytes written to a TCP socket that its peer has not acknowledged yet.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub fn unacknowledged_bytes(socket: BorrowedFd<'_>) -> io::Result<u64> {
    use std::os::fd::AsRawFd;

    let mut bytes: libc::c_int = 0;
    // SAFETY: the descriptor is open for as long as it is borrowed, and the call writes one
    // integer.
    let status = unsafe { libc::ioctl(socket.as_raw_fd(), libc::TIOCOUTQ, &raw mut bytes) };
    if status != 0 {
        return Err(io::Error::last_os_error());
    }
    u64::try_from(bytes).map_err(io::Error::other)
}

/// As on Linux, where the system can tell.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub fn unacknowledged_bytes(_socket: BorrowedFd<'_>) -> io::Result<u64> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Has the allocator map long buffers one by one, so that each goes back to the system when it is
/// freed, and keep little of the rest. By itself it learns to keep tens of MiB of whatever length
/// was freed last.
pub fn keep_little_freed_memory() {
    #[cfg(target_env = "gnu")]
    {
        /// Freed memory at the end of a heap that it may keep.
        const KEPT_BYTES: libc::c_int = 2 << 20;
        /// Buffers from this length on are mapped: longer than those of most ranges, shorter than
        /// the blocks of most long values,
        const MAPPED_BYTES_MIN: libc::c_int = 96 << 10;
        /// as long as there are not more than half of the mappings that Linux allows a process.
        const MAPPED_COUNT_MAX: libc::c_int = 32 << 10;
        for (parameter, value) in [
            (libc::M_MMAP_THRESHOLD, MAPPED_BYTES_MIN),
            (libc::M_MMAP_MAX, MAPPED_COUNT_MAX),
            (libc::M_TRIM_THRESHOLD, KEPT_BYTES),
        ] {
            // SAFETY: the call touches no memory of ours.
            let is_set = unsafe { libc::mallopt(parameter, value) };
            debug_assert_eq!(is_set, 1, "the allocator takes these values");
        }
    }
}

/// Zeroed memory that comes from the system and goes back to it, unlike the allocator's.
#[derive(Debug)]
pub struct Mapping {
    start: NonNull<u8>,
    /// A multiple of the page's size.
    bytes: usize,
}

// SAFETY: the memory belongs to the mapping, which only hands out its address.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

/// A huge page of x86-64 and most others.
const HUGE_PAGE_BYTES: usize = 2 << 20;

impl Mapping {
    /// At least `bytes`, which must not be 0. From the length of a huge page on it starts at one,
    /// and the system is asked to use huge pages, which it may decline.
    pub fn new(bytes: usize) -> io::Result<Mapping> {
        let bytes =
            bytes.checked_next_multiple_of(page_bytes()).ok_or(io::ErrorKind::OutOfMemory)?;
        if bytes < HUGE_PAGE_BYTES || cfg!(miri) {
            return map(bytes);
        }
        // More than is wanted: what lies before the first huge page, and what is over at the end,
        // is given back.
        let wide_bytes = bytes.checked_add(HUGE_PAGE_BYTES).ok_or(io::ErrorKind::OutOfMemory)?;
        let wide = ManuallyDrop::new(map(wide_bytes)?);
        let skipped_bytes = wide.start.align_offset(HUGE_PAGE_BYTES);
        // SAFETY: all three parts lie within the mapping, which is not shared yet, and begin and
        // end with a page.
        let mapping = unsafe {
            let start = wide.start.add(skipped_bytes);
            unmap(wide.start, skipped_bytes);
            unmap(start.add(bytes), HUGE_PAGE_BYTES - skipped_bytes);
            Mapping { start, bytes }
        };
        // SAFETY: the range is mapped, and the advice changes neither its contents nor its
        // validity. An error means that the system does not do it, and then there is nothing to do
        // about it.
        unsafe { libc::madvise(mapping.start.as_ptr().cast(), bytes, libc::MADV_HUGEPAGE) };
        Ok(mapping)
    }

    /// Where it starts.
    #[inline]
    pub fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// Its length.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: mapped by `new`, and unused from here on.
        unsafe { unmap(self.start, self.bytes) };
    }
}

fn page_bytes() -> usize {
    rustix::param::page_size()
}

/// Maps `bytes`, a multiple of the page's size.
fn map(bytes: usize) -> io::Result<Mapping> {
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: a new private mapping, anywhere.
    let start = unsafe { libc::mmap(std::ptr::null_mut(), bytes, protection, flags, -1, 0) };
    if start == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
    Ok(Mapping { start, bytes })
}

/// Gives memory back.
///
/// # Safety
/// Unused whole pages of a mapping.
unsafe fn unmap(start: NonNull<u8>, bytes: usize) {
    if bytes > 0 {
        // SAFETY: the caller's promise.
        let status = unsafe { libc::munmap(start.as_ptr().cast(), bytes) };
        // For want of memory of its own the system may leave it mapped.
        debug_assert_eq!(status, 0, "unmapping: {}", io::Error::last_os_error());
    }
}

#[cfg(test)]
mod tests;
