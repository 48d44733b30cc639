//! Memory that resolving symbols leaves behind.
//!
//! Threads: any.

/// Returns freed memory that the allocator retains to the system. glibc retains it per arena, and a
/// thread that resolves names may use another arena each time: without this call a server that is
/// profiled repeatedly would hold tens of megabytes in each.
///
/// Other threads that allocate may wait milliseconds while their arena is trimmed.
pub fn release_memory() {
    #[cfg(target_env = "gnu")]
    {
        let keep_bytes = 0;
        // SAFETY: locks the arenas that it trims; may be called at any time outside of signal
        // handlers. The result says whether memory was returned.
        unsafe { libc::malloc_trim(keep_bytes) };
    }
}
