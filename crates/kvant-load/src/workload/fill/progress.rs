//! How far a fill is.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// Progress of a running fill.
#[derive(Debug, Default)]
pub struct FillProgress {
    pub(super) stored_keys: AtomicU64,
    pub(super) stored_bytes: AtomicU64,
    pub(super) resent: AtomicU64,
    /// The first failure, which ends the fill.
    pub(super) failure: OnceLock<String>,
}

impl FillProgress {
    /// Acknowledged keys.
    pub fn stored_keys(&self) -> u64 {
        self.stored_keys.load(Ordering::Relaxed)
    }

    /// Bytes of acknowledged keys and values.
    pub fn stored_bytes(&self) -> u64 {
        self.stored_bytes.load(Ordering::Relaxed)
    }

    /// Retries.
    pub fn resent(&self) -> u64 {
        self.resent.load(Ordering::Relaxed)
    }

    pub(super) fn fail(&self, message: String) {
        self.failure.get_or_init(|| message);
    }
}
