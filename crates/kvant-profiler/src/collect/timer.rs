//! A timer on a thread's CPU clock: the engine that every Linux has.
//!
//! The kernel looks at such timers in its tick, so that they are as fine as that (4 ms at 250 Hz), and shows no kernel frames.
//!
//! Threads: the drain creates and deletes; signals go to the thread that is sampled.

use super::handler;
use super::lane::Lane;
use std::ffi::c_int;
use std::{io, mem, ptr};

/// A running timer. Dropping it deletes it.
pub(super) struct Timer {
    id: c_int,
}

impl Timer {
    /// Lets the kernel send a signal to the thread that owns `lane` after each `period_ns` of its CPU time.
    ///
    /// # Errors
    /// When the thread has ended, or the system refuses.
    pub(super) fn start(lane: &'static Lane, period_ns: u64) -> io::Result<Timer> {
        let thread_id = lane.owner();
        // SAFETY: all zeros is a valid `sigevent`.
        let mut event: libc::sigevent = unsafe { mem::zeroed() };
        event.sigev_notify = libc::SIGEV_THREAD_ID;
        event.sigev_signo = handler::SIGNAL;
        event.sigev_notify_thread_id = thread_id.cast_signed();
        event.sigev_value.sival_ptr = ptr::from_ref(lane).cast_mut().cast();
        let mut id: c_int = 0;
        let clock = super::clock::cpu_clock_of(thread_id);
        // The system calls themselves: C libraries wrap the kernel's number of a timer in ways of their own.
        // SAFETY: `event` has the kernel's layout, and `id` room for the number of the timer.
        let status = unsafe { libc::syscall(libc::SYS_timer_create, clock, &raw mut event, &raw mut id) };
        if status != 0 {
            return Err(io::Error::last_os_error());
        }
        let timer = Timer { id };
        let period = libc::timespec {
            tv_sec: (period_ns / 1_000_000_000) as libc::time_t,
            tv_nsec: (period_ns % 1_000_000_000) as libc::c_long,
        };
        let times = libc::itimerspec {
            it_interval: period,
            it_value: period,
        };
        let no_flags: c_int = 0;
        let no_old_times = ptr::null_mut::<libc::itimerspec>();
        // SAFETY: the timer was just created; `times` has the kernel's layout on 64-bit systems.
        let status = unsafe {
            libc::syscall(
                libc::SYS_timer_settime,
                id,
                no_flags,
                &raw const times,
                no_old_times,
            )
        };
        if status != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(timer)
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        // SAFETY: the timer is ours. The call fails only for timers that are not there.
        let status = unsafe { libc::syscall(libc::SYS_timer_delete, self.id) };
        debug_assert_eq!(status, 0, "timer {} is not there", self.id);
    }
}

#[cfg(test)]
mod tests;
