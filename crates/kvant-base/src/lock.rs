//! A mutex with a name and a count of how often it was contended.
//!
//! A panic while a lock is held aborts the process in release builds, so there is no poisoning to handle: in tests the panic that
//! poisoned a lock is the failure to look at, and the next holder goes on.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError, TryLockError};

/// A named mutex.
pub struct NamedMutex<T> {
    name: &'static str,
    contended_count: AtomicU64,
    inner: Mutex<T>,
}

impl<T> NamedMutex<T> {
    /// A mutex around `value`; `name` is what statistics and profiles call it.
    pub const fn new(name: &'static str, value: T) -> Self {
        NamedMutex {
            name,
            contended_count: AtomicU64::new(0),
            inner: Mutex::new(value),
        }
    }

    /// Takes the lock, waiting for it when another thread holds it.
    #[inline]
    pub fn lock(&self) -> MutexGuard<'_, T> {
        match self.inner.try_lock() {
            Ok(guard) => guard,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => {
                self.contended_count.fetch_add(1, Ordering::Relaxed);
                self.inner.lock().unwrap_or_else(PoisonError::into_inner)
            }
        }
    }

    /// What statistics and profiles call this lock.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// How often [`NamedMutex::lock`] found the lock held.
    pub fn contended_count(&self) -> u64 {
        self.contended_count.load(Ordering::Relaxed)
    }
}

/// Waits on `condvar`, giving up `guard` meanwhile.
pub fn wait<'a, T>(condvar: &Condvar, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
    condvar.wait(guard).unwrap_or_else(PoisonError::into_inner)
}
