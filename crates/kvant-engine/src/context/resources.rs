//! What the process shares with a database.

use crate::options::Options;
use kvant_base::log::{Log, NoLog};
use kvant_base::{Events, MemoryBudget};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What the process shares with a database.
#[derive(Clone)]
pub struct Resources {
    /// The memory budget, which other parts of the process share.
    pub memory: Arc<MemoryBudget>,
    /// Receives events as lines for people.
    pub log: Arc<dyn Log>,
    /// Receives flushes, compactions, stalls and slow fsyncs, with their times. Listeners are
    /// called by the engine's threads, some of which hold its locks: they must not call the
    /// database.
    pub events: Arc<Events>,
    /// Shows how far recovery is.
    pub progress: Arc<RecoveryProgress>,
}

impl Resources {
    /// A budget of its own, of `options.memory_bytes`, and no log.
    pub fn new(options: &Options) -> Resources {
        Resources {
            memory: MemoryBudget::new(options.memory_bytes),
            log: Arc::new(NoLog),
            events: Events::new(1),
            progress: Arc::default(),
        }
    }
}

/// How far recovery is.
#[derive(Debug, Default)]
pub struct RecoveryProgress {
    pub(crate) done_bytes: AtomicU64,
    pub(crate) total_bytes: AtomicU64,
}

impl RecoveryProgress {
    /// Whole per cent of the log that have been replayed: 0 to 100.
    pub fn per_cent(&self) -> u64 {
        let total = self.total_bytes.load(Ordering::Relaxed);
        let done = self.done_bytes.load(Ordering::Relaxed).min(total);
        (done * 100).checked_div(total).unwrap_or(0)
    }
}
