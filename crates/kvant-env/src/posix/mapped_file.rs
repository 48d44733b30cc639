//! The start of a file in memory, for short records: a copy costs a tenth of a system call.
//!
//! The system provides a page when it is first written. If it cannot, because of an error of the
//! disk or because somebody has shortened the file, it raises `SIGBUS`. The handler then puts other
//! memory in the place of the page, so that the copy ends, and notes the loss, which
//! [`MappedFile::write`] returns as an error.
//!
//! Invariants:
//! 1. a slot names the addresses of a mapping from before its first write to after its last;
//! 2. a mapping that has lost a page never writes successfully again;
//! 3. at most [`HELD_BYTES_MAX`] of a mapping are resident by it, since written pages need it no
//!    more: they belong to the page cache.
//!
//! Threads: one writer for each mapping. The handler runs in the thread that wrote.

use super::memory::page_bytes;
use crate::fs::MappedFile;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, munmap};
use std::fs::File;
use std::io;
use std::ptr::NonNull;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering, compiler_fence};

/// Written memory that a mapping holds before it releases the older half.
const HELD_BYTES_MAX: usize = 2 << 20;
/// Mappings at a time; there are two for each database. Others are refused.
const SLOT_COUNT: usize = 64;

static SLOTS: [Slot; SLOT_COUNT] = [const { Slot::new() }; SLOT_COUNT];
/// What handled the signal before; `None` if no handler could be installed.
static PREVIOUS: OnceLock<Option<libc::sigaction>> = OnceLock::new();
/// For the handler.
static PAGE_BYTES: AtomicUsize = AtomicUsize::new(0);

/// The addresses of a mapping, for the handler.
struct Slot {
    /// 0: free.
    start: AtomicUsize,
    end: AtomicUsize,
    has_lost_page: AtomicBool,
}

impl Slot {
    /// Between being free and naming a mapping. No address is above it.
    const TAKEN: usize = usize::MAX;

    const fn new() -> Slot {
        Slot {
            start: AtomicUsize::new(0),
            end: AtomicUsize::new(0),
            has_lost_page: AtomicBool::new(false),
        }
    }

    /// Has a free slot name these addresses.
    fn claim(start: usize, bytes: usize) -> Option<&'static Slot> {
        let slot = SLOTS.iter().find(|slot| {
            let (free, taken) = (0, Slot::TAKEN);
            slot.start.compare_exchange(free, taken, Ordering::Acquire, Ordering::Relaxed).is_ok()
        })?;
        slot.has_lost_page.store(false, Ordering::Relaxed);
        slot.end.store(start + bytes, Ordering::Relaxed);
        slot.start.store(start, Ordering::Release);
        Some(slot)
    }

    fn contains(&self, address: usize) -> bool {
        let start = self.start.load(Ordering::Acquire);
        start != 0 && start <= address && address < self.end.load(Ordering::Relaxed)
    }
}

struct PosixMappedFile {
    start: NonNull<u8>,
    bytes: usize,
    /// Memory before this is released.
    released_bytes: usize,
    slot: &'static Slot,
}

// SAFETY: the mapping owns its memory, which one writer at a time changes.
unsafe impl Send for PosixMappedFile {}

/// Maps the first `len_bytes` of `file`, which has them.
pub(super) fn map(file: &File, len_bytes: u64) -> io::Result<impl MappedFile + use<>> {
    let bytes = usize::try_from(len_bytes).map_err(io::Error::other)?;
    if PREVIOUS.get_or_init(install_handler).is_none() {
        return Err(io::ErrorKind::Unsupported.into());
    }
    let protection = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: a new mapping at an address that the kernel chooses. What others do to the file
    // changes bytes that nobody reads through it.
    let start =
        unsafe { mmap(std::ptr::null_mut(), bytes, protection, MapFlags::SHARED, file, 0)? };
    let slot = Slot::claim(start as usize, bytes);
    let (Some(start), Some(slot)) = (NonNull::new(start.cast()), slot) else {
        // SAFETY: the mapping is not used.
        unsafe { munmap(start, bytes)? };
        return Err(io::ErrorKind::OutOfMemory.into());
    };
    Ok(PosixMappedFile { start, bytes, released_bytes: 0, slot })
}

impl MappedFile for PosixMappedFile {
    fn len_bytes(&self) -> u64 {
        self.bytes as u64
    }

    fn write(&mut self, bytes: &[u8], offset_bytes: u64) -> io::Result<()> {
        let offset = usize::try_from(offset_bytes).map_err(io::Error::other)?;
        let end = offset.checked_add(bytes.len()).filter(|&end| end <= self.bytes);
        let end = end.ok_or(io::ErrorKind::InvalidInput)?;
        // SAFETY: the range is within the mapping, to which nobody has a reference.
        unsafe {
            self.start.as_ptr().add(offset).copy_from_nonoverlapping(bytes.as_ptr(), bytes.len())
        };
        // The handler runs within the copy.
        compiler_fence(Ordering::SeqCst);
        if self.slot.has_lost_page.load(Ordering::Relaxed) {
            return Err(io::Error::other("the system could not provide a page of the mapped file"));
        }
        if end - self.released_bytes >= HELD_BYTES_MAX {
            self.release(HELD_BYTES_MAX / 2);
        }
        Ok(())
    }
}

impl PosixMappedFile {
    /// Gives up the oldest `bytes` of what the mapping holds; the page cache keeps them.
    fn release(&mut self, bytes: usize) {
        // SAFETY: within the mapping. Pages of a shared mapping keep their contents.
        let released = unsafe {
            let start = self.start.as_ptr().add(self.released_bytes);
            madvise(start.cast(), bytes, Advice::LinuxDontNeed)
        };
        debug_assert!(released.is_ok(), "releasing: {released:?}");
        self.released_bytes += bytes;
    }
}

impl Drop for PosixMappedFile {
    fn drop(&mut self) {
        self.slot.start.store(0, Ordering::Release);
        // SAFETY: mapped by `map` and no longer used.
        let unmapped = unsafe { munmap(self.start.as_ptr().cast(), self.bytes) };
        debug_assert!(unmapped.is_ok(), "unmapping: {unmapped:?}");
    }
}

/// Returns what handled the signal before.
fn install_handler() -> Option<libc::sigaction> {
    PAGE_BYTES.store(page_bytes(), Ordering::Relaxed);
    // SAFETY: all zeros is a valid `sigaction`: no flags, an empty mask. The handler is
    // async-signal-safe.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        let mut previous: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = on_bus_error as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        let status = libc::sigaction(libc::SIGBUS, &raw const action, &raw mut previous);
        (status == 0).then_some(previous)
    }
}

/// Replaces a page of a mapping that the system could not provide. Other faults go to the handler
/// before this one.
extern "C" fn on_bus_error(
    signal: libc::c_int,
    info: *mut libc::siginfo_t,
    context: *mut libc::c_void,
) {
    // SAFETY: the kernel passes valid information.
    let address = unsafe { (*info).si_addr() } as usize;
    if let Some(slot) = SLOTS.iter().find(|slot| slot.contains(address))
        && has_replaced_page(address)
    {
        slot.has_lost_page.store(true, Ordering::Relaxed);
        return;
    }
    match PREVIOUS.get().copied().flatten() {
        Some(previous) if previous.sa_sigaction > libc::SIG_IGN => {
            // SAFETY: the address of a handler with these flags.
            unsafe {
                let handler = previous.sa_sigaction as *const ();
                if previous.sa_flags & libc::SA_SIGINFO == 0 {
                    let handler: extern "C" fn(libc::c_int) = std::mem::transmute(handler);
                    handler(signal);
                } else {
                    let handler: extern "C" fn(
                        libc::c_int,
                        *mut libc::siginfo_t,
                        *mut libc::c_void,
                    ) = std::mem::transmute(handler);
                    handler(signal, info, context);
                }
            }
        }
        // The fault repeats and ends the process.
        // SAFETY: restores the default.
        _ => unsafe {
            libc::signal(libc::SIGBUS, libc::SIG_DFL);
        },
    }
}

fn has_replaced_page(address: usize) -> bool {
    let page_bytes = PAGE_BYTES.load(Ordering::Relaxed);
    let page = (address & !(page_bytes - 1)) as *mut libc::c_void;
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED;
    // SAFETY: a page of a mapping of this module, which has no contents. The interrupted code keeps
    // its error number.
    unsafe {
        let error = *libc::__errno_location();
        let mapped = libc::mmap(page, page_bytes, protection, flags, -1, 0);
        *libc::__errno_location() = error;
        mapped != libc::MAP_FAILED
    }
}

#[cfg(test)]
mod tests;
