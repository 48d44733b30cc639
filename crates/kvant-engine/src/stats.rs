//! Statistics of the engine: a snapshot of counters and sizes, serialised as `/v0/stats`.

use serde::Serialize;

kvant_base::named_enum! {
    /// Why writes are delayed or rejected.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
    #[serde(rename_all = "snake_case")]
    pub enum StallReason {
        /// Too many sealed memtables wait for their flush.
        Memtables = "memtables",
        /// Too many level-0 tables wait for compaction.
        L0Tables = "l0_tables",
        /// The interval sync is overdue.
        SyncOverdue = "sync_overdue",
    }
}

/// A snapshot of all statistics. Figures of different parts may be a few operations apart; counters
/// start at 0 when the database is opened.
#[derive(Clone, Debug, Serialize)]
pub struct Stats {
    /// One row per level.
    pub levels: Vec<LevelStats>,
    pub memtables: MemtableStats,
    pub block_cache: CacheStats,
    pub reads: ReadStats,
    pub writes: WriteStats,
    pub wal: WalStats,
    pub flushes: JobStats,
    pub compactions: JobStats,
    /// One row per [`StallReason`].
    pub stalls: Vec<StallStats>,
    pub space: SpaceStats,
    pub snapshots: SnapshotStats,
    pub memory: MemoryStats,
    pub recovery: RecoveryStats,
    /// The error that fenced writes, if any.
    pub fenced: Option<String>,
    /// Whether writes that need space are rejected now.
    pub disk_full: bool,
    /// Largest sequence number visible to readers.
    pub visible_seq: u64,
}

/// One level of the tree.
#[derive(Clone, Debug, Default, Serialize)]
pub struct LevelStats {
    pub level: usize,
    pub table_count: u64,
    pub bytes: u64,
    /// Target size; 0 for level 0 and levels not in use.
    pub target_bytes: u64,
    /// Urgency of a compaction out of this level: due at 1.0 and above.
    pub score: f64,
    pub entry_count: u64,
    pub tombstone_count: u64,
    /// Bytes written into this level by flushes and compactions.
    pub written_bytes: u64,
}

#[derive(Clone, Debug, Default, Serialize)]
pub struct MemtableStats {
    pub active_bytes: u64,
    pub sealed_count: u64,
    pub sealed_bytes: u64,
    /// Memory kept for the next memtables.
    pub spare_bytes: u64,
    /// Chunks of memory that memtables have taken.
    pub chunk_count: u64,
    /// Of these, chunks that were not prepared in time: a write waited for their memory.
    pub chunk_unprepared_count: u64,
}

#[derive(Clone, Debug, Default, Serialize)]
pub struct CacheStats {
    pub capacity_bytes: u64,
    pub used_bytes: u64,
    pub entry_count: u64,
    pub hit_count: u64,
    pub miss_count: u64,
    pub evicted_count: u64,
}

/// Reads and their cost. The share of absent reads that fetched a block is
/// `absent_block_fetch_count / absent_count`; a present key costs `present_block_fetch_count /
/// present_from_table_count` fetches.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ReadStats {
    pub get_count: u64,
    pub present_count: u64,
    /// Present keys found in a table.
    pub present_from_table_count: u64,
    pub absent_count: u64,
    /// Data blocks fetched, from cache or disk, by reads that found their key.
    pub present_block_fetch_count: u64,
    /// Data blocks fetched, from cache or disk, by reads that found nothing.
    pub absent_block_fetch_count: u64,
    pub filter_probe_count: u64,
    pub filter_negative_count: u64,
    pub range_count: u64,
    pub range_record_count: u64,
    /// Tombstones, expired and shadowed versions skipped by ranges.
    pub range_skipped_count: u64,
    /// Blocks read from files, index and filter blocks included.
    pub disk_read_count: u64,
    pub disk_read_bytes: u64,
}

#[derive(Clone, Debug, Default, Serialize)]
pub struct WriteStats {
    pub operation_count: u64,
    pub group_count: u64,
    /// Key and value bytes of users' writes.
    pub user_bytes: u64,
    /// Bytes written to the log, tables and manifest, divided by `user_bytes`.
    pub amplification: f64,
}

#[derive(Clone, Debug, Default, Serialize)]
pub struct WalStats {
    pub file_count: u64,
    pub bytes: u64,
    pub written_bytes: u64,
    pub sync_count: u64,
    pub sync_us_total: u64,
    pub sync_us_max: u64,
}

/// Flushes or compactions.
#[derive(Clone, Debug, Default, Serialize)]
pub struct JobStats {
    pub running: u64,
    pub count: u64,
    pub failed_count: u64,
    pub read_bytes: u64,
    pub written_bytes: u64,
    pub busy_us_total: u64,
    /// Bytes to compact until no level exceeds its target.
    pub debt_bytes: u64,
}

#[derive(Clone, Debug, Serialize)]
pub struct StallStats {
    pub reason: StallReason,
    pub count: u64,
    pub us_total: u64,
    pub active: bool,
}

/// Bytes on disk.
#[derive(Clone, Debug, Default, Serialize)]
pub struct SpaceStats {
    /// Tables of the current version.
    pub live_bytes: u64,
    /// Files of no version, waiting for removal.
    pub obsolete_bytes: u64,
    /// Tables held only by open iterators and snapshots.
    pub pinned_bytes: u64,
    pub wal_bytes: u64,
    pub available_bytes: u64,
}

#[derive(Clone, Debug, Default, Serialize)]
pub struct SnapshotStats {
    pub open_count: u64,
    /// Age of the oldest snapshot or iterator, in milliseconds.
    pub oldest_age_ms: u64,
}

#[derive(Clone, Debug, Default, Serialize)]
pub struct MemoryStats {
    pub limit_bytes: u64,
    pub used_bytes: u64,
    /// Name and bytes of each consumer.
    pub consumers: Vec<(&'static str, u64)>,
}

#[derive(Clone, Debug, Default, Serialize)]
pub struct RecoveryStats {
    pub us: u64,
    pub wal_bytes: u64,
    pub wal_record_count: u64,
    /// Discarded bytes after the valid part of the log.
    pub discarded_bytes: u64,
}
