//! The tree: memtables and tables as readers see them, and the manifest that makes them durable.
//!
//! - [`view`]: what readers see, swapped as a whole;
//! - [`read`], [`range`], [`snapshot`], [`pinned_seq`]: reads;
//! - [`outputs`], [`edits`]: new tables, and changes of the manifest.

mod edits;
pub(crate) mod outputs;
mod pinned_seq;
pub(crate) mod range;
pub(crate) mod read;
pub(crate) mod snapshot;
pub(crate) mod view;

use crate::compaction::{CompactionOptions, TreeShape, VersionSummary};
use crate::context::Context;
use crate::format::{FileKind, FileNum, SeqNum, file_path};
use crate::options::Options;
use crate::table::{TableContext, bits_per_key_for};
use crate::version::{KnownLogs, ManifestWriter, ObsoleteQueue};
use kvant_base::limits::LEVELS;
use kvant_base::lock::NamedMutex;
use pinned_seq::{PinnedSeq, PinnedSeqs};
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use view::Views;

pub(crate) struct Tree {
    pub(crate) context: Arc<Context>,
    pub(crate) tables: Arc<TableContext>,
    /// Tables that no version needs, to be removed.
    pub(crate) obsolete: Arc<ObsoleteQueue>,
    pub(crate) views: Views,
    /// Newest sequence number that readers see; only grows.
    pub(crate) visible_seq: AtomicU64,
    pub(crate) pinned_seqs: Arc<PinnedSeqs>,
    pub(crate) versions: NamedMutex<VersionState>,
    pub(crate) counters: TreeCounters,
    pub(crate) compaction_options: CompactionOptions,
    /// Of the tables of each level.
    pub(crate) filter_bits_per_key: [f64; LEVELS],
}

/// What changes with a manifest edit.
pub(crate) struct VersionState {
    pub(crate) manifest: ManifestWriter,
    /// Largest sequence number in a table.
    pub(crate) last_seq: SeqNum,
    pub(crate) oldest_wal: FileNum,
    /// The logs from there on, as far as the manifest knows them.
    pub(crate) logs: KnownLogs,
    /// Tables that compaction leaves alone because a block of theirs is unreadable.
    pub(crate) unreadable: HashSet<FileNum>,
}

/// Counters for the statistics, since the database was opened.
#[derive(Default)]
pub(crate) struct TreeCounters {
    pub(crate) gets: AtomicU64,
    pub(crate) present: AtomicU64,
    pub(crate) present_from_table: AtomicU64,
    pub(crate) present_fetches: AtomicU64,
    pub(crate) absent_fetches: AtomicU64,
    pub(crate) ranges: AtomicU64,
    pub(crate) range_records: AtomicU64,
    pub(crate) range_skipped: AtomicU64,
    pub(crate) manifest_bytes: AtomicU64,
    /// Bytes written into each level.
    pub(crate) level_written: [AtomicU64; LEVELS],
}

impl Tree {
    pub(crate) fn new(
        context: Arc<Context>,
        tables: Arc<TableContext>,
        obsolete: Arc<ObsoleteQueue>,
        views: Views,
        visible_seq: SeqNum,
        versions: VersionState,
    ) -> Tree {
        Tree {
            tables,
            obsolete,
            views,
            visible_seq: AtomicU64::new(visible_seq.0),
            pinned_seqs: PinnedSeqs::new(),
            versions: NamedMutex::new("versions", versions),
            counters: TreeCounters::default(),
            compaction_options: CompactionOptions::new(&context.options),
            filter_bits_per_key: filter_bits_per_key(&context.options),
            context,
        }
    }

    /// Keeps the current state readable.
    pub(crate) fn pin(&self) -> Arc<PinnedSeq> {
        let now_ns = self.context.env.clock.monotonic_ns();
        Arc::new(self.pinned_seqs.pin(&self.visible_seq, now_ns))
    }

    /// Passes the current tree to `f`, as the compaction picker sees it.
    pub(crate) fn with_summary<R>(&self, f: impl FnOnce(&VersionSummary<'_>) -> R) -> R {
        let versions = self.versions.lock();
        let view = self.views.load_full();
        let oldest_pinned = self.pinned_seqs.seqs().first().copied();
        let now_ms = self.context.env.clock.wall_ms();
        f(&VersionSummary::new(&view.version, &versions.unreadable, oldest_pinned, now_ms))
    }

    pub(crate) fn shape(&self) -> TreeShape {
        self.with_summary(|summary| TreeShape::new(summary, &self.compaction_options))
    }

    /// Removes the tables that no reader needs any more. True when there were any.
    pub(crate) fn remove_obsolete_tables(&self) -> bool {
        let mut has_removed = false;
        while let Some(file) = self.obsolete.pop() {
            self.tables.cache.erase_file(file.num);
            let path = file_path(&self.context.dir, FileKind::Table, file.num);
            let env = &self.context.env;
            // Else the removal holds a CPU for 1 to 4 ms at a time.
            match env.fs.forget_cached(&path, &|| env.spawner.give_way()) {
                // It costs only that time; if the file cannot be removed either, that is logged.
                Ok(()) | Err(_) => {}
            }
            self.context.remove_file(&path);
            has_removed = true;
        }
        has_removed
    }
}

/// Bits per key of each level's filters, such that the false positives of all levels sum to the
/// share that the options allow: the last level, which holds nine tenths of the keys, gets half of
/// it, the tables of level 0 share a quarter, and so do the levels in between.
fn filter_bits_per_key(options: &Options) -> [f64; LEVELS] {
    let quarter = options.filter_false_positive_share / 4.0;
    let mut bits = [bits_per_key_for(quarter / (LEVELS - 2) as f64); LEVELS];
    bits[0] = bits_per_key_for(quarter / options.l0_compact_count as f64);
    bits[LEVELS - 1] = bits_per_key_for(2.0 * quarter);
    bits
}
