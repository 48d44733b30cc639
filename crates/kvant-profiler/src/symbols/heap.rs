//! What reading debug information leaves behind.
//!
//! Threads: any.

/// Gives the system back what the allocator keeps of freed memory. glibc keeps it for each of its
/// arenas, of which a thread that finds names may have another one each time: a server that is
/// profiled again and again would hold tens of megabytes in each of them.
///
/// Other threads that allocate wait while their arena is looked through: milliseconds.
pub fn give_back() {
    #[cfg(target_env = "gnu")]
    {
        let keep_bytes = 0;
        // SAFETY: locks what it looks through; may be called at any time outside of signal
        // handlers. Its answer is whether there was anything.
        unsafe { libc::malloc_trim(keep_bytes) };
    }
}
