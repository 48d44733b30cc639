//! Named mutexes and condition variables that report waits to a profiler ([`crate::wait`]).
//!
//! A panic aborts release builds, so poisoning needs no handling. In tests the panic itself fails
//! the test, and the next holder continues.
//!
//! Invariants:
//! 1. An uncontended lock costs as much as one of std plus one load on unlock, with or without a
//!    listener.
//! 2. Only waiting for a lock that another thread holds is contention. A wait on a condition
//!    variable has the variable's kind and includes reacquiring the lock.
//! 3. On unlock of a contended lock the listener learns since when others have waited for this
//!    holder.
//!
//! Threads: any.

use crate::tag::{self, Resting};
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

/// The waiters of a lock that a listener knows about.
struct Waiters {
    name: &'static str,
    count: AtomicU32,
    /// Since when a thread has waited for the current holder, in the listener's clock; 0 if none
    /// has.
    since_ns: AtomicU64,
}

impl<T> NamedMutex<T> {
    /// A mutex around `value`; profiles show its waits under `name`.
    pub const fn new(name: &'static str, value: T) -> Self {
        NamedMutex {
            waiters: Waiters { name, count: AtomicU32::new(0), since_ns: AtomicU64::new(0) },
            inner: Mutex::new(value),
        }
    }

    /// Acquires the lock, blocking while another thread holds it.
    #[inline]
    pub fn lock(&self) -> NamedGuard<'_, T> {
        self.try_lock().unwrap_or_else(|| NamedGuard {
            holding: Holding(&self.waiters),
            inner: self.lock_contended(),
        })
    }

    /// Acquires the lock unless another thread holds it.
    #[inline]
    pub fn try_lock(&self) -> Option<NamedGuard<'_, T>> {
        let inner = match self.inner.try_lock() {
            Ok(guard) => guard,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        Some(NamedGuard { holding: Holding(&self.waiters), inner })
    }

    #[cold]
    fn lock_contended(&self) -> MutexGuard<'_, T> {
        let waiters = &self.waiters;
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

    /// The name in profiles.
    pub fn name(&self) -> &'static str {
        self.waiters.name
    }
}

impl<T> fmt::Debug for NamedMutex<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NamedMutex").field("name", &self.name()).finish_non_exhaustive()
    }
}

impl Waiters {
    /// A thread starts to wait.
    fn enter(&self, start_ns: u64) {
        // The count comes first: a leaving waiter that does not see this one in it has cleared the
        // time already.
        self.count.fetch_add(1, Ordering::AcqRel);
        self.start(start_ns);
    }

    /// The thread has acquired the lock.
    fn leave(&self) {
        // The other waiters waited for previous holders until now.
        self.since_ns.store(0, Ordering::Release);
        if self.count.fetch_sub(1, Ordering::AcqRel) > 1
            && let Some(listener) = wait::listener()
        {
            self.start(listener.now_ns());
        }
    }

    fn start(&self, now_ns: u64) {
        // An existing time is earlier.
        let (Ok(_) | Err(_)) =
            self.since_ns.compare_exchange(0, now_ns, Ordering::AcqRel, Ordering::Relaxed);
    }

    /// Reports that the holder is about to release a lock with waiters.
    #[cold]
    fn report_holder(&self) {
        let since_ns = self.since_ns.load(Ordering::Acquire);
        if let Some(listener) = wait::listener()
            && since_ns != 0
        {
            listener.on_contended_unlock(self.name, since_ns);
            // The next holder may overtake the waiters. It is charged with its own time only.
            self.since_ns.store(listener.now_ns(), Ordering::Release);
        }
    }
}

/// Holds the lock until dropped.
#[must_use = "dropping this releases the lock"]
pub struct NamedGuard<'a, T> {
    /// Dropped first, so that the report is made while the lock is held.
    holding: Holding<'a>,
    inner: MutexGuard<'a, T>,
}

/// Reports, when dropped, that the lock is released.
struct Holding<'a>(&'a Waiters);

impl Drop for Holding<'_> {
    #[inline]
    fn drop(&mut self) {
        // A waiter missed here has only just arrived and is charged to the next holder.
        if cfg!(feature = "profiler") && self.0.count.load(Ordering::Relaxed) != 0 {
            self.0.report_holder();
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

/// A condition variable for use with a [`NamedMutex`].
pub struct NamedCondvar {
    /// Kind and name of its waits; `None` if waiters report their own.
    waits: Option<(WaitKind, &'static str)>,
    inner: Condvar,
}

impl NamedCondvar {
    /// A condition variable whose waits have this kind and name.
    pub const fn new(kind: WaitKind, name: &'static str) -> NamedCondvar {
        NamedCondvar { waits: Some((kind, name)), inner: Condvar::new() }
    }

    /// A condition variable whose waiters call [`wait::begin`] themselves, because only they know
    /// the reason.
    pub const fn named_by_waiters() -> NamedCondvar {
        NamedCondvar { waits: None, inner: Condvar::new() }
    }

    /// Releases the lock and waits until notified, or spuriously.
    pub fn wait<'a, T>(&self, guard: NamedGuard<'a, T>) -> NamedGuard<'a, T> {
        let NamedGuard { holding, inner } = guard;
        let waiters = holding.0;
        drop(holding);
        let waiting = self.begin();
        let inner = self.inner.wait(inner).unwrap_or_else(PoisonError::into_inner);
        drop(waiting);
        NamedGuard { holding: Holding(waiters), inner }
    }

    /// As [`NamedCondvar::wait`], for at most `time_max`.
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

    /// Another thread ends the wait, also if that one waits for the disk.
    fn begin(&self) -> (Option<Waiting>, Resting) {
        (self.waits.map(|(kind, name)| wait::begin(kind, name)), tag::rest())
    }

    /// Wakes one waiter.
    pub fn notify_one(&self) {
        self.inner.notify_one();
    }

    /// Wakes all waiters.
    pub fn notify_all(&self) {
        self.inner.notify_all();
    }
}

/// Parks the calling thread, for at most `time_max`. May return spuriously.
pub fn park(kind: WaitKind, name: &'static str, time_max: Option<Duration>) {
    let _waiting = wait::begin(kind, name);
    match time_max {
        None => std::thread::park(),
        Some(time_max) => std::thread::park_timeout(time_max),
    }
}

#[cfg(test)]
mod tests;
