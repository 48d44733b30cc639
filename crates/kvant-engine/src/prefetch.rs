//! A hint to the processor about memory that is read soon, so that cache misses overlap.
//!
//! Threads: any.

/// Has the cache line at `address` fetched while the program goes on. Any address will do.
#[inline]
pub(crate) fn prefetch<T>(address: *const T) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: a hint that reads nothing and may name any address.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(address.cast());
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _unused = address;
}
