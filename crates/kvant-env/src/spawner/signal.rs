//! An event count: waiters sleep until the number of notifications changes.
//!
//! Invariants:
//! 1. A waiter reads the count before it calls `ready` and sleeps only while the count is
//!    unchanged, so that no notification in between is lost.
//! 2. A notifier that sees no waiter does nothing. This is sound because a waiter registers
//!    *before* it reads the state, and a notifier checks for waiters *after* it changed the state,
//!    each with a sequentially consistent fence in between: at least one sees the other.
//!
//! Threads: any number of waiters and notifiers.

use crate::clock::Clock;
use kvant_base::lock::{NamedCondvar, NamedMutex};
use kvant_base::wait::WaitKind;
use std::sync::atomic::{AtomicUsize, Ordering, fence};
use std::time::Duration;

/// Where panics unwind (in tests), a sleeper checks `is_cancelled` at this interval. It does not
/// check `ready`, so that a missing notification hangs a test instead of going unnoticed.
const CANCEL_CHECK_INTERVAL: Option<Duration> =
    if cfg!(panic = "unwind") { Some(Duration::from_millis(50)) } else { None };

/// Wakes waiters after a change of state. First change the state that waiters check, then call
/// [`Signal::notify_all`].
pub struct Signal {
    waiter_count: AtomicUsize,
    notification_count: NamedMutex<u64>,
    notified: NamedCondvar,
}

impl Signal {
    /// A signal whose waits have this kind and name in profiles.
    pub const fn new(kind: WaitKind, name: &'static str) -> Signal {
        Signal::with(NamedCondvar::new(kind, name))
    }

    /// A signal whose waiters call [`kvant_base::wait::begin`] themselves, because only they know
    /// the reason.
    pub const fn named_by_waiters() -> Signal {
        Signal::with(NamedCondvar::named_by_waiters())
    }

    const fn with(notified: NamedCondvar) -> Signal {
        Signal {
            waiter_count: AtomicUsize::new(0),
            notification_count: NamedMutex::new("signal", 0),
            notified,
        }
    }

    /// Wakes all waiters to check their state. Without waiters this costs a fence and a load.
    #[inline]
    pub fn notify_all(&self) {
        // Pairs with the fence in `Waiter::register` (invariant 2).
        fence(Ordering::SeqCst);
        if self.waiter_count.load(Ordering::Relaxed) != 0 {
            self.notify_waiters();
        }
    }

    #[cold]
    fn notify_waiters(&self) {
        *self.notification_count.lock() += 1;
        self.notified.notify_all();
    }

    /// Sleeps until `ready` (returns true) or until `clock` reaches `deadline_ns` (returns false).
    /// Also returns false if `is_cancelled`, which is checked at [`CANCEL_CHECK_INTERVAL`].
    pub(super) fn wait_until(
        &self,
        clock: &dyn Clock,
        deadline_ns: Option<u64>,
        ready: &mut dyn FnMut() -> bool,
        is_cancelled: &dyn Fn() -> bool,
    ) -> bool {
        if ready() {
            return true;
        }
        let _waiter = Waiter::register(self);
        loop {
            let seen = *self.notification_count.lock();
            if ready() {
                return true;
            }
            let mut count = self.notification_count.lock();
            loop {
                let sleep = match remaining(clock, deadline_ns) {
                    Some(Duration::ZERO) => return false,
                    limit => CANCEL_CHECK_INTERVAL.into_iter().chain(limit).min(),
                };
                if *count != seen {
                    break;
                }
                if is_cancelled() {
                    return false;
                }
                count = match sleep {
                    None => self.notified.wait(count),
                    Some(duration) => self.notified.wait_timeout(count, duration),
                };
            }
        }
    }
}

/// Time until the deadline; `None` without one.
pub(super) fn remaining(clock: &dyn Clock, deadline_ns: Option<u64>) -> Option<Duration> {
    deadline_ns
        .map(|deadline_ns| Duration::from_nanos(deadline_ns.saturating_sub(clock.monotonic_ns())))
}

/// A registered waiter until dropped, even if `ready` panics.
struct Waiter<'a>(&'a Signal);

impl<'a> Waiter<'a> {
    fn register(signal: &'a Signal) -> Waiter<'a> {
        signal.waiter_count.fetch_add(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        Waiter(signal)
    }
}

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        self.0.waiter_count.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests;
