//! Tables whose files are to be removed as soon as nobody reads them.
//!
//! A table that an edit removed from the tree stays on disk while an older version, an iterator or
//! a checkpoint holds it: it is *pinned*. When the last holder lets go, its number joins the queue
//! of *obsolete* files, which a background task removes.
//!
//! Threads: any thread may drop the last holder of a table, so [`ObsoleteQueue`] takes one short
//! lock and does no I/O.

use super::FileMeta;
use super::levels::HasMeta;
use crate::format::FileNum;
use kvant_base::lock::NamedMutex;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// A table that is part of versions: its description and an open handle.
pub(crate) struct TableFile<T> {
    // Immutable.
    pub(crate) meta: FileMeta,
    pub(crate) table: Arc<T>,
    queue: Arc<ObsoleteQueue>,
    // Own synchronisation.
    obsolete: AtomicBool,
}

impl<T> TableFile<T> {
    /// A live table; `queue` gets its number if it is marked obsolete and dropped.
    pub(crate) fn new(
        meta: FileMeta,
        table: Arc<T>,
        queue: Arc<ObsoleteQueue>,
    ) -> Arc<TableFile<T>> {
        Arc::new(TableFile { meta, table, queue, obsolete: AtomicBool::new(false) })
    }

    /// Has the file removed once the last holder has let go. To be called when the edit that
    /// removes the table from the tree is durable (or when the table never got into the tree),
    /// never for a table that moves.
    pub(crate) fn mark_obsolete(&self) {
        if !self.obsolete.swap(true, Ordering::Relaxed) {
            self.queue.pinned_bytes.fetch_add(self.meta.file_bytes, Ordering::Relaxed);
        }
    }
}

impl<T> HasMeta for Arc<TableFile<T>> {
    fn meta(&self) -> &FileMeta {
        &self.meta
    }
}

impl<T> Drop for TableFile<T> {
    fn drop(&mut self) {
        if *self.obsolete.get_mut() {
            self.queue.pinned_bytes.fetch_sub(self.meta.file_bytes, Ordering::Relaxed);
            self.queue.push(ObsoleteFile { num: self.meta.num, file_bytes: self.meta.file_bytes });
        }
    }
}

/// A table file that nobody needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ObsoleteFile {
    pub(crate) num: FileNum,
    pub(crate) file_bytes: u64,
}

type Wake = Box<dyn Fn() + Send + Sync>;

/// The files that wait for removal.
pub(crate) struct ObsoleteQueue {
    files: NamedMutex<VecDeque<ObsoleteFile>>,
    waiting_bytes: AtomicU64,
    pinned_bytes: AtomicU64,
    wake: OnceLock<Wake>,
}

impl ObsoleteQueue {
    pub(crate) fn new() -> Arc<ObsoleteQueue> {
        Arc::new(ObsoleteQueue {
            files: NamedMutex::new("obsolete_files", VecDeque::new()),
            waiting_bytes: AtomicU64::new(0),
            pinned_bytes: AtomicU64::new(0),
            wake: OnceLock::new(),
        })
    }

    /// Calls `wake` for every file that joins the queue, on the thread that dropped the table. It
    /// must not block, and files that have joined before are not announced. Set once, before tables
    /// are marked obsolete; a later call has no effect.
    pub(crate) fn on_push(&self, wake: impl Fn() + Send + Sync + 'static) {
        self.wake.get_or_init(|| Box::new(wake));
    }

    fn push(&self, file: ObsoleteFile) {
        self.put_back(file);
        if let Some(wake) = self.wake.get() {
            wake();
        }
    }

    /// Adds a file whose removal failed and is to be tried again, without waking anybody.
    pub(crate) fn put_back(&self, file: ObsoleteFile) {
        self.waiting_bytes.fetch_add(file.file_bytes, Ordering::Relaxed);
        self.files.lock().push_back(file);
    }

    /// Takes the file that has waited longest.
    pub(crate) fn pop(&self) -> Option<ObsoleteFile> {
        let file = self.files.lock().pop_front()?;
        self.waiting_bytes.fetch_sub(file.file_bytes, Ordering::Relaxed);
        Some(file)
    }

    /// Files that wait for removal.
    #[cfg(test)]
    pub(crate) fn waiting_count(&self) -> usize {
        self.files.lock().len()
    }

    /// Bytes of the files that wait for removal.
    pub(crate) fn waiting_bytes(&self) -> u64 {
        self.waiting_bytes.load(Ordering::Relaxed)
    }

    /// Bytes of tables that no current version has but somebody still holds.
    pub(crate) fn pinned_bytes(&self) -> u64 {
        self.pinned_bytes.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests;
