//! What the storage work of reads consisted of: a read that waits for a worker waits for that.

use super::evidence::{OperationWindow, Phase, Window};

/// Time of reads in the storage.
#[derive(Clone, Copy, Default)]
pub(super) struct ReadSums {
    storage_ns: u64,
    block_read_ns: u64,
}

impl ReadSums {
    pub(super) fn of<'a>(windows: impl IntoIterator<Item = &'a OperationWindow>) -> ReadSums {
        let mut sums = ReadSums::default();
        for of in windows {
            let storage_ns = of.phases_ns.map_or(0, |phases_ns| phases_ns[Phase::Storage as usize]);
            sums.add(ReadSums { storage_ns, block_read_ns: of.block_read_ns });
        }
        sums
    }

    /// Of all reads of a window.
    pub(super) fn of_window(window: &Window) -> ReadSums {
        let reads = window.operations.iter().filter(|(name, _)| !is_write(name));
        ReadSums::of(reads.map(|(_, of)| of))
    }

    pub(super) fn add(&mut self, other: ReadSums) {
        self.storage_ns += other.storage_ns;
        self.block_read_ns += other.block_read_ns;
    }

    /// The part of the storage work that was block reads; `None` without any work.
    pub(super) fn part(&self) -> Option<f64> {
        let has_work = self.storage_ns > 0;
        has_work.then(|| (self.block_read_ns as f64 / self.storage_ns as f64).min(1.0))
    }
}

/// Whether requests of an operation are written in batches, which wait for no worker of reads.
pub(super) fn is_write(operation: &str) -> bool {
    matches!(operation, "put" | "delete")
}
