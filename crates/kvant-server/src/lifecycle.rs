//! Whether there is a store to serve yet.
//!
//! Threads: every request reads it, so reading is one load; it changes once.

use crate::problem::Problem;
use crate::stores::Store;
use kvant_engine::RecoveryProgress;
use std::sync::{Arc, OnceLock};

/// The server's state with respect to its store.
#[derive(Default)]
pub(crate) struct Lifecycle {
    store: OnceLock<Arc<dyn Store>>,
    failed: OnceLock<String>,
    /// Written by whoever opens the store.
    pub(crate) progress: Arc<RecoveryProgress>,
}

impl Lifecycle {
    /// The store, once recovery has finished.
    #[inline]
    pub(crate) fn store(&self) -> Option<&Arc<dyn Store>> {
        self.store.get()
    }

    /// The store, or why entities cannot be served.
    #[inline]
    pub(crate) fn ready(&self) -> Result<&Arc<dyn Store>, Problem> {
        self.store.get().ok_or_else(|| self.not_ready())
    }

    #[cold]
    fn not_ready(&self) -> Problem {
        match self.failed() {
            Some(reason) => Problem::failed(reason),
            None => Problem::recovering(self.progress.per_cent()),
        }
    }

    /// Why there will be no store.
    pub(crate) fn failed(&self) -> Option<&str> {
        self.failed.get().map(String::as_str)
    }

    pub(crate) fn set_ready(&self, store: Arc<dyn Store>) {
        self.store.get_or_init(|| store);
    }

    pub(crate) fn set_failed(&self, reason: String) {
        self.failed.get_or_init(|| reason);
    }
}
