//! Whether there is a store to serve.
//!
//! Threads: every request reads it, so reading is one load. The store is set once.

use crate::http::Problem;
use crate::store::Backend;
use kvant_base::Error;
use kvant_base::lock::NamedMutex;
use std::sync::OnceLock;
use tokio::sync::Notify;

/// Reports how much of a recovery is done, in per cent.
pub(crate) type RecoveryPerCent = Box<dyn Fn() -> u64 + Send + Sync>;

pub(crate) struct Lifecycle {
    store: OnceLock<Backend>,
    /// Notified when there is a store.
    stored: Notify,
    recovery_per_cent: OnceLock<RecoveryPerCent>,
    /// Why the cluster that has the data cannot be reached.
    away: NamedMutex<Option<Error>>,
}

impl Default for Lifecycle {
    fn default() -> Lifecycle {
        Lifecycle {
            store: OnceLock::new(),
            stored: Notify::new(),
            recovery_per_cent: OnceLock::new(),
            away: NamedMutex::new("cluster_away", None),
        }
    }
}

impl Lifecycle {
    /// The store, once recovery has finished.
    #[inline]
    pub(crate) fn store(&self) -> Option<&Backend> {
        self.store.get()
    }

    /// The store, as soon as there is one.
    pub(crate) async fn wait_for_store(&self) -> &Backend {
        loop {
            let stored = self.stored.notified();
            if let Some(store) = self.store.get() {
                return store;
            }
            stored.await;
        }
    }

    /// The store, or why there is none.
    #[inline]
    pub(crate) fn ready(&self) -> Result<&Backend, Problem> {
        self.store.get().ok_or_else(|| self.not_ready())
    }

    #[cold]
    fn not_ready(&self) -> Problem {
        if let Some(cause) = &*self.away.lock() {
            return Problem::away(cause);
        }
        Problem::recovering(self.recovery_per_cent.get().map_or(0, |done| done()))
    }

    pub(crate) fn set_recovering(&self, per_cent: RecoveryPerCent) {
        self.recovery_per_cent.get_or_init(|| per_cent);
    }

    pub(crate) fn set_away(&self, cause: &Error) {
        *self.away.lock() = Some(cause.clone());
    }

    pub(crate) fn set_ready(&self, store: Backend) {
        self.store.get_or_init(|| store);
        self.stored.notify_waiters();
    }
}
