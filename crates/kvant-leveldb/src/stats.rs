//! What LevelDB tells about itself, and what this crate counts.

use serde::Serialize;

/// Figures of one database.
#[derive(Clone, Debug, Serialize)]
pub struct Stats {
    /// The library's version.
    pub version: String,
    /// All levels, lowest first.
    pub levels: Vec<LevelStats>,
    /// Memtables and block cache, as LevelDB estimates them.
    pub approximate_memory_bytes: u64,
    /// Puts and deletes since the start.
    pub operation_count: u64,
    /// Writes of LevelDB that they shared.
    pub group_count: u64,
    /// Bytes of their keys and values.
    pub user_bytes: u64,
    /// Bytes that wait to be written.
    pub queued_bytes: usize,
    /// Syncs of all logs, beside LevelDB's own (`--sync interval`).
    pub log_sync_count: u64,
    /// The time that they took.
    pub log_sync_us_total: u64,
    /// Puts are refused for want of space.
    pub disk_full: bool,
    /// Why writes are refused.
    pub fenced: Option<String>,
    /// The property `leveldb.stats` as it is.
    pub text: String,
}

/// A row of `leveldb.stats`, which rounds to whole mebibytes and seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LevelStats {
    /// The level's number.
    pub level: u64,
    /// Tables.
    pub table_count: u64,
    /// Their size.
    pub mebibytes: u64,
    /// Seconds that compactions into the level took.
    pub compaction_s: u64,
    /// What these read,
    pub read_mebibytes: u64,
    /// and wrote.
    pub written_mebibytes: u64,
}

/// LevelDB's levels.
const LEVEL_COUNT: u64 = 7;

/// All levels, lowest first, from the rows of `leveldb.stats`: lines of six numbers, for levels
/// with tables or compactions.
pub(crate) fn levels(text: &str) -> Vec<LevelStats> {
    let row = |line: &str| {
        let cells: Option<Vec<u64>> =
            line.split_whitespace().map(|cell| cell.parse().ok()).collect();
        let cells: [u64; 6] = cells?.try_into().ok()?;
        let [level, table_count, mebibytes, compaction_s, read_mebibytes, written_mebibytes] =
            cells;
        Some(LevelStats {
            level,
            table_count,
            mebibytes,
            compaction_s,
            read_mebibytes,
            written_mebibytes,
        })
    };
    let rows: Vec<LevelStats> = text.lines().filter_map(row).collect();
    let of_level = |level| rows.iter().find(|row| row.level == level).copied();
    let empty = |level| LevelStats { level, ..LevelStats::default() };
    (0..LEVEL_COUNT).map(|level| of_level(level).unwrap_or_else(|| empty(level))).collect()
}

#[cfg(test)]
mod tests;
