//! Samples waits, and the CPU time that falling asleep and waking up costs.
//!
//! A wait of `w` is a sample with probability `1 - exp(-w/R)` and stands for `w / (1 - exp(-w/R))`:
//! sums of weights are unbiased, long waits are nearly always sampled, and short ones cost little.
//! `R` differs by kind, as idle threads do nothing but wait.
//!
//! A timer's signal cannot tell a thread that is falling asleep from one that sleeps: both are in
//! the same system call. So the timer rests while a thread waits
//! ([`thread_waits::rest_if_waiting`](super::thread_waits::rest_if_waiting)), and the CPU time of
//! one wait in [`MEASURED_ONE_IN`] is measured instead. Samples of the waiter's stack stand for it.
//!
//! Invariant: nothing here allocates or locks; a thread that waited for a lock must not wait for
//! one of ours.
//!
//! Threads: the listener is called on the thread that waits, or that is about to release a lock.

use super::chance::{is_one_in, unbiased};
use super::clock::{self, monotonic_ns};
use super::record::{Observation, record};
use super::thread_waits::{OWN, SESSION_MONO_NS, ThreadWaits};
use super::timer;
use crate::recording::Kind;
use kvant_base::wait::{self, WaitKind, WaitListener};
use std::sync::atomic::{AtomicU64, Ordering, compiler_fence};

/// File system calls that take less than this found everything in memory: they are no waits.
const IO_WAIT_NS_MIN: u64 = 100_000;
/// Reading a thread's CPU clock is a system call.
const MEASURED_ONE_IN: u64 = 16;

type MeanNs = [u64; WaitKind::ALL.len()];

static LISTENER: Listener = Listener {
    mean_ns: [const { AtomicU64::new(0) }; WaitKind::ALL.len()],
    cpu_mean_ns: AtomicU64::new(0),
    cpu_clock_ns: AtomicU64::new(0),
};

struct Listener {
    /// In the order of [`WaitKind::ALL`]; 0 if the kind is not sampled.
    mean_ns: [AtomicU64; WaitKind::ALL.len()],
    /// CPU time of waits between two samples of it; 0 if it is not measured.
    cpu_mean_ns: AtomicU64,
    /// What a measurement of no time yields.
    cpu_clock_ns: AtomicU64,
}

/// Starts to sample waits, with a mean of time per sample for each of [`WaitKind::ALL`], and their
/// CPU time.
pub(super) fn begin(mean_ns: Option<MeanNs>, cpu_mean_ns: Option<u64>) {
    LISTENER.cpu_clock_ns.store(clock::own_cpu_clock_cost_ns(), Ordering::Relaxed);
    SESSION_MONO_NS.store(monotonic_ns(), Ordering::Relaxed);
    LISTENER.set(mean_ns, cpu_mean_ns);
    wait::install(&LISTENER);
    wait::listen(mean_ns.is_some() || cpu_mean_ns.is_some());
}

pub(super) fn end() {
    wait::listen(false);
    LISTENER.set(None, None);
}

/// Whether the whole thread waits. Tasks may wait only with the other kind.
fn is_of_thread(kind: WaitKind) -> bool {
    kind != WaitKind::Backpressure
}

impl WaitListener for Listener {
    fn now_ns(&self) -> u64 {
        monotonic_ns()
    }

    fn on_wait_start(&self, kind: WaitKind) -> u64 {
        if is_of_thread(kind) {
            OWN.with(|own| {
                if own.depth.replace(own.depth.get() + 1) == 0
                    && self.cpu_mean_ns.load(Ordering::Relaxed) != 0
                    && is_one_in(MEASURED_ONE_IN)
                {
                    own.started_cpu_ns.set(Some(clock::own_cpu_ns()));
                }
            });
        }
        monotonic_ns()
    }

    fn on_wait_end(&self, kind: WaitKind, name: &'static str, start_ns: u64) {
        let end_ns = monotonic_ns();
        let start_ns = within_session(start_ns);
        OWN.with(|own| {
            if is_of_thread(kind) {
                own.depth.set(own.depth.get() - 1);
                if own.depth.get() == 0 {
                    let waited_ns = own.waited_ns.get() + end_ns.saturating_sub(start_ns);
                    own.waited_ns.set(waited_ns);
                    own.last_end_mono_ns.set(end_ns);
                    self.resume(own, name, end_ns);
                }
            }
            let duration_ns = end_ns.saturating_sub(start_ns);
            let mean_ns = self.mean_ns[kind as usize].load(Ordering::Relaxed);
            if mean_ns != 0
                && (kind != WaitKind::Io || duration_ns >= IO_WAIT_NS_MIN)
                && own.points[kind as usize].pass(duration_ns, mean_ns)
            {
                let weight = unbiased(duration_ns, mean_ns);
                sample(Kind::Wait(kind), name, start_ns, duration_ns, weight);
            }
        });
    }

    fn on_contended_unlock(&self, name: &'static str, since_ns: u64) {
        let since_ns = within_session(since_ns);
        let duration_ns = monotonic_ns().saturating_sub(since_ns);
        let mean_ns = self.mean_ns[WaitKind::Contention as usize].load(Ordering::Relaxed);
        if mean_ns != 0 && OWN.with(|own| own.holder_points.pass(duration_ns, mean_ns)) {
            sample(Kind::Holder, name, since_ns, duration_ns, unbiased(duration_ns, mean_ns));
        }
    }
}

/// A wait that began in an earlier session counts from the start of this one.
#[inline]
fn within_session(start_mono_ns: u64) -> u64 {
    start_mono_ns.max(SESSION_MONO_NS.load(Ordering::Relaxed))
}

impl Listener {
    fn set(&self, mean_ns: Option<MeanNs>, cpu_mean_ns: Option<u64>) {
        for (current, mean_ns) in self.mean_ns.iter().zip(mean_ns.unwrap_or_default()) {
            current.store(mean_ns, Ordering::Relaxed);
        }
        self.cpu_mean_ns.store(cpu_mean_ns.unwrap_or(0), Ordering::Relaxed);
    }

    #[inline]
    fn resume(&self, own: &ThreadWaits, name: &'static str, end_ns: u64) {
        // The handler must see the new depth before the resting timer is taken.
        compiler_fence(Ordering::SeqCst);
        if let Some(started_cpu_ns) = own.started_cpu_ns.take() {
            let now_cpu_ns = own.read_clocks(end_ns);
            self.add_cpu(own, name, end_ns, now_cpu_ns.saturating_sub(started_cpu_ns));
        } else if own.is_due_soon(end_ns) {
            own.read_clocks(end_ns);
        }
        if let Some(pace) = own.resting_timer.take() {
            timer::resume(pace);
        }
    }

    fn add_cpu(&self, own: &ThreadWaits, name: &'static str, end_ns: u64, measured_ns: u64) {
        let spent_ns = measured_ns.saturating_sub(self.cpu_clock_ns.load(Ordering::Relaxed));
        let cpu_ns = spent_ns * MEASURED_ONE_IN;
        own.add_cpu_ns(cpu_ns);
        let mean_ns = self.cpu_mean_ns.load(Ordering::Relaxed);
        if mean_ns != 0 && own.cpu_points.pass(cpu_ns, mean_ns) {
            // At the end of the wait: the thread did not spend it while it slept.
            sample(Kind::Cpu, name, end_ns, 0, unbiased(cpu_ns, mean_ns));
        }
    }
}

#[cold]
#[inline(never)]
fn sample(kind: Kind, name: &'static str, start_ns: u64, duration_ns: u64, weight: u64) {
    record(&Observation {
        kind,
        time_mono_ns: start_ns,
        duration_ns,
        weight,
        name: Some(name),
        address: 0,
        frames_to_skip: 1,
    });
}
