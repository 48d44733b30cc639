//! Memory from the system, outside the allocator.

use std::io;
use std::mem::ManuallyDrop;
use std::ptr::NonNull;

/// Limits the freed memory that the C library keeps. It then maps each long buffer separately and
/// returns it to the system when freed. By default its threshold adapts to freed buffers, and it
/// keeps tens of MiB.
pub fn keep_little_freed_memory() {
    #[cfg(target_env = "gnu")]
    {
        /// Freed memory kept at the end of a heap.
        const KEPT_BYTES: libc::c_int = 2 << 20;
        /// Buffers of at least this length are mapped: longer than those of most ranges, shorter
        /// than the blocks of most long values.
        const MAPPED_BYTES_MIN: libc::c_int = 96 << 10;
        /// Half of the mappings that Linux allows a process.
        const MAPPED_COUNT_MAX: libc::c_int = 32 << 10;
        for (parameter, value) in [
            (libc::M_MMAP_THRESHOLD, MAPPED_BYTES_MIN),
            (libc::M_MMAP_MAX, MAPPED_COUNT_MAX),
            (libc::M_TRIM_THRESHOLD, KEPT_BYTES),
        ] {
            // SAFETY: the call changes only settings of the allocator.
            let is_set = unsafe { libc::mallopt(parameter, value) };
            debug_assert_eq!(is_set, 1, "the allocator accepts these values");
        }
    }
}

/// Returns the whole pages among the freed memory of all heaps of the C library to the system.
/// Locks one heap after the other.
pub fn release_freed_memory() {
    #[cfg(target_env = "gnu")]
    // SAFETY: the call changes no memory that is in use.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Resident memory of this process; `None` if the system does not tell.
pub fn resident_bytes() -> Option<u64> {
    let statm = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = statm.split_whitespace().nth(1)?.parse().ok()?;
    pages.checked_mul(page_bytes() as u64)
}

/// Zeroed memory mapped from the system and unmapped on drop.
#[derive(Debug)]
pub struct Mapping {
    start: NonNull<u8>,
    /// A multiple of the page size.
    bytes: usize,
}

// SAFETY: the mapping owns its memory and only hands out the address.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

/// The huge-page size of x86-64 and most other architectures.
const HUGE_PAGE_BYTES: usize = 2 << 20;

impl Mapping {
    /// Maps at least `bytes`, which must not be 0. Mappings of at least a huge page are aligned to
    /// one, and the system is advised to use huge pages.
    pub fn new(bytes: usize) -> io::Result<Mapping> {
        let bytes =
            bytes.checked_next_multiple_of(page_bytes()).ok_or(io::ErrorKind::OutOfMemory)?;
        if bytes < HUGE_PAGE_BYTES || cfg!(miri) {
            return map(bytes);
        }
        // Map too much, then unmap the parts before the first huge page and after the end.
        let wide_bytes = bytes.checked_add(HUGE_PAGE_BYTES).ok_or(io::ErrorKind::OutOfMemory)?;
        let wide = ManuallyDrop::new(map(wide_bytes)?);
        let skipped_bytes = wide.start.align_offset(HUGE_PAGE_BYTES);
        // SAFETY: all three parts are within the mapping, which is not shared yet, and are
        // page-aligned.
        let mapping = unsafe {
            let start = wide.start.add(skipped_bytes);
            unmap(wide.start, skipped_bytes);
            unmap(start.add(bytes), HUGE_PAGE_BYTES - skipped_bytes);
            Mapping { start, bytes }
        };
        // SAFETY: the range is mapped, and the advice changes neither its contents nor its
        // validity. The system may decline the advice, so the result does not matter.
        unsafe { libc::madvise(mapping.start.as_ptr().cast(), bytes, libc::MADV_HUGEPAGE) };
        Ok(mapping)
    }

    /// The start address.
    #[inline]
    pub fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// Has the system provide all of the memory, which keeps its contents.
    pub fn touch(&mut self) {
        // SAFETY: all of the mapping, which nothing else uses now.
        unsafe { provide(self.start, self.bytes) };
    }

    /// Fills all of the memory with zeros.
    pub fn zero(&mut self) {
        // SAFETY: all of the mapping, which nothing else uses now.
        unsafe { self.start.write_bytes(0, self.bytes) };
    }

    /// The length.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: mapped by `new` and no longer used.
        unsafe { unmap(self.start, self.bytes) };
    }
}

/// Has the system provide memory, which keeps its contents.
///
/// # Safety
/// The range must be whole pages of a mapping that nothing else uses now.
pub(super) unsafe fn provide(start: NonNull<u8>, bytes: usize) {
    for offset in (0..bytes).step_by(page_bytes()) {
        // SAFETY: within the range. The compiler must not drop the read and the write.
        unsafe {
            let byte = start.as_ptr().add(offset);
            byte.write_volatile(byte.read_volatile());
        }
    }
}

/// Has the system make no huge pages of memory from now on; those that there are stay.
///
/// # Safety
/// The range must be whole pages of a mapping.
pub(super) unsafe fn refuse_huge_pages(start: NonNull<u8>, bytes: usize) {
    // SAFETY: guaranteed by the caller; the advice changes neither contents nor validity. A system
    // without huge pages declines it, so the result does not matter.
    unsafe { libc::madvise(start.as_ptr().cast(), bytes, libc::MADV_NOHUGEPAGE) };
}

pub(super) fn page_bytes() -> usize {
    // Not rustix, which reads a part of the program's image that Valgrind does not map.
    // SAFETY: the call reads a constant of the system.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(bytes).expect("the page size is known")
}

/// Maps `bytes`, a multiple of the page size.
fn map(bytes: usize) -> io::Result<Mapping> {
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: a new private mapping at an address that the kernel chooses.
    let start = unsafe { libc::mmap(std::ptr::null_mut(), bytes, protection, flags, -1, 0) };
    if start == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
    Ok(Mapping { start, bytes })
}

/// Unmaps memory.
///
/// # Safety
/// The range must be unused whole pages of a mapping.
unsafe fn unmap(start: NonNull<u8>, bytes: usize) {
    if bytes > 0 {
        // SAFETY: guaranteed by the caller.
        let status = unsafe { libc::munmap(start.as_ptr().cast(), bytes) };
        // The kernel may lack the memory to split a mapping; the range then stays mapped.
        debug_assert_eq!(status, 0, "unmapping: {}", io::Error::last_os_error());
    }
}

#[cfg(test)]
mod tests;
