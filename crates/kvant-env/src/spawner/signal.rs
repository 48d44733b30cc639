//! What waiters sleep on: a count of notifications.
//!
//! Invariants:
//! 1. A waiter reads the count before it calls `ready`, and sleeps only while the count is still
//!    the one it read: a notification between the two is never lost.
//! 2. A notifier that sees no waiter does nothing. This is sound because a waiter announces itself
//!    *before* it reads the state and a notifier looks for waiters *after* it changed the state,
//!    each with a sequentially consistent fence in between: at least one of the two sees the other.
//!
//! Threads: any number of waiters and notifiers.

use crate::clock::Clock;
use kvant_base::lock::{NamedCondvar, NamedMutex};
use kvant_base::wait::WaitKind;
use std::sync::atomic::{AtomicUsize, Ordering, fence};
use std::time::Duration;

/// Where a panic unwinds (in tests), a sleeper looks this often whether it still has something to
/// wait for. It does not look at `ready` then: a forgotten notification must hang a test, not be
/// healed by it. Where a panic aborts, sleepers just sleep.
const LOOK_INTERVAL: Option<Duration> =
    if cfg!(panic = "unwind") { Some(Duration::from_millis(50)) } else { None };

/// Something that waiters wait for. Change the state that they look at, then call
/// [`Signal::notify_all`].
pub struct Signal {
    waiter_count: AtomicUsize,
    notification_count: NamedMutex<u64>,
    notified: NamedCondvar,
}

impl Signal {
    /// A signal that nobody waits for yet; profiles show waits for it with this kind and name.
    pub const fn new(kind: WaitKind, name: &'static str) -> Signal {
        Signal::with(NamedCondvar::new(kind, name))
    }

    /// As [`Signal::new`], but only its waiters know what they wait for: they call
    /// [`kvant_base::wait::begin`].
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

    /// Wakes all waiters, which look again. Without waiters this costs a fence and a load.
    #[inline]
    pub fn notify_all(&self) {
        // Pairs with the fence in `Waiter::announce` (invariant 2).
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

    /// Sleeps until `ready` (true) or until `clock` reaches `deadline_ns` (false). `gave_up` is
    /// asked now and then while nothing happens; its true ends the wait with false.
    pub(super) fn wait_until(
        &self,
        clock: &dyn Clock,
        deadline_ns: Option<u64>,
        ready: &mut dyn FnMut() -> bool,
        gave_up: &dyn Fn() -> bool,
    ) -> bool {
        if ready() {
            return true;
        }
        let _waiter = Waiter::announce(self);
        loop {
            let seen = *self.notification_count.lock();
            if ready() {
                return true;
            }
            let mut count = self.notification_count.lock();
            loop {
                let sleep = match remaining(clock, deadline_ns) {
                    Some(Duration::ZERO) => return false,
                    limit => LOOK_INTERVAL.into_iter().chain(limit).min(),
                };
                if *count != seen {
                    break;
                }
                if gave_up() {
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

/// How long until the deadline; `None` without one.
pub(super) fn remaining(clock: &dyn Clock, deadline_ns: Option<u64>) -> Option<Duration> {
    deadline_ns
        .map(|deadline_ns| Duration::from_nanos(deadline_ns.saturating_sub(clock.monotonic_ns())))
}

/// Counts as a waiter until dropped, also when `ready` panics.
struct Waiter<'a>(&'a Signal);

impl<'a> Waiter<'a> {
    fn announce(signal: &'a Signal) -> Waiter<'a> {
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
