//! Settings of the engine. Most follow from one number, the memory budget; each says what it does,
//! what it costs and when to change it.

use kvant_base::limits;
use std::time::Duration;

/// What an acknowledged write has survived when it is acknowledged. See `docs/durability.md`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyncLevel {
    /// Given to the operating system: survives the process, not a power loss.
    Os,
    /// As `Os`, and the log is synced once per interval; writes wait when a sync is overdue by more
    /// than an interval.
    Interval(Duration),
    /// Synced: survives a power loss.
    Always,
}

/// How the blocks of a table are compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Compression {
    /// Stored as they are.
    None = 0,
    /// LZ4: fast in both directions.
    Lz4 = 1,
    /// Zstandard, level 1: smaller, slower to read and write.
    Zstd = 2,
}

/// Settings of one database. [`Options::for_memory`] derives all from the budget.
#[derive(Clone, Debug)]
pub struct Options {
    /// When a write is acknowledged. Default: every second. Cost of `Always`: one fsync a group of
    /// writes.
    pub sync: SyncLevel,
    /// The whole memory budget, in bytes; at least [`limits::MEMORY_BYTES_MIN`].
    pub memory_bytes: u64,
    /// Longest accepted value, in bytes. At most a quarter of the memory and 1 GiB. Default: 16
    /// MiB.
    pub value_bytes_max: u64,
    /// Size at which the active memtable is sealed and flushed, in bytes. Larger: fewer flushes,
    /// less write amplification, longer recovery. Default: a sixteenth of the memory, at most 128
    /// MiB.
    pub memtable_bytes: u64,
    /// Entries at which it is sealed although it has fewer bytes. Default: as many as the smallest
    /// records make of 32 MiB, so that all memtables are recovered within a second: the time goes
    /// by entries, hardly by bytes.
    pub memtable_entries_max: u64,
    /// Sealed memtables that may wait for their flush before writes stall.
    pub memtables_sealed_max: usize,
    /// Target size of a table, in bytes.
    pub table_bytes: u64,
    /// Target size of a data block before compression, in bytes. Larger: smaller index, better
    /// compression, dearer point reads.
    pub block_bytes: usize,
    /// Compression of each level's tables.
    pub compression: [Compression; limits::LEVELS],
    /// Level-0 tables at which a compaction is due.
    pub l0_compact_count: usize,
    /// Level-0 tables at which writes are slowed in proportion to what is over.
    pub l0_slow_count: usize,
    /// Level-0 tables at which writes stop until a compaction has caught up.
    pub l0_stop_count: usize,
    /// Ratio of the sizes of neighbouring levels.
    pub level_ratio: u64,
    /// Data above the last level, as a share of the last level, beyond which compaction goes on
    /// although no level is over its target: bounds space amplification to one plus this, and half
    /// a memtable.
    pub space_amplification_share: f64,
    /// Part of the point reads of absent keys that may fetch a data block, all levels together.
    pub filter_false_positive_share: f64,
}

/// What 32 MiB of memtable hold of records that take 64 bytes there.
const MEMTABLE_ENTRIES_MAX: u64 = (32 << 20) / 64;

impl Options {
    /// Settings for a budget of `memory_bytes`.
    pub fn for_memory(memory_bytes: u64) -> Options {
        let memtable_bytes = (memory_bytes / 16).clamp(4 << 20, 128 << 20);
        Options {
            sync: SyncLevel::Interval(Duration::from_secs(1)),
            memory_bytes,
            value_bytes_max: limits::VALUE_BYTES_MAX_DEFAULT.min(memory_bytes / 4),
            memtable_bytes,
            memtable_entries_max: MEMTABLE_ENTRIES_MAX,
            memtables_sealed_max: 3,
            table_bytes: (memory_bytes / 4).clamp(8 << 20, 64 << 20),
            block_bytes: 4096,
            compression: [Compression::Lz4; limits::LEVELS],
            l0_compact_count: 4,
            l0_slow_count: 8,
            l0_stop_count: 16,
            level_ratio: 10,
            space_amplification_share: 0.2,
            filter_false_positive_share: 0.008,
        }
    }

    /// Everything that is wrong with these settings, a sentence each; empty when they can be used.
    pub fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        let mut require = |holds: bool, sentence: String| {
            if !holds {
                problems.push(sentence);
            }
        };
        let memory = self.memory_bytes;
        require(
            memory >= limits::MEMORY_BYTES_MIN,
            format!("memory of {memory} bytes is below the least of {}", limits::MEMORY_BYTES_MIN),
        );
        require(
            self.value_bytes_max <= (memory / 4).min(limits::VALUE_BYTES_MAX_LIMIT),
            format!(
                "values of {} bytes exceed a quarter of the memory ({memory} bytes) or 1 GiB",
                self.value_bytes_max
            ),
        );
        require(
            self.memtable_bytes.saturating_mul(self.memtables_sealed_max as u64 + 1) <= memory / 2,
            format!(
                "{} sealed memtables and the active one of {} bytes exceed half of the memory",
                self.memtables_sealed_max, self.memtable_bytes
            ),
        );
        require(
            self.memtables_sealed_max >= 1,
            "at least one sealed memtable is needed to flush".into(),
        );
        require(
            self.memtable_bytes >= 4096,
            format!("a memtable of {} bytes is too small", self.memtable_bytes),
        );
        require(self.memtable_entries_max >= 1, "a memtable of no entries is too small".into());
        require(
            self.table_bytes >= 4096,
            format!("tables of {} bytes are too small", self.table_bytes),
        );
        require(
            (256..=1 << 20).contains(&self.block_bytes),
            format!("blocks of {} bytes are not within 256 bytes and 1 MiB", self.block_bytes),
        );
        require(
            1 <= self.l0_compact_count
                && self.l0_compact_count <= self.l0_slow_count
                && self.l0_slow_count < self.l0_stop_count,
            format!(
                "level-0 counts must rise: compact {} <= slow {} < stop {}",
                self.l0_compact_count, self.l0_slow_count, self.l0_stop_count
            ),
        );
        require(self.level_ratio >= 2, format!("a level ratio of {} is below 2", self.level_ratio));
        require(
            self.space_amplification_share > 0.0,
            format!(
                "a space amplification share of {} is not positive",
                self.space_amplification_share
            ),
        );
        require(
            self.filter_false_positive_share > 0.0 && self.filter_false_positive_share < 1.0,
            format!(
                "a false-positive share of {} is not between 0 and 1",
                self.filter_false_positive_share
            ),
        );
        if let SyncLevel::Interval(interval) = self.sync {
            require(!interval.is_zero(), "a sync interval of zero: use `always`".into());
        }
        problems
    }
}
