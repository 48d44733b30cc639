//! Locks and conditions with names: what threads wait for, and for how long, can be asked of a
//! profiler ([`crate::wait`]).
//!
//! A panic while a lock is held aborts the process in release builds, so there is no poisoning to
//! handle: in tests the panic that poisoned a lock is the failure to look at, and the next holder
//! goes on.
//!
//! Invariants:
//! 1. Without contention a lock costs what std's costs and one load at its end, whether anybody
//!    listens or not.
//! 2. Only a wait for a lock that another thread holds is contention. What a thread waits for at a
//!    condition has the kind that the condition was made with; taking the lock again at the end of
//!    such a wait is part of it.
//! 3. Who gives up a lock that others wait for is told to the listener, with the time during which
//!    somebody waited for this holder.
//!
//! Threads: any.

use crate::wait::{self, WaitKind, Waiting};
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Duration;

/// A named mutex.
pub struct NamedMutex<T> {
    waiters: Waiters,
    inner: Mutex<T>,
}

/// Who waits for a lock, as far as a listener wants to know.
struct Waiters {
    name: &'static str,
    contended_count: AtomicU64,
    /// Threads that wait, of those that a listener hears of.
    count: AtomicU32,
    /// Since when somebody has been waiting for the present holder, in the listener's time; 0 while
    /// nobody has.
    since_ns: AtomicU64,
}

impl<T> NamedMutex<T> {
    /// A mutex around `value`; `name` is what statistics and profiles call it.
    pub const fn new(name: &'static str, value: T) -> Self {
        NamedMutex {
            waiters: Waiters {
                name,
                contended_count: AtomicU64::new(0),
                count: AtomicU32::new(0),
                since_ns: AtomicU64::new(0),
            },
            inner: Mutex::new(value),
        }
    }

    /// Takes the lock, waiting for it when another thread holds it.
    #[inline]
    pub fn lock(&self) -> NamedGuard<'_, T> {
        let inner = match self.inner.try_lock() {
            Ok(guard) => guard,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => self.lock_contended(),
        };
        NamedGuard { holding: Holding(&self.waiters), inner }
    }

    #[cold]
    fn lock_contended(&self) -> MutexGuard<'_, T> {
        let waiters = &self.waiters;
        waiters.contended_count.fetch_add(1, Ordering::Relaxed);
        let waiting = wait::begin(WaitKind::Contention, waiters.name);
        let start_ns = waiting.start_ns();
        if let Some(start_ns) = start_ns {
            waiters.enter(start_ns);
        }
        let guard = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        if start_ns.is_some() {
            waiters.leave();
        }
        guard
    }

    /// What statistics and profiles call this lock.
    pub fn name(&self) -> &'static str {
        self.waiters.name
    }

    /// How often [`NamedMutex::lock`] found the lock held.
    pub fn contended_count(&self) -> u64 {
        self.waiters.contended_count.load(Ordering::Relaxed)
    }
}

impl<T> fmt::Debug for NamedMutex<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NamedMutex").field("name", &self.name()).finish_non_exhaustive()
    }
}

impl Waiters {
    /// A thread begins to wait.
    fn enter(&self, start_ns: u64) {
        // The count first: a waiter that leaves, and does not see this one in it, has made the time
        // 0 before.
        self.count.fetch_add(1, Ordering::AcqRel);
        self.start(start_ns);
    }

    /// The thread holds the lock now.
    fn leave(&self) {
        // What the others have waited until now was for those who held the lock before.
        self.since_ns.store(0, Ordering::Release);
        if self.count.fetch_sub(1, Ordering::AcqRel) > 1
            && let Some(listener) = wait::listener()
        {
            self.start(listener.now_ns());
        }
    }

    fn start(&self, now_ns: u64) {
        // A time that is there already is earlier.
        let (Ok(_) | Err(_)) =
            self.since_ns.compare_exchange(0, now_ns, Ordering::AcqRel, Ordering::Relaxed);
    }

    /// The holder is about to give up the lock, and somebody waits.
    #[cold]
    fn tell_holder(&self) {
        let since_ns = self.since_ns.load(Ordering::Acquire);
        if let Some(listener) = wait::listener()
            && since_ns != 0
        {
            listener.held(self.name, since_ns);
            // The next holder may come past those who wait: it answers for its own time only.
            self.since_ns.store(listener.now_ns(), Ordering::Release);
        }
    }
}

/// The lock is held until this is dropped.
#[must_use = "the lock is given up when this is dropped"]
pub struct NamedGuard<'a, T> {
    /// Dropped first: the holder is told of while it still holds the lock.
    holding: Holding<'a>,
    inner: MutexGuard<'a, T>,
}

/// Tells, when dropped, that the lock is given up.
struct Holding<'a>(&'a Waiters);

impl Drop for Holding<'_> {
    #[inline]
    fn drop(&mut self) {
        // A waiter that is not seen here has only just come: the next holder answers for it.
        if cfg!(feature = "profiler") && self.0.count.load(Ordering::Relaxed) != 0 {
            self.0.tell_holder();
        }
    }
}

impl<T> Deref for NamedGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.inner
    }
}

impl<T> DerefMut for NamedGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        &mut self.inner
    }
}

/// A condition that threads wait for under a [`NamedMutex`].
pub struct NamedCondvar {
    /// What its waits are; `None` when the waiter says so itself.
    waits: Option<(WaitKind, &'static str)>,
    inner: Condvar,
}

impl NamedCondvar {
    /// A condition; `kind` says what those who wait at it wait for.
    pub const fn new(kind: WaitKind, name: &'static str) -> NamedCondvar {
        NamedCondvar { waits: Some((kind, name)), inner: Condvar::new() }
    }

    /// A condition whose waiters call [`wait::begin`] themselves, since only they know what they
    /// wait for.
    pub const fn named_by_waiters() -> NamedCondvar {
        NamedCondvar { waits: None, inner: Condvar::new() }
    }

    /// Waits until notified, or for no reason, giving up the lock meanwhile.
    pub fn wait<'a, T>(&self, guard: NamedGuard<'a, T>) -> NamedGuard<'a, T> {
        let NamedGuard { holding, inner } = guard;
        let waiters = holding.0;
        drop(holding);
        let waiting = self.begin();
        let inner = self.inner.wait(inner).unwrap_or_else(PoisonError::into_inner);
        drop(waiting);
        NamedGuard { holding: Holding(waiters), inner }
    }

    /// As [`NamedCondvar::wait`], but for at most `time_max`.
    pub fn wait_timeout<'a, T>(
        &self,
        guard: NamedGuard<'a, T>,
        time_max: Duration,
    ) -> NamedGuard<'a, T> {
        let NamedGuard { holding, inner } = guard;
        let waiters = holding.0;
        drop(holding);
        let waiting = self.begin();
        let (inner, _) =
            self.inner.wait_timeout(inner, time_max).unwrap_or_else(PoisonError::into_inner);
        drop(waiting);
        NamedGuard { holding: Holding(waiters), inner }
    }

    fn begin(&self) -> Option<Waiting> {
        self.waits.map(|(kind, name)| wait::begin(kind, name))
    }

    /// Wakes one who waits.
    pub fn notify_one(&self) {
        self.inner.notify_one();
    }

    /// Wakes all who wait.
    pub fn notify_all(&self) {
        self.inner.notify_all();
    }
}

/// Waits until the calling thread is unparked, or for no reason, for at most `time_max`.
pub fn park(kind: WaitKind, name: &'static str, time_max: Option<Duration>) {
    let _waiting = wait::begin(kind, name);
    match time_max {
        None => std::thread::park(),
        Some(time_max) => std::thread::park_timeout(time_max),
    }
}

#[cfg(test)]
mod tests;
