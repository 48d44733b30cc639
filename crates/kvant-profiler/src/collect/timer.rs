//! A timer that interrupts a thread at random moments: the engine that works on every Linux, at the
//! lowest cost.
//!
//! The moments are on the monotonic clock, with gaps of half to one and a half times the mean, so
//! that no activity of the thread is in step with them; they continue whether it runs or not.
//! (Exponential gaps would be no better for that, and make samples of very different weights.
//! Timers on a thread's CPU clock are checked at the kernel's clock tick: of a load of 30,000
//! requests a second they see the same point of each 120th. Perf events have no such step, but the
//! kernel stops and starts them at every context switch: docs/decisions/0009.)
//!
//! Only a running thread is sampled:
//! - A thread that is ready but has no processor gets the signal late and is not sampled, as far as
//!   that can be told from a long system call ([`Passed::was_running`]).
//! - A thread that waits in a system call is woken by the signal; its registers show that
//!   ([`Registers::is_call_interrupted`]).
//! - During an announced wait the timer rests ([`thread_waits::rest_if_waiting`]), and the wait's
//!   CPU time is measured there.
//!
//! Each sample stands for the CPU time of the thread since its previous sample, less that of waits.
//! The sum is the thread's CPU time up to its last sample, however seldom it was found running.
//! Gaps grow while a thread sleeps unannounced and has hardly run lately, so that few sleeping
//! threads are woken.
//!
//! Time in the kernel counts for the function that called it: the signal is delivered on return.
//!
//! Threads: the drain creates and deletes; the signal handler of the sampled thread sets the timer
//! again.

use super::arch::Registers;
use super::lane::{Lane, SIGNAL};
use super::pace::{NO_TIMER, Pace};
use super::ring::Header;
use super::{chance, clock, thread_waits};
use std::ffi::c_int;
use std::sync::atomic::Ordering;
use std::{io, mem, ptr};

/// A thread that lately ran for at least this share of the time is sampled at the full rate.
const FULL_RATE_SHARE: f64 = 0.25;
/// Gaps of threads that sleep unannounced grow up to this factor and this length: at the default
/// rate they are woken less than twice a second.
const SLEEPER_GAP_FACTOR_MAX: f64 = 64.0;
const SLEEPER_GAP_NS_MAX: f64 = 650_000_000.0;
/// After this many gaps the last moment does not predict the next.
const GAPS_MAX: usize = 8;
/// A thread that was found running has not only waited.
const WAIT_SHARE_MAX: f64 = 0.95;
/// A thread that runs outside of the kernel gets its signal within this time.
const LATE_NS_MIN: u64 = 50_000;
/// A delay that exceeds another time by less than this may be as long: clocks are read one after
/// the other.
const UNEXPLAINED_NS_MIN: u64 = 10_000;

/// The thread has stopped waiting: restarts the timer that rested.
pub(super) fn resume(pace: &Pace) {
    let now_mono_ns = clock::monotonic_ns();
    Passed::measure(pace, now_mono_ns, clock::own_cpu_ns());
    // The full rate, however long it has waited: it runs now, and announces its next wait.
    set_next(pace, now_mono_ns, pace.mean_ns(), |_| ());
}

/// How a thread has spent some time.
#[derive(Clone, Copy, Debug)]
struct Passed {
    wall_ns: u64,
    cpu_ns: u64,
    lately_cpu_ns: u64,
    /// Since then, neither on a processor nor in an announced wait.
    lately_off_ns: u64,
    /// Whether that was at the end of its last wait, so that all this is one burst of work.
    is_since_wait: bool,
}

impl Passed {
    /// How the calling thread has spent the time since the last call.
    #[inline]
    fn measure(pace: &Pace, now_mono_ns: u64, now_cpu_ns: u64) -> Passed {
        let last_mono_ns = pace.last_mono_ns.swap(now_mono_ns, Ordering::Relaxed);
        let last_cpu_ns = pace.last_cpu_ns.swap(now_cpu_ns, Ordering::Relaxed);
        // The latest reading says most about whether the thread has a processor.
        let read = thread_waits::last_read_ns();
        let is_since_wait = read.0 > last_mono_ns && read.0 == thread_waits::last_end_mono_ns();
        let (read_mono_ns, read_cpu_ns) =
            if read.0 > last_mono_ns { read } else { (last_mono_ns, last_cpu_ns) };
        let lately_cpu_ns = now_cpu_ns.saturating_sub(read_cpu_ns);
        let known_ns = lately_cpu_ns + thread_waits::take_waited_ns();
        Passed {
            wall_ns: now_mono_ns.saturating_sub(last_mono_ns),
            cpu_ns: now_cpu_ns.saturating_sub(last_cpu_ns),
            lately_cpu_ns,
            lately_off_ns: now_mono_ns.saturating_sub(read_mono_ns).saturating_sub(known_ns),
            is_since_wait,
        }
    }

    /// Whether the thread is taken to have run when its timer fired, `late_ns` before the signal.
    ///
    /// A thread outside of the kernel gets the signal at once unless it has no processor (or has a
    /// long page fault, which is rarer). In a call that runs it also comes late; whether the timer
    /// fired while the thread ran or while it had no processor is unknown, only the recent duration
    /// of each is known. So the result is random with these odds: the timer fires at any moment of
    /// the call, of which the recent time mostly consists.
    fn was_running(self, late_ns: u64, is_after_call: bool) -> bool {
        if is_after_call {
            (late_ns <= LATE_NS_MIN && self.lately_off_ns < late_ns)
                || chance::fraction() < self.lately_on_share()
        } else {
            // If the time without a processor explains the delay, it had none when the timer fired.
            late_ns <= LATE_NS_MIN || self.lately_off_ns + UNEXPLAINED_NS_MIN < late_ns
        }
    }

    /// The CPU time of the thread in the last `late_ns`, about.
    fn cpu_ns_of(self, late_ns: u64) -> u64 {
        (late_ns as f64 * self.lately_on_share()) as u64
    }

    fn lately_on_share(self) -> f64 {
        let lately_ns = self.lately_cpu_ns + self.lately_off_ns;
        self.lately_cpu_ns as f64 / lately_ns.max(1) as f64
    }
}

/// A running timer. Dropping it deletes it.
pub(super) struct Timer {
    lane: &'static Lane,
    id: c_int,
}

impl Timer {
    /// Lets the kernel interrupt the thread that owns `lane` every `mean_ns` on average while it
    /// runs.
    pub(super) fn start(lane: &'static Lane, mean_ns: u64) -> io::Result<Timer> {
        let thread_id = lane.owner();
        // SAFETY: all zeros is a valid `sigevent`.
        let mut event: libc::sigevent = unsafe { mem::zeroed() };
        event.sigev_notify = libc::SIGEV_THREAD_ID;
        event.sigev_signo = SIGNAL;
        event.sigev_notify_thread_id = thread_id.cast_signed();
        event.sigev_value.sival_ptr = ptr::from_ref(lane).cast_mut().cast();
        let mut id: c_int = 0;
        // The system calls themselves: C libraries wrap the kernel's timer ids. SAFETY: `event` has
        // the kernel's layout, and `id` room for the timer's id.
        let status = unsafe {
            libc::syscall(
                libc::SYS_timer_create,
                libc::CLOCK_MONOTONIC,
                &raw mut event,
                &raw mut id,
            )
        };
        if status != 0 {
            return Err(io::Error::last_os_error());
        }
        let timer = Timer { lane, id };
        let now_mono_ns = clock::monotonic_ns();
        let now_cpu_ns = clock::cpu_ns_of(thread_id).unwrap_or(0);
        lane.pace.reset(id, mean_ns, now_mono_ns, now_cpu_ns);
        set(&lane.pace, id, random_moment_ns(now_mono_ns, mean_ns as f64))?;
        Ok(timer)
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        // First, so that no handler sets it again. A handler that has read the id sets a timer that
        // does not exist: the kernel does not reuse ids until it has used all of them.
        self.lane.pace.id.store(NO_TIMER, Ordering::Release);
        // SAFETY: the timer is ours. The call fails only for timers that do not exist.
        let status = unsafe { libc::syscall(libc::SYS_timer_delete, self.id) };
        debug_assert_eq!(status, 0, "timer {} does not exist", self.id);
    }
}

/// Sets the timer for the next moment, unless it has been deleted. Calls `on_passed` with the
/// moment at which it fired, and those since then.
fn set_next(pace: &Pace, now_mono_ns: u64, mean_gap_ns: f64, on_passed: impl FnMut(u64)) {
    let id = pace.id.load(Ordering::Acquire);
    if id != NO_TIMER {
        let last_mono_ns = pace.due_mono_ns.load(Ordering::Relaxed);
        let due_mono_ns = next_moment_ns(last_mono_ns, now_mono_ns, mean_gap_ns, on_passed);
        thread_waits::note_due(due_mono_ns);
        // It may be deleted at this moment.
        let (Ok(()) | Err(_)) = set(pace, id, due_mono_ns);
    }
}

/// Lets a timer fire once. May be called in signal handlers.
fn set(pace: &Pace, id: c_int, due_mono_ns: u64) -> io::Result<()> {
    pace.due_mono_ns.store(due_mono_ns, Ordering::Relaxed);
    let times = libc::itimerspec {
        it_interval: libc::timespec { tv_sec: 0, tv_nsec: 0 },
        it_value: libc::timespec {
            tv_sec: (due_mono_ns / 1_000_000_000) as libc::time_t,
            tv_nsec: (due_mono_ns % 1_000_000_000) as libc::c_long,
        },
    };
    let no_old_times = ptr::null_mut::<libc::itimerspec>();
    // SAFETY: `times` has the kernel's layout on 64-bit systems; a timer that does not exist is
    // refused.
    let status = unsafe {
        libc::syscall(
            libc::SYS_timer_settime,
            id,
            libc::TIMER_ABSTIME,
            &raw const times,
            no_old_times,
        )
    };
    if status == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// The first moment after `now_ns` in the sequence of random moments that contains `last_ns`. (A
/// new sequence would have none for half a gap: work shorter than that after a wait would never be
/// sampled.) Calls `on_passed` with `last_ns` and the moments up to `now_ns`, in all
/// at most [`GAPS_MAX`].
fn next_moment_ns(
    last_ns: u64,
    now_ns: u64,
    mean_gap_ns: f64,
    mut on_passed: impl FnMut(u64),
) -> u64 {
    let mut next_ns = last_ns;
    for _ in 0..GAPS_MAX {
        on_passed(next_ns);
        next_ns += (mean_gap_ns * (0.5 + chance::fraction())) as u64;
        if next_ns > now_ns {
            return next_ns;
        }
    }
    random_moment_ns(now_ns, mean_gap_ns)
}

/// The first moment after `now_ns` in a sequence that may have started at any time. Nearer moments
/// are likelier, since more gaps reach that far.
fn random_moment_ns(now_ns: u64, mean_gap_ns: f64) -> u64 {
    let part = chance::fraction();
    let gaps = if part < 0.5 { part } else { 1.5 - (2.0 * (1.0 - part)).sqrt() };
    now_ns + (mean_gap_ns * gaps) as u64
}

/// Signal handler: the timer of the thread has fired. Returns the interval and weight of a sample
/// taken now; `None` if the thread was not running.
pub(super) fn fired(lane: &'static Lane, registers: Registers, now_mono_ns: u64) -> Option<Header> {
    let pace = &lane.pace;
    if thread_waits::rest_if_waiting(pace) {
        return None;
    }
    let now_cpu_ns = clock::own_cpu_ns();
    let passed = Passed::measure(pace, now_mono_ns, now_cpu_ns);
    let running_share = pace.running_share.add(passed.wall_ns, passed.cpu_ns);
    let mean_ns = pace.mean_ns();
    let mean_gap_ns = match registers.is_call_interrupted {
        // However much it slept before, it may continue running for long.
        false => mean_ns,
        true => (mean_ns * (FULL_RATE_SHARE / running_share).min(SLEEPER_GAP_FACTOR_MAX))
            .min(SLEEPER_GAP_NS_MAX)
            .max(mean_ns),
    };
    // How long ago the thread is taken to have run. A call gets one signal for all its moments. (If
    // the recent time was other work, too, the odds are too rough for more than one of them.)
    let mut late_ns = None;
    let due_mono_ns = pace.due_mono_ns.load(Ordering::Relaxed);
    set_next(pace, now_mono_ns, mean_gap_ns, |moment_mono_ns| {
        let passed_ns = now_mono_ns.saturating_sub(moment_mono_ns);
        let is_possible =
            moment_mono_ns == due_mono_ns || (registers.is_after_call && passed.is_since_wait);
        if is_possible && passed.was_running(passed_ns, registers.is_after_call) {
            late_ns = Some(passed_ns);
        }
    });
    if registers.is_call_interrupted {
        return None;
    }
    // Up to the last moment at which it ran: up to now, a long system call would count for more the
    // longer it lasted.
    let late_cpu_ns = passed.cpu_ns_of(late_ns?);
    let cpu_ns = clock::advance(&lane.sampled_cpu_ns, now_cpu_ns.saturating_sub(late_cpu_ns));
    // A share rather than the difference: one measured wait stands for many, more than there may
    // have been since the last sample.
    let wait_share = pace.wait_share.add(cpu_ns, thread_waits::take_cpu_ns());
    let cpu_ns = (cpu_ns as f64 * (1.0 - wait_share.min(WAIT_SHARE_MAX))) as u64;
    if cpu_ns == 0 {
        // All CPU time is since the timer fired: the next sample stands for it.
        return None;
    }
    // The interval starts at the previous sample, or later if the thread has waited since or used
    // less CPU time.
    let start_mono_ns = pace
        .sampled_mono_ns
        .swap(now_mono_ns, Ordering::Relaxed)
        .max(now_mono_ns.saturating_sub(cpu_ns))
        .max(thread_waits::last_end_mono_ns());
    Some(Header {
        time_mono_ns: start_mono_ns,
        duration_ns: now_mono_ns.saturating_sub(start_mono_ns),
        weight: cpu_ns,
        ..Header::default()
    })
}

#[cfg(test)]
mod tests;
