//! The engine's statistics in the Prometheus text format.

use crate::http::metrics_text::{family, metric};
use kvant_engine::{JobStats, LevelStats, StallStats, Stats};

/// Name, kind, help text and value of a metric with labels.
type Figure<T, V> = (&'static str, &'static str, &'static str, fn(&T) -> V);

/// Appends every figure of `stats` that changes.
pub(super) fn write(stats: &Stats, out: &mut String) {
    let (reads, writes, wal, cache) = (&stats.reads, &stats.writes, &stats.wal, &stats.block_cache);
    let (from_table, evicted) = (reads.present_from_table_count, cache.evicted_count);
    let (present_fetches, absent_fetches) =
        (reads.present_block_fetch_count, reads.absent_block_fetch_count);
    let chunks = (stats.memtables.chunk_count, stats.memtables.chunk_unprepared_count);
    for (name, help, count) in [
        ("gets", "Point reads.", reads.get_count),
        ("gets_present", "Point reads that found their key.", reads.present_count),
        (
            "gets_present_from_table",
            "Point reads that found their key in a table, not in a memtable.",
            from_table,
        ),
        ("gets_absent", "Point reads that found nothing.", reads.absent_count),
        ("present_block_fetches", "Data blocks fetched for present keys.", present_fetches),
        ("absent_block_fetches", "Data blocks fetched for absent keys.", absent_fetches),
        ("filter_probes", "Filters asked.", reads.filter_probe_count),
        ("filter_negatives", "Filters that said no.", reads.filter_negative_count),
        ("ranges", "Ranges opened.", reads.range_count),
        ("range_records", "Records given by ranges.", reads.range_record_count),
        ("range_skipped", "Dead versions that ranges stepped over.", reads.range_skipped_count),
        ("disk_reads", "Reads of table files.", reads.disk_read_count),
        ("disk_read_bytes", "Bytes read from table files.", reads.disk_read_bytes),
        ("writes", "Operations committed.", writes.operation_count),
        ("write_groups", "Groups that shared a write of the log.", writes.group_count),
        ("user_bytes", "Key and value bytes given by users.", writes.user_bytes),
        ("wal_written_bytes", "Bytes written to the log.", wal.written_bytes),
        ("wal_syncs", "Syncs of the log.", wal.sync_count),
        ("wal_sync_us", "Microseconds in syncs of the log.", wal.sync_us_total),
        ("memtable_chunks", "Chunks of memory that memtables took.", chunks.0),
        (
            "memtable_chunks_unprepared",
            "Chunks of memory for memtables that were not prepared in time.",
            chunks.1,
        ),
        ("block_cache_hits", "Blocks found in the cache.", cache.hit_count),
        ("block_cache_misses", "Blocks not found in the cache.", cache.miss_count),
        ("block_cache_evictions", "Blocks that made room for others.", evicted),
    ] {
        metric(out, &format!("kvant_engine_{name}_total"), "counter", help, count as f64);
    }

    let (space, tables, snapshots) = (&stats.space, &stats.memtables, &stats.snapshots);
    let debt_bytes = stats.compactions.debt_bytes as f64;
    let (fenced, disk_full) = (u8::from(stats.fenced.is_some()), u8::from(stats.disk_full));
    for (name, help, value) in [
        ("memtable_active_bytes", "The memtable that takes writes.", tables.active_bytes as f64),
        ("memtables_sealed", "Memtables that wait for their flush.", tables.sealed_count as f64),
        (
            "memtables_sealed_bytes",
            "Size of the memtables that wait for their flush.",
            tables.sealed_bytes as f64,
        ),
        ("memtables_spare_bytes", "Memory kept for the next memtables.", tables.spare_bytes as f64),
        ("block_cache_used_bytes", "Size of the cached blocks.", cache.used_bytes as f64),
        ("block_cache_capacity_bytes", "What the cache may hold now.", cache.capacity_bytes as f64),
        ("wal_files", "Files of the log.", wal.file_count as f64),
        ("wal_bytes", "Size of the log.", wal.bytes as f64),
        (
            "write_amplification",
            "Bytes written to log, tables and manifest for a byte given by users.",
            writes.amplification,
        ),
        ("space_live_bytes", "Tables of the current version.", space.live_bytes as f64),
        ("space_obsolete_bytes", "Files that wait for removal.", space.obsolete_bytes as f64),
        ("space_pinned_bytes", "Tables kept for snapshots.", space.pinned_bytes as f64),
        ("space_available_bytes", "Free space of the device.", space.available_bytes as f64),
        ("snapshots_open", "Open snapshots and iterators.", snapshots.open_count as f64),
        (
            "snapshot_oldest_age_ms",
            "Age of the oldest snapshot or iterator.",
            snapshots.oldest_age_ms as f64,
        ),
        (
            "compaction_debt_bytes",
            "Bytes to compact until no level is over its target.",
            debt_bytes,
        ),
        ("recovery_us", "Duration of the last recovery.", stats.recovery.us as f64),
        ("fenced", "1 while writes are refused after a failed one.", fenced.into()),
        ("disk_full", "1 while puts find no space.", disk_full.into()),
    ] {
        metric(out, &format!("kvant_engine_{name}"), "gauge", help, value);
    }

    let jobs = [("flush", &stats.flushes), ("compaction", &stats.compactions)];
    let figures: [Figure<JobStats, u64>; 6] = [
        ("jobs_running", "gauge", "Flushes or compactions running now.", |job| job.running),
        ("jobs_total", "counter", "Flushes or compactions done.", |job| job.count),
        ("jobs_failed_total", "counter", "Flushes or compactions that failed.", |job| {
            job.failed_count
        }),
        ("job_read_bytes_total", "counter", "Bytes read by flushes or compactions.", |job| {
            job.read_bytes
        }),
        ("job_written_bytes_total", "counter", "Bytes written by flushes or compactions.", |job| {
            job.written_bytes
        }),
        ("job_busy_us_total", "counter", "Microseconds spent in flushes or compactions.", |job| {
            job.busy_us_total
        }),
    ];
    for (name, kind, help, figure) in figures {
        let rows = jobs.map(|(job, stats)| (format!("job=\"{job}\""), figure(stats) as f64));
        family(out, &format!("kvant_engine_{name}"), kind, help, rows);
    }

    let figures: [Figure<StallStats, u64>; 3] = [
        ("stalls_total", "counter", "Stalls of writes.", |stall| stall.count),
        ("stall_us_total", "counter", "Microseconds in stalls.", |stall| stall.us_total),
        ("stalled", "gauge", "1 during a stall.", |stall| stall.active.into()),
    ];
    for (name, kind, help, figure) in figures {
        let reason = |stall: &StallStats| format!("reason=\"{}\"", stall.reason.name());
        let rows = stats.stalls.iter().map(|stall| (reason(stall), figure(stall) as f64));
        family(out, &format!("kvant_engine_{name}"), kind, help, rows);
    }

    let figures: [Figure<LevelStats, f64>; 6] = [
        ("tables", "gauge", "Tables of a level.", |level| level.table_count as f64),
        ("bytes", "gauge", "Size of a level.", |level| level.bytes as f64),
        ("target_bytes", "gauge", "What a level should hold.", |level| level.target_bytes as f64),
        ("score", "gauge", "Urgency of compacting a level.", |level| level.score),
        ("tombstones", "gauge", "Tombstones of a level.", |level| level.tombstone_count as f64),
        ("written_bytes_total", "counter", "Bytes written into a level.", |level| {
            level.written_bytes as f64
        }),
    ];
    for (name, kind, help, figure) in figures {
        let label = |level: &LevelStats| format!("level=\"{}\"", level.level);
        let rows = stats.levels.iter().map(|level| (label(level), figure(level)));
        family(out, &format!("kvant_engine_level_{name}"), kind, help, rows);
    }
}
