//! The clocks for timestamps and weights of samples.
//!
//! They are not `kvant_env::Clock`, as signal handlers read them and some belong to other threads.
//! A recording converts between the two (see `session`).
//!
//! Threads: any, also in signal handlers.

use std::sync::atomic::{AtomicU64, Ordering};

/// Nanoseconds of `CLOCK_MONOTONIC`: the time of observations.
#[inline]
pub fn monotonic_ns() -> u64 {
    read_ns(libc::CLOCK_MONOTONIC).unwrap_or(0)
}

#[inline]
pub(super) fn own_cpu_ns() -> u64 {
    read_ns(libc::CLOCK_THREAD_CPUTIME_ID).unwrap_or(0)
}

/// Raises `last_ns` to `now_ns`; returns the difference, 0 if it was later.
pub(super) fn advance(last_ns: &AtomicU64, now_ns: u64) -> u64 {
    now_ns.saturating_sub(last_ns.fetch_max(now_ns, Ordering::Relaxed))
}

/// The smallest difference between two consecutive readings of [`own_cpu_ns`].
pub(super) fn own_cpu_clock_cost_ns() -> u64 {
    const READINGS: usize = 32;
    let cost = |_| {
        let before_ns = own_cpu_ns();
        own_cpu_ns().saturating_sub(before_ns)
    };
    (0..READINGS).map(cost).min().unwrap_or(0)
}

/// CPU time of a thread of this process; `None` if it has ended.
pub(super) fn cpu_ns_of(thread_id: u32) -> Option<u64> {
    read_ns(cpu_clock_of(thread_id))
}

pub(super) fn process_cpu_ns() -> u64 {
    read_ns(libc::CLOCK_PROCESS_CPUTIME_ID).unwrap_or(0)
}

/// The kernel's clock id for the CPU time of a thread: the inverted thread id above three bits, for
/// the scheduler's clock (2) of one thread (4).
pub(super) fn cpu_clock_of(thread_id: u32) -> libc::clockid_t {
    const SCHEDULER: libc::clockid_t = 2;
    const ONE_THREAD: libc::clockid_t = 4;
    (!thread_id.cast_signed() << 3) | ONE_THREAD | SCHEDULER
}

#[inline]
fn read_ns(clock: libc::clockid_t) -> Option<u64> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call writes one `timespec`.
    let status = unsafe { libc::clock_gettime(clock, &raw mut time) };
    (status == 0)
        .then(|| time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_nsec.cast_unsigned())
}

#[cfg(test)]
mod tests;
