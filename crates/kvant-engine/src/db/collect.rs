//! Collects the statistics.

use super::core::Core;
use crate::format::FileKind;
use crate::stats::{
    CacheStats, JobStats, LevelStats, MemoryStats, MemtableStats, ReadStats, SnapshotStats,
    SpaceStats, Stats, WalStats, WriteStats,
};
use crate::version::list_files;
use kvant_base::Consumer;
use kvant_base::limits::LEVELS;
use std::sync::atomic::{AtomicU64, Ordering};

pub(crate) fn stats(core: &Core) -> Stats {
    let view = core.tree.views.load_full();
    let shape = core.tree.shape();
    let memory = &core.context.memory;
    let wal = wal(core);
    let chunks = core.context.chunks.stats();
    Stats {
        levels: levels(core, &shape.target_bytes, &shape.scores),
        memtables: MemtableStats {
            active_bytes: view.active.memory_bytes(),
            sealed_count: view.sealed.len() as u64,
            sealed_bytes: view.sealed.iter().map(|sealed| sealed.memtable.memory_bytes()).sum(),
            spare_bytes: chunks.spare_bytes,
            chunk_count: chunks.taken_count,
            chunk_unprepared_count: chunks.unprepared_count,
        },
        block_cache: block_cache(core),
        reads: reads(core),
        writes: writes(core),
        flushes: core.maintenance.flushes.stats.lock().clone(),
        compactions: JobStats {
            debt_bytes: shape.debt_bytes,
            ..core.maintenance.compactions.stats.lock().clone()
        },
        stalls: core.admission.gate.stats(),
        space: SpaceStats {
            live_bytes: view.version.all_tables().map(|file| file.meta.file_bytes).sum(),
            obsolete_bytes: core.tree.obsolete.waiting_bytes(),
            pinned_bytes: core.tree.obsolete.pinned_bytes(),
            wal_bytes: wal.bytes,
            // 0 for a device that does not answer; the next write says why.
            available_bytes: core.context.env.fs.available_bytes(&core.context.dir).unwrap_or(0),
        },
        wal,
        snapshots: snapshots(core),
        memory: MemoryStats {
            limit_bytes: memory.limit_bytes(),
            used_bytes: memory.used_bytes_total(),
            consumers: Consumer::ALL.iter().map(|&c| (c.name(), memory.used_bytes(c))).collect(),
        },
        recovery: core.recovery.clone(),
        fenced: core.context.fence_cause().map(ToString::to_string),
        disk_full: core.admission.space.is_full(),
        visible_seq: get(&core.tree.visible_seq),
    }
}

fn levels(core: &Core, target_bytes: &[u64; LEVELS], scores: &[f64; LEVELS]) -> Vec<LevelStats> {
    let view = core.tree.views.load();
    (0..LEVELS)
        .map(|level| {
            let totals = view.version.totals(level);
            LevelStats {
                level,
                table_count: view.version.tables(level).len() as u64,
                bytes: totals.file_bytes,
                target_bytes: target_bytes[level],
                score: scores[level],
                entry_count: totals.entry_count,
                tombstone_count: totals.tombstone_count,
                written_bytes: get(&core.tree.counters.level_written[level]),
            }
        })
        .collect()
}

fn block_cache(core: &Core) -> CacheStats {
    let tables = &core.tree.tables;
    let mut stats = tables.cache.stats();
    stats.hit_count += tables.stats.shortcut_count();
    stats
}

fn reads(core: &Core) -> ReadStats {
    let counters = &core.tree.counters;
    let (gets, present) = (get(&counters.gets), get(&counters.present));
    let tables = &core.tree.tables.stats;
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
    let (counters, maintenance) = (&core.log.env.counters, &core.maintenance);
    let user_bytes = get(&counters.user_bytes);
    let written_bytes = get(&counters.wal_bytes)
        + get(&core.tree.counters.manifest_bytes)
        + maintenance.flushes.stats.lock().written_bytes
        + maintenance.compactions.stats.lock().written_bytes;
    WriteStats {
        operation_count: get(&counters.operations),
        group_count: get(&counters.groups),
        user_bytes,
        amplification: if user_bytes == 0 { 0.0 } else { written_bytes as f64 / user_bytes as f64 },
    }
}

fn wal(core: &Core) -> WalStats {
    // A directory that cannot be listed shows no logs; writes and flushes report the failure.
    let files = list_files(&*core.context.env.fs, &core.context.dir).unwrap_or_default();
    let logs = files.iter().filter(|(kind, ..)| *kind == FileKind::Wal);
    let (file_count, bytes) =
        logs.fold((0, 0), |(count, sum), (_, _, entry)| (count + 1, sum + entry.len_bytes));
    let written_bytes = get(&core.log.env.counters.wal_bytes);
    WalStats { file_count, bytes, written_bytes, ..core.log.sync.stats() }
}

fn snapshots(core: &Core) -> SnapshotStats {
    let (open_count, oldest_ns) = core.tree.pinned_seqs.count_and_oldest_ns();
    let age_ns = oldest_ns
        .map_or(0, |since_ns| core.context.env.clock.monotonic_ns().saturating_sub(since_ns));
    SnapshotStats { open_count, oldest_age_ms: age_ns / 1_000_000 }
}

fn get(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}
