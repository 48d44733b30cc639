//! The last failure of one kind of work.

use kvant_base::lock::NamedMutex;
use kvant_base::{Error, ErrorKind};
use std::sync::atomic::{AtomicBool, Ordering};

/// The last failure since the last success. A success costs one load unless there was a failure
/// before it.
pub(crate) struct LastFailure {
    failed: AtomicBool,
    last: NamedMutex<Option<(u64, Error)>>,
}

impl LastFailure {
    pub(crate) fn new() -> LastFailure {
        LastFailure { failed: AtomicBool::new(false), last: NamedMutex::new("last_failure", None) }
    }

    /// Remembers an error of the operating system. Other errors are reported elsewhere.
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

    pub(crate) fn get(&self) -> Option<(u64, Error)> {
        self.last.lock().clone()
    }
}
