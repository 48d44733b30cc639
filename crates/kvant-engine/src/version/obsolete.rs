//! Removal of table files that are no longer read.
//!
//! A table removed from the tree is *pinned* while an older version, an iterator or a checkpoint
//! holds a reference. When the last reference is dropped, the file becomes *obsolete* and is queued
//! for removal by a background task.
//!
//! Threads: any thread may drop the last reference, so [`ObsoleteQueue`] takes one short lock and
//! does no I/O.

use super::FileMeta;
use super::levels::HasMeta;
use crate::format::FileNum;
use kvant_base::lock::NamedMutex;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// A table of a version: its description and the open table.
pub(crate) struct TableFile<T> {
    pub(crate) meta: FileMeta,
    pub(crate) table: Arc<T>,
    queue: Arc<ObsoleteQueue>,
    obsolete: AtomicBool,
}

impl<T> TableFile<T> {
    /// A live table, which is added to `queue` if it is marked obsolete and dropped.
    pub(crate) fn new(
        meta: FileMeta,
        table: Arc<T>,
        queue: Arc<ObsoleteQueue>,
    ) -> Arc<TableFile<T>> {
        Arc::new(TableFile { meta, table, queue, obsolete: AtomicBool::new(false) })
    }

    /// Removes the file once the last reference is dropped. Called when the edit that removes the
    /// table from the tree is durable, or for a table that never was in the tree; never for a table
    /// that moves.
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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ObsoleteFile {
    pub(crate) num: FileNum,
    pub(crate) file_bytes: u64,
}

type Wake = Box<dyn Fn() + Send + Sync>;

pub(crate) struct ObsoleteQueue {
    files: NamedMutex<VecDeque<ObsoleteFile>>,
    pinned_bytes: AtomicU64,
    wake: OnceLock<Wake>,
}

impl ObsoleteQueue {
    pub(crate) fn new() -> Arc<ObsoleteQueue> {
        Arc::new(ObsoleteQueue {
            files: NamedMutex::new("obsolete_files", VecDeque::new()),
            pinned_bytes: AtomicU64::new(0),
            wake: OnceLock::new(),
        })
    }

    /// Calls `wake` after every push, on the thread that dropped the table. `wake` must not block.
    /// Set once, before tables are marked obsolete; a later call has no effect.
    pub(crate) fn on_push(&self, wake: impl Fn() + Send + Sync + 'static) {
        self.wake.get_or_init(|| Box::new(wake));
    }

    fn push(&self, file: ObsoleteFile) {
        self.files.lock().push_back(file);
        if let Some(wake) = self.wake.get() {
            wake();
        }
    }

    pub(crate) fn pop(&self) -> Option<ObsoleteFile> {
        self.files.lock().pop_front()
    }

    pub(crate) fn waiting_bytes(&self) -> u64 {
        self.files.lock().iter().map(|file| file.file_bytes).sum()
    }

    /// Bytes of tables marked obsolete and still referenced.
    pub(crate) fn pinned_bytes(&self) -> u64 {
        self.pinned_bytes.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests;
