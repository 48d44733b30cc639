//! The engine's statistics in the Prometheus text format.

use crate::http::metrics_text::{family as rows, metric};
use kvant_engine::{JobStats, Stats};

/// Appends every figure of `stats` that changes.
pub(super) fn write(stats: &Stats, out: &mut String) {
    let mut counter = |name: &str, help: &str, value: u64| {
        metric(out, &format!("kvant_engine_{name}_total"), "counter", help, value as f64);
    };
    let (reads, writes, wal, cache) = (&stats.reads, &stats.writes, &stats.wal, &stats.block_cache);
    counter("gets", "Point reads.", reads.get_count);
    counter("gets_present", "Point reads that found their key.", reads.present_count);
    counter(
        "gets_present_from_table",
        "Of these, not in a memtable.",
        reads.present_from_table_count,
    );
    counter("gets_absent", "Point reads that found nothing.", reads.absent_count);
    counter(
        "present_block_fetches",
        "Data blocks fetched for present keys.",
        reads.present_block_fetch_count,
    );
    counter(
        "absent_block_fetches",
        "Data blocks fetched for absent keys.",
        reads.absent_block_fetch_count,
    );
    counter("filter_probes", "Filters asked.", reads.filter_probe_count);
    counter("filter_negatives", "Filters that said no.", reads.filter_negative_count);
    counter("ranges", "Ranges opened.", reads.range_count);
    counter("range_records", "Records given by ranges.", reads.range_record_count);
    counter("range_skipped", "Dead versions that ranges stepped over.", reads.range_skipped_count);
    counter("disk_reads", "Reads of table files.", reads.disk_read_count);
    counter("disk_read_bytes", "Bytes read from table files.", reads.disk_read_bytes);
    counter("writes", "Operations committed.", writes.operation_count);
    counter("write_groups", "Groups that shared a write of the log.", writes.group_count);
    counter("user_bytes", "Key and value bytes given by users.", writes.user_bytes);
    counter("wal_written_bytes", "Bytes written to the log.", wal.written_bytes);
    counter("wal_syncs", "Syncs of the log.", wal.sync_count);
    counter("wal_sync_us", "Microseconds in syncs of the log.", wal.sync_us_total);
    counter("block_cache_hits", "Blocks found in the cache.", cache.hit_count);
    counter("block_cache_misses", "Blocks not found in the cache.", cache.miss_count);
    counter("block_cache_evictions", "Blocks that made room for others.", cache.evicted_count);

    let mut gauge = |name: &str, help: &str, value: f64| {
        metric(out, &format!("kvant_engine_{name}"), "gauge", help, value);
    };
    let (space, memtables) = (&stats.space, &stats.memtables);
    gauge(
        "memtable_active_bytes",
        "The memtable that takes writes.",
        memtables.active_bytes as f64,
    );
    gauge(
        "memtables_sealed",
        "Memtables that wait for their flush.",
        memtables.sealed_count as f64,
    );
    gauge("memtables_sealed_bytes", "Their size.", memtables.sealed_bytes as f64);
    gauge("block_cache_used_bytes", "Size of the cached blocks.", cache.used_bytes as f64);
    gauge(
        "block_cache_capacity_bytes",
        "What the cache may hold now.",
        cache.capacity_bytes as f64,
    );
    gauge("wal_files", "Files of the log.", wal.file_count as f64);
    gauge("wal_bytes", "Size of the log.", wal.bytes as f64);
    gauge("write_amplification", "Bytes written a byte given by users.", writes.amplification);
    gauge("space_live_bytes", "Tables of the current version.", space.live_bytes as f64);
    gauge("space_obsolete_bytes", "Files that wait for removal.", space.obsolete_bytes as f64);
    gauge("space_pinned_bytes", "Tables kept for snapshots.", space.pinned_bytes as f64);
    gauge("space_available_bytes", "Free space of the device.", space.available_bytes as f64);
    gauge("snapshots_open", "Open snapshots and iterators.", stats.snapshots.open_count as f64);
    gauge("snapshot_oldest_age_ms", "Age of the oldest.", stats.snapshots.oldest_age_ms as f64);
    gauge(
        "compaction_debt_bytes",
        "Bytes to compact until no level is over its target.",
        stats.compactions.debt_bytes as f64,
    );
    gauge("recovery_us", "Duration of the last recovery.", stats.recovery.us as f64);
    gauge(
        "fenced",
        "1 while writes are refused after a failed fsync.",
        f64::from(u8::from(stats.fenced.is_some())),
    );
    gauge("disk_full", "1 while writes find no space.", f64::from(u8::from(stats.disk_full)));

    let jobs = [("flush", &stats.flushes), ("compaction", &stats.compactions)];
    let mut by_job = |name: &str, kind: &str, help: &str, figure: fn(&JobStats) -> u64| {
        family(
            out,
            name,
            kind,
            help,
            jobs.iter().map(|(job, stats)| (format!("job=\"{job}\""), figure(stats) as f64)),
        );
    };
    by_job("jobs_running", "gauge", "Jobs running now.", |job| job.running);
    by_job("jobs_total", "counter", "Jobs done.", |job| job.count);
    by_job("jobs_failed_total", "counter", "Jobs failed.", |job| job.failed_count);
    by_job("job_read_bytes_total", "counter", "Bytes read by jobs.", |job| job.read_bytes);
    by_job("job_written_bytes_total", "counter", "Bytes written by jobs.", |job| job.written_bytes);
    by_job("job_busy_us_total", "counter", "Microseconds spent in jobs.", |job| job.busy_us_total);

    let by_reason =
        |stall: &kvant_engine::StallStats| format!("reason=\"{}\"", stall.reason.name());
    let stalls = || stats.stalls.iter();
    family(
        out,
        "stalls_total",
        "counter",
        "Stalls of writes.",
        stalls().map(|s| (by_reason(s), s.count as f64)),
    );
    family(
        out,
        "stall_us_total",
        "counter",
        "Microseconds in stalls.",
        stalls().map(|s| (by_reason(s), s.us_total as f64)),
    );
    family(
        out,
        "stalled",
        "gauge",
        "1 during a stall.",
        stalls().map(|s| (by_reason(s), f64::from(u8::from(s.active)))),
    );

    let levels = || stats.levels.iter().map(|level| (format!("level=\"{}\"", level.level), level));
    family(
        out,
        "level_tables",
        "gauge",
        "Tables of a level.",
        levels().map(|(l, s)| (l, s.table_count as f64)),
    );
    family(
        out,
        "level_bytes",
        "gauge",
        "Size of a level.",
        levels().map(|(l, s)| (l, s.bytes as f64)),
    );
    family(
        out,
        "level_target_bytes",
        "gauge",
        "What a level should hold.",
        levels().map(|(l, s)| (l, s.target_bytes as f64)),
    );
    family(
        out,
        "level_score",
        "gauge",
        "Urgency of compacting a level.",
        levels().map(|(l, s)| (l, s.score)),
    );
    family(
        out,
        "level_tombstones",
        "gauge",
        "Tombstones of a level.",
        levels().map(|(l, s)| (l, s.tombstone_count as f64)),
    );
    family(
        out,
        "level_written_bytes_total",
        "counter",
        "Bytes written into a level.",
        levels().map(|(l, s)| (l, s.written_bytes as f64)),
    );
}

/// Appends one metric of the engine with a row for each label.
fn family(
    out: &mut String,
    name: &str,
    kind: &str,
    help: &str,
    labelled: impl Iterator<Item = (String, f64)>,
) {
    rows(out, &format!("kvant_engine_{name}"), kind, help, labelled);
}
