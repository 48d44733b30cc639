//! Whether writes succeed, for those who watch the database.
//!
//! A write that fails says so to its client; here it is remembered for [`crate::Db::write_health`]
//! until a write succeeds, or for [`KEPT_NS`]: where a load balancer sends no more writes because
//! of the failure, none would ever succeed. Flushes and compactions repeat themselves, so their
//! failures count until they succeed, but only while writes are held back because of them.
//!
//! Threads: any; a success is one load unless there was a failure before it.

use super::core::Core;
use kvant_base::lock::NamedMutex;
use kvant_base::{Error, ErrorKind};
use std::sync::atomic::{AtomicBool, Ordering};

/// How long a failed write counts when no other follows.
const KEPT_NS: u64 = 30_000_000_000;

/// Whether writes succeed.
#[derive(Clone, Debug)]
pub enum WriteHealth {
    /// As far as is known.
    Good,
    /// The disk is full: what needs space is refused until space has returned.
    NoSpace,
    /// The last ones failed: why. The next may succeed.
    Failing(Error),
    /// None will before the database is opened anew: the first cause.
    Fenced(Error),
}

/// The last failure since the last success.
pub(crate) struct LastFailure {
    failed: AtomicBool,
    last: NamedMutex<Option<(u64, Error)>>,
}

impl LastFailure {
    pub(crate) fn new() -> LastFailure {
        LastFailure { failed: AtomicBool::new(false), last: NamedMutex::new("last_failure", None) }
    }

    /// Remembers an error of the operating system; others are told of elsewhere, or are not its
    /// own.
    pub(crate) fn note(&self, error: &Error, now_ns: u64) {
        if error.kind() == ErrorKind::Io {
            *self.last.lock() = Some((now_ns, error.clone()));
            self.failed.store(true, Ordering::Release);
        }
    }

    pub(crate) fn note_success(&self) {
        if self.failed.load(Ordering::Acquire) {
            self.failed.store(false, Ordering::Release);
            *self.last.lock() = None;
        }
    }

    /// The failure, and when it was.
    fn get(&self) -> Option<(u64, Error)> {
        self.last.lock().clone()
    }
}

impl Core {
    pub(crate) fn write_health(&self) -> WriteHealth {
        if let Some(cause) = self.fence.cause() {
            return WriteHealth::Fenced(cause.clone());
        }
        let now_ns = self.env.clock.monotonic_ns();
        if let Some((at_ns, error)) = self.write_failure.get()
            && now_ns.saturating_sub(at_ns) < KEPT_NS
        {
            return WriteHealth::Failing(error);
        }
        if self.gate.stall().is_some()
            && let Some((_, error)) =
                self.flush_failure.get().or_else(|| self.compaction_failure.get())
        {
            return WriteHealth::Failing(error);
        }
        // This looks, as puts do, whether space has returned.
        match self.admit_to_disk(true) {
            Ok(()) => WriteHealth::Good,
            Err(_) => WriteHealth::NoSpace,
        }
    }
}
