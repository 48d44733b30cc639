//! Settings of the engine. Most are derived from the memory budget.

use kvant_base::limits;
use std::time::Duration;

/// The failures that an acknowledged write survives. See `docs/durability.md`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyncLevel {
    /// Written to the operating system: survives a crash of the process, not a power loss.
    Os,
    /// As `Os`, and the log is synced once per interval; writes wait when a sync is overdue by more
    /// than an interval.
    Interval(Duration),
    /// Synced: survives a power loss.
    Always,
}

/// How the blocks of a table are compressed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Compression {
    /// Uncompressed.
    #[default]
    None = 0,
    /// LZ4: fast in both directions.
    Lz4 = 1,
    /// Zstandard, level 1: smaller, slower to read and write.
    Zstd = 2,
}

impl Compression {
    /// The inverse of `as u8`; `None` for an unknown byte.
    pub(crate) fn from_byte(byte: u8) -> Option<Compression> {
        let all = [Compression::None, Compression::Lz4, Compression::Zstd];
        all.get(usize::from(byte)).copied()
    }
}

/// What compaction saves at the expense of the others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CompactionGoal {
    /// Space, and time of reads: few tables of level 0, and little above the last level.
    #[default]
    Space,
    /// Writes: larger memtables, and more tables in level 0 before they are merged.
    Writes,
}

/// Settings of one database. [`Options::for_memory`] derives all of them from the budget.
#[derive(Clone, Debug)]
pub struct Options {
    /// When a write is acknowledged. Default: every second. `Always` costs one fsync per group of
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
    /// Entries at which the active memtable is sealed, whatever its size. Recovery time depends on
    /// entries rather than bytes; the default, the number of smallest records in 32 MiB, lets all
    /// memtables be recovered within a second.
    pub memtable_entries_max: u64,
    /// Sealed memtables that may wait for their flush before writes stall.
    pub memtables_sealed_max: usize,
    /// Target size of a table, in bytes.
    pub table_bytes: u64,
    /// Target size of a data block before compression, in bytes. Larger: smaller index, better
    /// compression, slower point reads.
    pub block_bytes: usize,
    /// Compression of the tables of each level.
    pub compression: [Compression; limits::LEVELS],
    /// Whether tables are read past the page cache of the system, but for reads of more than 64
    /// KiB, as compactions do. For data several times the memory
    /// of the machine or control group, most of which should then be `memory_bytes`: nothing else
    /// caches what is read. Default: false.
    pub direct_reads: bool,
    /// What compaction saves. [`Options::for_goal`] sets what follows from it.
    pub goal: CompactionGoal,
    /// Level-0 tables at which a compaction is due.
    pub l0_compact_count: usize,
    /// Level-0 tables above which writes are slowed in proportion to the excess.
    pub l0_slow_count: usize,
    /// Level-0 tables at which writes stop until a compaction has caught up.
    pub l0_stop_count: usize,
    /// Ratio of the sizes of neighbouring levels.
    pub level_ratio: u64,
    /// Bytes above the last level, as a share of the last level, at which compaction continues
    /// although no level exceeds its target. Bounds space amplification to one plus this share and
    /// half a memtable; with [`CompactionGoal::Writes`], and as many memtables as level 0 may have
    /// tables.
    pub space_amplification_share: f64,
    /// Share of point reads of absent keys that may fetch a data block, over all levels.
    pub filter_false_positive_share: f64,
}

/// Records of 64 bytes, the smallest there are in a memtable, in 32 MiB.
const MEMTABLE_ENTRIES_MAX: u64 = (32 << 20) / 64;

impl Options {
    /// Settings for a budget of `memory_bytes`.
    pub fn for_memory(memory_bytes: u64) -> Options {
        Options::for_goal(memory_bytes, CompactionGoal::default())
    }

    /// Settings for a budget of `memory_bytes` with which compaction saves `goal`. Decision 0015
    /// has the cost model.
    pub fn for_goal(memory_bytes: u64, goal: CompactionGoal) -> Options {
        let space = Options {
            sync: SyncLevel::Interval(Duration::from_secs(1)),
            memory_bytes,
            value_bytes_max: limits::VALUE_BYTES_MAX_DEFAULT.min(memory_bytes / 4),
            memtable_bytes: (memory_bytes / 16).clamp(4 << 20, 128 << 20),
            memtable_entries_max: MEMTABLE_ENTRIES_MAX,
            memtables_sealed_max: 3,
            table_bytes: (memory_bytes / 4).clamp(8 << 20, 64 << 20),
            block_bytes: 4096,
            compression: [Compression::Lz4; limits::LEVELS],
            direct_reads: false,
            goal,
            l0_compact_count: 4,
            l0_slow_count: 8,
            l0_stop_count: 16,
            level_ratio: 10,
            space_amplification_share: 0.2,
            filter_false_positive_share: 0.008,
        };
        match goal {
            CompactionGoal::Space => space,
            CompactionGoal::Writes => Options {
                memtable_bytes: (memory_bytes / 6).clamp(4 << 20, 128 << 20),
                memtables_sealed_max: 2,
                l0_compact_count: 16,
                l0_slow_count: 24,
                l0_stop_count: 40,
                level_ratio: 5,
                space_amplification_share: 1.0,
                ..space
            },
        }
    }

    /// What is wrong with these settings, one sentence per problem; empty when they are valid.
    pub fn problems(&self) -> Vec<String> {
        let Options {
            memory_bytes: memory,
            value_bytes_max: value,
            memtable_bytes: memtable,
            memtables_sealed_max: sealed,
            table_bytes: table,
            block_bytes: block,
            l0_compact_count: compact,
            l0_slow_count: slow,
            l0_stop_count: stop,
            level_ratio: ratio,
            space_amplification_share: space,
            filter_false_positive_share: false_positives,
            ..
        } = *self;
        let least = limits::MEMORY_BYTES_MIN;
        let checks = [
            (memory >= least, format!("memory of {memory} bytes is below the minimum of {least}")),
            (
                value <= (memory / 4).min(limits::VALUE_BYTES_MAX_LIMIT),
                format!(
                    "values of {value} bytes exceed a quarter of the memory ({memory} bytes) or \
                     1 GiB"
                ),
            ),
            (
                memtable.saturating_mul(sealed as u64 + 1) <= memory / 2,
                format!(
                    "{sealed} sealed memtables and the active one of {memtable} bytes exceed half \
                     of the memory"
                ),
            ),
            (sealed >= 1, "at least one sealed memtable is needed to flush".into()),
            (memtable >= 4096, format!("a memtable of {memtable} bytes is too small")),
            (self.memtable_entries_max >= 1, "a memtable of no entries is too small".into()),
            (table >= 4096, format!("tables of {table} bytes are too small")),
            (
                (256..=1 << 20).contains(&block),
                format!("blocks of {block} bytes are not within 256 bytes and 1 MiB"),
            ),
            (
                1 <= compact && compact <= slow && slow < stop,
                format!("level-0 counts must rise: compact {compact} <= slow {slow} < stop {stop}"),
            ),
            (ratio >= 2, format!("a level ratio of {ratio} is below 2")),
            (space > 0.0, format!("a space amplification share of {space} is not positive")),
            (
                false_positives > 0.0 && false_positives < 1.0,
                format!("a false-positive share of {false_positives} is not between 0 and 1"),
            ),
            (
                self.sync != SyncLevel::Interval(Duration::ZERO),
                "a sync interval of zero: use `always`".into(),
            ),
        ];
        checks.into_iter().filter(|(holds, _)| !holds).map(|(_, problem)| problem).collect()
    }
}
