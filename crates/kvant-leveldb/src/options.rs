//! Settings of the engine.

use crate::ffi::Tuning;
use std::time::Duration;

/// The failures that an acknowledged write survives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyncLevel {
    /// Written to the operating system: survives a crash of the process, not a power loss.
    Os,
    /// As `Os`, and the logs are synced once per interval; writes wait when a sync is overdue by
    /// more than an interval.
    Interval(Duration),
    /// Synced: survives a power loss.
    Always,
}

/// Settings of one database.
#[derive(Clone, Debug)]
pub struct Options {
    /// When a write is acknowledged.
    pub sync: SyncLevel,
    /// The whole memory budget, in bytes, which write buffers and cache follow from.
    pub memory_bytes: u64,
    /// Compresses the blocks of new tables with Snappy.
    pub compresses: bool,
}

impl Options {
    /// Size at which a memtable becomes a table: a sixteenth of the memory, within 4 and 64 MiB.
    /// LevelDB holds two of them.
    pub(crate) fn write_buffer_bytes(&self) -> u64 {
        (self.memory_bytes / 16).clamp(4 << 20, 64 << 20)
    }

    /// Capacity of LevelDB's block cache: three eighths of the memory.
    pub(crate) fn cache_bytes(&self) -> u64 {
        self.memory_bytes / 8 * 3
    }

    pub(crate) fn tuning(&self, creates: bool) -> Tuning {
        let bytes = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
        Tuning {
            creates,
            is_new: false,
            write_buffer_bytes: bytes(self.write_buffer_bytes()),
            cache_bytes: bytes(self.cache_bytes()),
            compresses: self.compresses,
        }
    }
}
