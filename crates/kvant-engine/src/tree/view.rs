//! The super-version: what readers see of the tree, swapped as a whole.
//!
//! Invariants:
//! 1. a super-version holds every write that was acknowledged before it was made, each in exactly
//!    one of its parts;
//! 2. a reader takes the super-version first and the visible sequence number second, so that
//!    nothing is needed at the latter that was compacted away in the former;
//! 3. memtables leave it in the order in which they were sealed.
//!
//! Threads: readers take no lock. Changes are made under `installing`, briefly; a new version also
//! under the manifest's lock.

use crate::format::{FileNum, SeqNum};
use crate::memtable::{ChunkPool, Memtable, MemtableWriter};
use crate::options::Options;
use crate::table::Table;
use crate::version::Version;
use arc_swap::{ArcSwap, Guard};
use kvant_base::lock::NamedMutex;
use std::sync::Arc;

pub(crate) struct SealedMemtable {
    pub(crate) memtable: Arc<Memtable>,
    /// The oldest log file that holds its writes.
    pub(crate) first_wal: FileNum,
}

impl SealedMemtable {
    /// Largest sequence number in it; 0 when it is empty.
    pub(crate) fn seq_max(&self) -> SeqNum {
        self.memtable.seq_range().map_or(SeqNum(0), |(_, max)| max)
    }
}

pub(crate) struct SuperVersion {
    /// Grows with every change.
    pub(crate) generation: u64,
    pub(crate) active: Arc<Memtable>,
    /// The oldest log file that holds the active memtable's writes.
    pub(crate) active_wal: FileNum,
    /// Newest first.
    pub(crate) sealed: Vec<Arc<SealedMemtable>>,
    pub(crate) version: Arc<Version<Table>>,
}

/// The current super-version.
pub(crate) struct Views {
    current: ArcSwap<SuperVersion>,
    installing: NamedMutex<()>,
}

impl Views {
    pub(crate) fn new(first: SuperVersion) -> Views {
        Views {
            current: ArcSwap::from_pointee(first),
            installing: NamedMutex::new("super_version", ()),
        }
    }

    /// The current one, for a short use.
    #[inline]
    pub(crate) fn load(&self) -> Guard<Arc<SuperVersion>> {
        self.current.load()
    }

    /// The current one, to keep.
    pub(crate) fn load_full(&self) -> Arc<SuperVersion> {
        self.current.load_full()
    }

    /// Makes the active memtable the newest sealed one, and `active` the active one.
    pub(crate) fn seal(&self, active: Arc<Memtable>, active_wal: FileNum) {
        self.change(|now| {
            let sealed =
                SealedMemtable { memtable: Arc::clone(&now.active), first_wal: now.active_wal };
            let sealed =
                std::iter::once(Arc::new(sealed)).chain(now.sealed.iter().cloned()).collect();
            SuperVersion {
                generation: 0,
                active,
                active_wal,
                sealed,
                version: Arc::clone(&now.version),
            }
        });
    }

    /// Installs a new version of the tables, which holds `flushed`, the oldest sealed memtable.
    pub(crate) fn install(
        &self,
        version: Arc<Version<Table>>,
        flushed: Option<&Arc<SealedMemtable>>,
    ) {
        self.change(|now| {
            let mut sealed = now.sealed.clone();
            if let Some(flushed) = flushed {
                let oldest = sealed.pop().expect("a flushed memtable is still sealed");
                assert!(
                    Arc::ptr_eq(&oldest, flushed),
                    "memtables are flushed in the order of sealing"
                );
            }
            let (active, active_wal) = (Arc::clone(&now.active), now.active_wal);
            SuperVersion { generation: 0, active, active_wal, sealed, version }
        });
    }

    fn change(&self, next: impl FnOnce(&SuperVersion) -> SuperVersion) {
        let _installing = self.installing.lock();
        let now = self.current.load_full();
        let mut next = next(&now);
        next.generation = now.generation + 1;
        self.current.store(Arc::new(next));
    }
}

/// An empty memtable of the size at which it will be sealed. Its index is for entries as those of
/// `before`, the memtable before it. If more come, reads of some of them search. Its writer keeps
/// the entries in order if ranges have read `before`.
pub(crate) fn new_memtable(
    chunks: &Arc<ChunkPool>,
    options: &Options,
    before: Option<&Memtable>,
) -> MemtableWriter {
    let expected = before.and_then(|before| before.entries_in(options.memtable_bytes));
    let entries_max = options.memtable_entries_max.min(expected.unwrap_or(u64::MAX));
    let keeps_order = before.is_some_and(Memtable::is_read_in_order);
    MemtableWriter::new(
        chunks,
        usize::try_from(options.memtable_bytes).unwrap_or(usize::MAX),
        usize::try_from(entries_max).unwrap_or(usize::MAX),
        keeps_order,
    )
}

/// How full a memtable is: 1 when it must be sealed.
pub(crate) fn full_share(memtable: &Memtable, options: &Options) -> f64 {
    let bytes_share = memtable.memory_bytes() as f64 / options.memtable_bytes as f64;
    let entries_share = memtable.entry_count() as f64 / options.memtable_entries_max as f64;
    bytes_share.max(entries_share).min(1.0)
}

/// Whether a memtable must be sealed before the next write.
#[inline]
pub(crate) fn is_full(memtable: &Memtable, options: &Options) -> bool {
    memtable.memory_bytes() >= options.memtable_bytes
        || memtable.entry_count() >= options.memtable_entries_max
}

/// Whether a memtable will soon be full.
pub(crate) fn is_nearly_full(memtable: &Memtable, options: &Options) -> bool {
    memtable.memory_bytes() >= options.memtable_bytes / 4 * 3
        || memtable.entry_count() >= options.memtable_entries_max / 4 * 3
}

#[cfg(test)]
mod tests;
