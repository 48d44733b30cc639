//! Whether there is a store to serve.
//!
//! Threads: every request reads it, so reading is one load; each part is set once.

use crate::http::Problem;
use crate::store::Store;
use std::sync::{Arc, OnceLock};

/// Reports how much of a recovery is done, in per cent.
pub(crate) type RecoveryPerCent = Box<dyn Fn() -> u64 + Send + Sync>;

#[derive(Default)]
pub(crate) struct Lifecycle {
    store: OnceLock<Arc<dyn Store>>,
    failed: OnceLock<String>,
    recovery_per_cent: OnceLock<RecoveryPerCent>,
}

impl Lifecycle {
    /// The store, once recovery has finished.
    #[inline]
    pub(crate) fn store(&self) -> Option<&Arc<dyn Store>> {
        self.store.get()
    }

    /// The store, or why there is none.
    #[inline]
    pub(crate) fn ready(&self) -> Result<&Arc<dyn Store>, Problem> {
        self.store.get().ok_or_else(|| self.not_ready())
    }

    #[cold]
    fn not_ready(&self) -> Problem {
        match self.failed.get() {
            Some(reason) => Problem::failed(reason),
            None => Problem::recovering(self.recovery_per_cent.get().map_or(0, |done| done())),
        }
    }

    pub(crate) fn set_recovering(&self, per_cent: RecoveryPerCent) {
        self.recovery_per_cent.get_or_init(|| per_cent);
    }

    pub(crate) fn set_ready(&self, store: Arc<dyn Store>) {
        self.store.get_or_init(|| store);
    }

    pub(crate) fn set_failed(&self, reason: String) {
        self.failed.get_or_init(|| reason);
    }
}
