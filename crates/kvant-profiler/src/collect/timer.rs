//! A timer that interrupts a thread at random moments: the engine that every Linux has, and the
//! cheapest.
//!
//! The moments come from the monotonic clock, with gaps of half to one and a half times the mean:
//! nothing that the thread does is in step with them, and they go on whether it runs or not.
//! (Exponential gaps would be no better for that, and make samples of very different weights.
//! Timers on a thread's CPU clock are looked at when the kernel's clock ticks: of a load of 30,000
//! requests a second they see the same point of each 120th. Perf events have no such step, but the
//! kernel stops and starts them whenever the thread leaves a processor: docs/decisions/0009.)
//!
//! What counts is a thread that runs:
//! - One that is ready but has no processor gets the signal late, and does not count, as far as
//!   that can be told from a long call of the system ([`Passed::was_off_processor`]).
//! - One that waits in a system call is woken by the signal: its registers show that
//!   ([`Registers::is_call_interrupted`]).
//! - Where it has said that it waits, its timer rests until it has stopped
//!   ([`wait::goes_on_after`]), and what the wait cost it is measured there.
//!
//! Each sample stands for the CPU time of the thread since the one before, less that of waits, so
//! that the sum is the thread's account, however seldom it was found running, but for what came
//! after its last sample. Gaps get longer while a thread sleeps without saying so and lately hardly
//! ran, so that few of those that sleep are woken.
//!
//! Time in the kernel counts for the function that called it: the signal is delivered on the way
//! back.
//!
//! Threads: the drain creates and deletes; the signal handler of the sampled thread sets the timer
//! again.

use super::arch::Registers;
use super::handler;
use super::lane::Lane;
use super::{chance, clock, wait};
use std::ffi::c_int;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};
use std::{io, mem, ptr};

/// A thread that lately ran for this share of the time, or more, is interrupted at the full rate.
const FULL_RATE_SHARE: f64 = 0.25;
/// Gaps of those that sleep without saying so get at most so many times longer, and so long: at the
/// usual rate they are woken less than twice a second.
const SLEEPER_GAP_FACTOR_MAX: f64 = 64.0;
const SLEEPER_GAP_NS_MAX: f64 = 650_000_000.0;
/// After so many gaps the last moment says nothing of the next.
const GAPS_MAX: usize = 8;
/// Older than so much time is not lately, and older than so much CPU time.
const LATELY_WALL_NS: u64 = 1_000_000_000;
const LATELY_CPU_NS: u64 = 200_000_000;
/// A thread that was found running has not only waited.
const WAIT_SHARE_MAX: f64 = 0.95;
/// A thread that runs outside of the kernel gets its signal sooner.
const LATE_NS_MIN: u64 = 50_000;
const NO_TIMER: c_int = -1;

/// What the signal handler knows of its thread's timer.
pub(super) struct Pace {
    /// The kernel's number of it, or [`NO_TIMER`].
    id: AtomicI32,
    /// The mean gap of a thread that runs.
    mean_ns: AtomicU64,
    /// Both clocks at the last signal.
    last_mono_ns: AtomicU64,
    last_cpu_ns: AtomicU64,
    /// When it fires.
    due_mono_ns: AtomicU64,
    /// When the last sample was taken, or the timer was started.
    sampled_mono_ns: AtomicU64,
    /// Of the thread's time: on a processor.
    running_share: RecentShare<LATELY_WALL_NS>,
    /// Of its time on a processor: in waits that it has announced.
    wait_share: RecentShare<LATELY_CPU_NS>,
}

/// Which part of a time something took lately: within `LATELY_NS`, more or less.
struct RecentShare<const LATELY_NS: u64> {
    whole_ns: AtomicU64,
    part_ns: AtomicU64,
}

impl<const LATELY_NS: u64> RecentShare<LATELY_NS> {
    const fn new() -> RecentShare<LATELY_NS> {
        RecentShare { whole_ns: AtomicU64::new(0), part_ns: AtomicU64::new(0) }
    }

    fn forget(&self) {
        self.whole_ns.store(0, Ordering::Relaxed);
        self.part_ns.store(0, Ordering::Relaxed);
    }

    /// The share, after `whole_ns` more, of which `part_ns` was it.
    fn after(&self, whole_ns: u64, part_ns: u64) -> f64 {
        let mut sum_ns = self.whole_ns.load(Ordering::Relaxed) + whole_ns;
        let mut part_sum_ns = self.part_ns.load(Ordering::Relaxed) + part_ns;
        let share = part_sum_ns as f64 / sum_ns.max(1) as f64;
        if sum_ns > LATELY_NS {
            (sum_ns, part_sum_ns) = (sum_ns / 2, part_sum_ns / 2);
        }
        self.whole_ns.store(sum_ns, Ordering::Relaxed);
        self.part_ns.store(part_sum_ns, Ordering::Relaxed);
        share
    }
}

/// What a sample that is taken now stands for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Since {
    /// When that may have begun: when the last one was taken, or later where the thread has waited
    /// since, or needed less.
    pub(super) mono_ns: u64,
    /// How much CPU time the thread has had since, but for that of its waits.
    pub(super) cpu_ns: u64,
}

impl Pace {
    pub(super) const fn new() -> Pace {
        Pace {
            id: AtomicI32::new(NO_TIMER),
            mean_ns: AtomicU64::new(0),
            last_mono_ns: AtomicU64::new(0),
            last_cpu_ns: AtomicU64::new(0),
            due_mono_ns: AtomicU64::new(0),
            sampled_mono_ns: AtomicU64::new(0),
            running_share: RecentShare::new(),
            wait_share: RecentShare::new(),
        }
    }

    /// The thread has stopped waiting: the timer that rested goes on.
    pub(super) fn go_on(&self) {
        let now_mono_ns = clock::monotonic_ns();
        self.pass(now_mono_ns, clock::own_cpu_ns());
        // However long it has waited: it runs now, and will say so when it does not.
        self.set_again(now_mono_ns, self.mean_ns());
    }

    fn mean_ns(&self) -> f64 {
        self.mean_ns.load(Ordering::Relaxed) as f64
    }

    /// How the thread has spent the time since this was asked last.
    fn pass(&self, now_mono_ns: u64, now_cpu_ns: u64) -> Passed {
        let last_mono_ns = self.last_mono_ns.swap(now_mono_ns, Ordering::Relaxed);
        let last_cpu_ns = self.last_cpu_ns.swap(now_cpu_ns, Ordering::Relaxed);
        // What the thread did long ago does not say whether it had a processor lately.
        let (read_mono_ns, read_cpu_ns) = match wait::last_read_ns() {
            read if read.0 > last_mono_ns => read,
            _ => (last_mono_ns, last_cpu_ns),
        };
        let lately_cpu_ns = now_cpu_ns.saturating_sub(read_cpu_ns);
        let known_ns = lately_cpu_ns + wait::take_waited_ns();
        Passed {
            wall_ns: now_mono_ns.saturating_sub(last_mono_ns),
            cpu_ns: now_cpu_ns.saturating_sub(last_cpu_ns),
            lately_cpu_ns,
            lately_off_ns: now_mono_ns.saturating_sub(read_mono_ns).saturating_sub(known_ns),
        }
    }

    /// Sets the timer for the next moment. It may have been deleted meanwhile.
    fn set_again(&self, now_mono_ns: u64, mean_gap_ns: f64) {
        let id = self.id.load(Ordering::Acquire);
        if id != NO_TIMER {
            let last_mono_ns = self.due_mono_ns.load(Ordering::Relaxed);
            let due_mono_ns = next_moment_ns(last_mono_ns, now_mono_ns, mean_gap_ns);
            wait::note_due(due_mono_ns);
            let (Ok(()) | Err(_)) = self.set(id, due_mono_ns);
        }
    }

    fn set(&self, id: c_int, due_mono_ns: u64) -> io::Result<()> {
        self.due_mono_ns.store(due_mono_ns, Ordering::Relaxed);
        set(id, due_mono_ns)
    }
}

/// How a thread has spent some time.
#[derive(Clone, Copy, Debug)]
struct Passed {
    wall_ns: u64,
    /// On a processor.
    cpu_ns: u64,
    /// Since the clocks were read last: on a processor.
    lately_cpu_ns: u64,
    /// Since then: on none, and not in a wait that it has announced.
    lately_off_ns: u64,
}

impl Passed {
    /// Whether the thread is taken to have had no processor when its timer fired. A late signal
    /// found it in the kernel, or ready without a processor. Which of the two came first is not
    /// known, only how long each took lately; so the answer is drawn with these odds. That is right
    /// on average: the timer fires at any moment of that time.
    fn was_off_processor(self, late_ns: u64) -> bool {
        let lately_ns = self.lately_cpu_ns + self.lately_off_ns;
        late_ns > LATE_NS_MIN && chance::fraction() * (lately_ns as f64) < self.lately_off_ns as f64
    }
}

/// A running timer. Dropping it deletes it.
pub(super) struct Timer {
    lane: &'static Lane,
    id: c_int,
}

impl Timer {
    /// Lets the kernel interrupt the thread that owns `lane` every `mean_ns` while it runs, on
    /// average.
    ///
    /// # Errors
    /// When the thread has ended, or the system refuses.
    pub(super) fn start(lane: &'static Lane, mean_ns: u64) -> io::Result<Timer> {
        let thread_id = lane.owner();
        // SAFETY: all zeros is a valid `sigevent`.
        let mut event: libc::sigevent = unsafe { mem::zeroed() };
        event.sigev_notify = libc::SIGEV_THREAD_ID;
        event.sigev_signo = handler::SIGNAL;
        event.sigev_notify_thread_id = thread_id.cast_signed();
        event.sigev_value.sival_ptr = ptr::from_ref(lane).cast_mut().cast();
        let mut id: c_int = 0;
        // The system calls themselves: C libraries wrap the kernel's number of a timer in ways of
        // their own. SAFETY: `event` has the kernel's layout, and `id` room for the number of the
        // timer.
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
        let pace = &lane.pace;
        pace.mean_ns.store(mean_ns, Ordering::Relaxed);
        let now_mono_ns = clock::monotonic_ns();
        pace.last_mono_ns.store(now_mono_ns, Ordering::Relaxed);
        pace.sampled_mono_ns.store(now_mono_ns, Ordering::Relaxed);
        pace.last_cpu_ns.store(clock::cpu_ns_of(thread_id).unwrap_or(0), Ordering::Relaxed);
        // The lane may have been another thread's.
        pace.running_share.forget();
        pace.wait_share.forget();
        pace.id.store(id, Ordering::Release);
        pace.set(id, some_moment_ns(now_mono_ns, mean_ns as f64))?;
        Ok(timer)
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        // First, so that no handler sets it again. One that has read the number sets what is not
        // there: the kernel does not give numbers out again until it has been through all of them.
        self.lane.pace.id.store(NO_TIMER, Ordering::Release);
        // SAFETY: the timer is ours. The call fails only for timers that are not there.
        let status = unsafe { libc::syscall(libc::SYS_timer_delete, self.id) };
        debug_assert_eq!(status, 0, "timer {} is not there", self.id);
    }
}

/// The first moment after `now_ns` in a row of random moments that `last_ns` is one of. (A new row
/// would have none for half a gap: work that takes less and comes after a wait would never be
/// seen.)
fn next_moment_ns(last_ns: u64, now_ns: u64, mean_gap_ns: f64) -> u64 {
    let mut next_ns = last_ns;
    for _ in 0..GAPS_MAX {
        next_ns += (mean_gap_ns * (0.5 + chance::fraction())) as u64;
        if next_ns > now_ns {
            return next_ns;
        }
    }
    some_moment_ns(now_ns, mean_gap_ns)
}

/// The first moment after `now_ns` in a row that may have begun at any time: nearer ones are
/// likelier, since more gaps reach as far.
fn some_moment_ns(now_ns: u64, mean_gap_ns: f64) -> u64 {
    let part = chance::fraction();
    let gaps = if part < 0.5 { part } else { 1.5 - (2.0 * (1.0 - part)).sqrt() };
    now_ns + (mean_gap_ns * gaps) as u64
}

/// Lets a timer fire once. Also in signal handlers.
fn set(id: c_int, due_mono_ns: u64) -> io::Result<()> {
    let times = libc::itimerspec {
        it_interval: libc::timespec { tv_sec: 0, tv_nsec: 0 },
        it_value: libc::timespec {
            tv_sec: (due_mono_ns / 1_000_000_000) as libc::time_t,
            tv_nsec: (due_mono_ns % 1_000_000_000) as libc::c_long,
        },
    };
    let no_old_times = ptr::null_mut::<libc::itimerspec>();
    // SAFETY: `times` has the kernel's layout on 64-bit systems; a timer that is not there is
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

/// Signal handler: the timer of the thread has fired. What a sample that is taken now stands for;
/// `None` where the thread was not running.
pub(super) fn fired(lane: &'static Lane, registers: Registers, now_mono_ns: u64) -> Option<Since> {
    if wait::goes_on_after(&lane.pace) {
        return None;
    }
    let now_cpu_ns = clock::own_cpu_ns();
    let late_ns = now_mono_ns.saturating_sub(lane.pace.due_mono_ns.load(Ordering::Relaxed));
    let passed = lane.pace.pass(now_mono_ns, now_cpu_ns);
    let running_share = lane.pace.running_share.after(passed.wall_ns, passed.cpu_ns);
    let mean_ns = lane.pace.mean_ns();
    let mean_gap_ns = match registers.is_call_interrupted {
        // However much it slept before, it may go on running for long.
        false => mean_ns,
        true => (mean_ns * (FULL_RATE_SHARE / running_share).min(SLEEPER_GAP_FACTOR_MAX))
            .min(SLEEPER_GAP_NS_MAX)
            .max(mean_ns),
    };
    lane.pace.set_again(now_mono_ns, mean_gap_ns);
    if registers.is_call_interrupted || passed.was_off_processor(late_ns) {
        return None;
    }
    // Up to the moment at which the timer fired. Up to now, a long call of the system would count
    // for more the longer it went on.
    let cpu_ns = clock::advance(&lane.sampled_cpu_ns, now_cpu_ns.saturating_sub(late_ns));
    // Not the difference: what is known of waits since the last sample is many times what a few
    // took.
    let wait_share = lane.pace.wait_share.after(cpu_ns, wait::take_cpu_ns());
    let cpu_ns = (cpu_ns as f64 * (1.0 - wait_share.min(WAIT_SHARE_MAX))) as u64;
    if cpu_ns == 0 {
        // The thread has got all its time since the timer fired: the next sample stands for that.
        return None;
    }
    let sampled_mono_ns = lane.pace.sampled_mono_ns.swap(now_mono_ns, Ordering::Relaxed);
    let could_begin_mono_ns = now_mono_ns.saturating_sub(cpu_ns).max(wait::last_end_mono_ns());
    Some(Since { mono_ns: sampled_mono_ns.max(could_begin_mono_ns), cpu_ns })
}

#[cfg(test)]
mod tests;
