//! The time slice of a thread, which decides how soon it runs after it has been woken.
//!
//! Linux gives threads that compete for a CPU shares by their niceness. In which order they get
//! them follows from their slices: a woken thread that has had less than its share interrupts one
//! with a longer slice at once, and one with an equal slice at the next tick, up to 4 ms later.
//! A slice can be changed without privileges; a higher niceness and `SCHED_IDLE` cannot be undone
//! without.
//!
//! Threads: each sets its own; threads that it starts inherit it.

use std::io;
use std::time::Duration;

/// The shortest slice of Linux.
pub const TIME_SLICE_MIN: Duration = Duration::from_micros(100);

/// Gives the calling thread a time slice, which Linux limits to 0.1 to 100 ms. Kernels before 6.12
/// accept and ignore it.
pub fn set_time_slice(slice: Duration) -> io::Result<()> {
    let mut attributes = attributes()?;
    let is_fair = [libc::SCHED_OTHER, libc::SCHED_BATCH]
        .into_iter()
        .any(|policy| policy.cast_unsigned() == attributes.sched_policy);
    if !is_fair {
        // Chosen by an operator; a real-time policy has no use for a slice.
        return Ok(());
    }
    attributes.sched_runtime = u64::try_from(slice.as_nanos()).unwrap_or(u64::MAX);
    // SAFETY: the system reads the structure, whose length is its first field. 0: this thread.
    let status = unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) };
    if status == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// The scheduling attributes of the calling thread.
fn attributes() -> io::Result<libc::sched_attr> {
    let bytes = u32::try_from(size_of::<libc::sched_attr>()).expect("a small structure");
    let mut attributes = libc::sched_attr {
        size: bytes,
        sched_policy: 0,
        sched_flags: 0,
        sched_nice: 0,
        sched_priority: 0,
        sched_runtime: 0,
        sched_deadline: 0,
        sched_period: 0,
    };
    // SAFETY: the system writes at most `bytes` into the structure. 0: this thread.
    let status =
        unsafe { libc::syscall(libc::SYS_sched_getattr, 0, &raw mut attributes, bytes, 0) };
    if status == 0 { Ok(attributes) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests;
