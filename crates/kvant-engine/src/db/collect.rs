//! Puts the statistics together.

use super::core::{Core, JobCounters};
use crate::compaction::TreeShape;
use crate::format::FileKind;
use crate::stats::{
    JobStats, LevelStats, MemoryStats, MemtableStats, ReadStats, SnapshotStats, SpaceStats, Stats,
    WalStats, WriteStats,
};
use kvant_base::budget::CONSUMERS;
use kvant_base::limits::LEVELS;
use std::sync::atomic::{AtomicU64, Ordering};

pub(crate) fn stats(core: &Core) -> Stats {
    let view = core.views.load_full();
    let shape = core.with_summary(|summary| TreeShape::new(summary, &core.compaction_options));
    let wal = wal(core);
    Stats {
        levels: levels(core, &shape),
        memtables: MemtableStats {
            active_bytes: view.active.memory_bytes(),
            sealed_count: view.sealed.len() as u64,
            sealed_bytes: view.sealed.iter().map(|sealed| sealed.memtable.memory_bytes()).sum(),
        },
        block_cache: core.tables.cache.stats(),
        reads: reads(core),
        writes: writes(core),
        flushes: job(&core.counters.flushes, 0),
        compactions: job(&core.counters.compactions, shape.debt_bytes),
        stalls: core.gate.stats(),
        space: SpaceStats {
            live_bytes: view.version.all_tables().map(|file| file.meta.file_bytes).sum(),
            obsolete_bytes: core.obsolete.waiting_bytes(),
            pinned_bytes: core.obsolete.pinned_bytes(),
            wal_bytes: wal.bytes,
            // A device that does not answer is shown as one without space; the next write says why.
            available_bytes: core.env.fs.available_bytes(&core.dir).unwrap_or(0),
        },
        wal,
        snapshots: snapshots(core),
        memory: MemoryStats {
            limit_bytes: core.memory.limit_bytes(),
            used_bytes: core.memory.used_bytes_total(),
            consumers: CONSUMERS.iter().map(|&c| (c.name(), core.memory.used_bytes(c))).collect(),
        },
        recovery: core.recovery.clone(),
        fenced: core.fence.cause().map(ToString::to_string),
        disk_full: core.space.is_full(),
        visible_seq: get(&core.visible_seq),
    }
}

fn levels(core: &Core, shape: &TreeShape) -> Vec<LevelStats> {
    let view = core.views.load();
    (0..LEVELS)
        .map(|level| {
            let totals = view.version.totals(level);
            LevelStats {
                level,
                table_count: view.version.tables(level).len() as u64,
                bytes: totals.file_bytes,
                target_bytes: shape.target_bytes[level],
                score: shape.scores[level],
                entry_count: totals.entry_count,
                tombstone_count: totals.tombstone_count,
                written_bytes: get(&core.counters.level_written[level]),
            }
        })
        .collect()
}

fn reads(core: &Core) -> ReadStats {
    let counters = &core.counters;
    let (gets, present) = (get(&counters.gets), get(&counters.present));
    let tables = &core.tables.stats;
    ReadStats {
        get_count: gets,
        present_count: present,
        present_from_table_count: get(&counters.present_from_table),
        absent_count: gets.saturating_sub(present),
        present_block_fetch_count: get(&counters.present_fetches),
        absent_block_fetch_count: get(&counters.absent_fetches),
        filter_probe_count: tables.filter_probe_count(),
        filter_negative_count: tables.filter_negative_count(),
        range_count: get(&counters.ranges),
        range_record_count: get(&counters.range_records),
        range_skipped_count: get(&counters.range_skipped),
        disk_read_count: tables.disk_read_count(),
        disk_read_bytes: tables.disk_read_bytes(),
    }
}

fn writes(core: &Core) -> WriteStats {
    let counters = &core.counters;
    let user_bytes = get(&counters.user_bytes);
    let written_bytes = get(&counters.wal_bytes)
        + get(&counters.manifest_bytes)
        + get(&counters.flushes.written_bytes)
        + get(&counters.compactions.written_bytes);
    WriteStats {
        operation_count: get(&counters.operations),
        group_count: get(&counters.groups),
        user_bytes,
        amplification: if user_bytes == 0 { 0.0 } else { written_bytes as f64 / user_bytes as f64 },
    }
}

fn wal(core: &Core) -> WalStats {
    // A directory that cannot be listed shows no logs; writes and flushes report the failure.
    let files = super::inventory::list(&core.env, &core.dir).unwrap_or_default();
    let logs = files.iter().filter(|(kind, ..)| *kind == FileKind::Wal);
    let (file_count, bytes) =
        logs.fold((0, 0), |(count, sum), (_, _, entry)| (count + 1, sum + entry.len_bytes));
    let mut stats = WalStats {
        file_count,
        bytes,
        written_bytes: get(&core.counters.wal_bytes),
        ..Default::default()
    };
    core.log_sync.stats(&mut stats);
    stats
}

fn job(counters: &JobCounters, debt_bytes: u64) -> JobStats {
    JobStats {
        running: get(&counters.running),
        count: get(&counters.count),
        failed_count: get(&counters.failed),
        read_bytes: get(&counters.read_bytes),
        written_bytes: get(&counters.written_bytes),
        busy_us_total: get(&counters.busy_us),
        debt_bytes,
    }
}

fn snapshots(core: &Core) -> SnapshotStats {
    let (open_count, oldest_ns) = core.snapshots.count_and_oldest_ns();
    let age_ns =
        oldest_ns.map_or(0, |since_ns| core.env.clock.monotonic_ns().saturating_sub(since_ns));
    SnapshotStats { open_count, oldest_age_ms: age_ns / 1_000_000 }
}

fn get(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}
