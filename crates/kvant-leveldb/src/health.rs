//! Whether writes succeed.
//!
//! Invariant: after a failed write or sync no write reaches LevelDB until the database is opened
//! again. LevelDB itself goes on after some failures, although the position in its log is then
//! wrong and what follows cannot be read back.
//!
//! Threads: any.

use kvant_base::lock::NamedMutex;
use kvant_base::log::{Level, Log};
use kvant_base::{Error, ErrorKind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether writes succeed.
#[derive(Clone, Debug)]
pub enum WriteHealth {
    /// As far as is known: LevelDB reports a failed flush or compaction with the next write.
    Good,
    /// There is no space for puts.
    NoSpace,
    /// Writes are refused until a restart, for this first cause.
    Fenced(Error),
}

pub(crate) struct Fence {
    is_set: AtomicBool,
    cause: NamedMutex<Option<Error>>,
    log: Arc<dyn Log>,
}

impl Fence {
    pub(crate) fn new(log: Arc<dyn Log>) -> Fence {
        let cause = NamedMutex::new("leveldb_fence", None);
        Fence { is_set: AtomicBool::new(false), cause, log }
    }

    /// Refuses writes from now on. The first cause stays.
    pub(crate) fn set(&self, error: &Error) {
        let mut cause = self.cause.lock();
        if cause.is_none() {
            self.log.event(Level::Error, "writes_fenced", &[("cause", error)]);
            *cause = Some(error.clone().with_kind(ErrorKind::Fenced));
            self.is_set.store(true, Ordering::Release);
        }
    }

    /// Why writes are refused, if they are.
    pub(crate) fn cause(&self) -> Option<Error> {
        if !self.is_set.load(Ordering::Acquire) {
            return None;
        }
        self.cause.lock().clone()
    }
}
