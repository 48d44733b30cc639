//! Ranges: records in key order from one consistent snapshot.
//!
//! A range pins a sequence number for its whole life, but memtables and tables only for a while:
//! when the tree has changed and enough has been read since, it takes the current super-version and
//! continues after its last key. A slow reader therefore keeps neither memory nor the space of
//! whole tables, only the versions that it may still need.

use super::Tree;
use super::pinned_seq::PinnedSeq;
use super::view::SuperVersion;
use crate::cursor::InternalIterator;
use crate::format::{InternalKeyRef, SeqNum};
use crate::iter::{LevelIter, MergeIter, Record, TableRun, VisibleIter};
use crate::memtable::MemtableIter;
use crate::table::{RangeTrace, ReadTrace, Table, TableIter};
use crate::version::{TableFile, Version};
use kvant_base::limits::LEVELS;
use kvant_base::{Consumer, Result};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Bytes read from one super-version before a newer one is taken.
const REFRESH_BYTES: usize = 1 << 20;

/// A range being read. It may move between threads from call to call.
pub struct RangeIter {
    tree: Arc<Tree>,
    pinned: Arc<PinnedSeq>,
    generation: u64,
    records: VisibleIter<MergeIter<RangeSource>>,
    /// Keeps the files of all tables that `records` reads.
    _version: Arc<Version<Table>>,
    end: Option<Vec<u8>>,
    now_ms: u64,
    bytes_since_refresh: usize,
    /// Where to continue after a refresh; set once one is due.
    last_key: Vec<u8>,
    record_count: u64,
    trace: Arc<RangeTrace>,
}

impl RangeIter {
    pub(crate) fn open(
        tree: &Arc<Tree>,
        pinned: Arc<PinnedSeq>,
        start: &[u8],
        end: Option<&[u8]>,
    ) -> Result<RangeIter> {
        tree.context.check_open()?;
        tree.counters.ranges.fetch_add(1, Ordering::Relaxed);
        let view = tree.views.load_full();
        let now_ms = tree.context.env.clock.wall_ms();
        let trace = Arc::default();
        let mut records = visible(&view, pinned.seq, now_ms, end, &trace);
        records.seek(start).inspect_err(|error| tree.note_read_error(error))?;
        Ok(RangeIter {
            tree: Arc::clone(tree),
            pinned,
            generation: view.generation,
            records,
            _version: Arc::clone(&view.version),
            end: end.map(<[u8]>::to_vec),
            now_ms,
            bytes_since_refresh: 0,
            last_key: Vec::new(),
            record_count: 0,
            trace,
        })
    }

    /// The next record, or `None` at the end of the range.
    ///
    /// # Errors
    /// `Corruption` or `Io` when a block cannot be read: the range ends there. `Closed`.
    #[expect(clippy::should_implement_trait, reason = "a record borrows from the iterator")]
    pub fn next(&mut self) -> Result<Option<Record<'_>>> {
        if self.bytes_since_refresh >= REFRESH_BYTES {
            self.refresh()?;
        }
        let tree = &self.tree;
        let Some(record) = self.records.next().inspect_err(|error| tree.note_read_error(error))?
        else {
            return Ok(None);
        };
        self.record_count += 1;
        self.bytes_since_refresh += record.key.len() + record.value.len();
        if self.bytes_since_refresh >= REFRESH_BYTES {
            self.last_key.clear();
            self.last_key.extend_from_slice(record.key);
        }
        Ok(Some(record))
    }

    /// The blocks and tables touched so far. A table counts again when the range enters it in a
    /// newer view of the tree.
    pub fn trace(&self) -> ReadTrace {
        self.trace.get()
    }

    fn refresh(&mut self) -> Result<()> {
        self.bytes_since_refresh = 0;
        self.tree.context.check_open()?;
        let view = self.tree.views.load_full();
        if view.generation == self.generation {
            return Ok(());
        }
        self.generation = view.generation;
        self.note_skipped();
        self.records =
            visible(&view, self.pinned.seq, self.now_ms, self.end.as_deref(), &self.trace);
        self._version = Arc::clone(&view.version);
        // The successor of a key is the key with a zero byte appended.
        self.last_key.push(0);
        self.records.seek(&self.last_key).inspect_err(|error| self.tree.note_read_error(error))
    }

    fn note_skipped(&self) {
        let skipped_count = self.records.skipped_count();
        self.tree.counters.range_skipped.fetch_add(skipped_count, Ordering::Relaxed);
    }
}

impl Drop for RangeIter {
    fn drop(&mut self) {
        self.note_skipped();
        self.tree.counters.range_records.fetch_add(self.record_count, Ordering::Relaxed);
    }
}

/// The records of a super-version that are visible at `seq`, not positioned yet.
fn visible(
    view: &Arc<SuperVersion>,
    seq: SeqNum,
    now_ms: u64,
    end: Option<&[u8]>,
    trace: &Arc<RangeTrace>,
) -> VisibleIter<MergeIter<RangeSource>> {
    let l0_count = view.version.tables(0).len();
    let mut sources = Vec::with_capacity(1 + view.sealed.len() + l0_count + LEVELS);
    sources.push(RangeSource::Memtable(view.active.iter()));
    sources.extend(view.sealed.iter().map(|sealed| RangeSource::Memtable(sealed.memtable.iter())));
    let tables = view.version.tables(0).iter();
    sources.extend(tables.map(|file| RangeSource::Table(cursor(file, trace))));
    for level in 1..LEVELS {
        if !view.version.tables(level).is_empty() {
            let trace = Arc::clone(trace);
            let open: OpenTable = Box::new(move |file| Ok(cursor(file, &trace)));
            let run = TableRun::Level(Arc::clone(&view.version), level);
            sources.push(RangeSource::Level(LevelIter::new(run, open)));
        }
    }
    VisibleIter::new(MergeIter::of(sources), seq, now_ms, end)
}

fn cursor(file: &TableFile<Table>, trace: &Arc<RangeTrace>) -> TableIter {
    file.table.iter(true, Consumer::Iterators).traced(Arc::clone(trace))
}

type OpenTable = Box<dyn FnMut(&Arc<TableFile<Table>>) -> Result<TableIter> + Send>;

/// A source of a range. An enum instead of a trait object: a record takes a dozen calls.
enum RangeSource {
    Memtable(MemtableIter),
    Table(TableIter),
    Level(LevelIter<Table, TableIter, OpenTable>),
}

/// Calls a method of the source.
macro_rules! forward {
    ($self:ident.$method:ident($($argument:expr)?)) => {
        match $self {
            RangeSource::Memtable(source) => source.$method($($argument)?),
            RangeSource::Table(source) => source.$method($($argument)?),
            RangeSource::Level(source) => source.$method($($argument)?),
        }
    };
}

impl InternalIterator for RangeSource {
    #[inline]
    fn valid(&self) -> bool {
        forward!(self.valid())
    }

    fn seek_to_first(&mut self) -> Result<()> {
        forward!(self.seek_to_first())
    }

    fn seek(&mut self, target: InternalKeyRef<'_>) -> Result<()> {
        forward!(self.seek(target))
    }

    #[inline]
    fn next(&mut self) -> Result<()> {
        forward!(self.next())
    }

    #[inline]
    fn key(&self) -> InternalKeyRef<'_> {
        forward!(self.key())
    }

    #[inline]
    fn value(&self) -> &[u8] {
        forward!(self.value())
    }
}
