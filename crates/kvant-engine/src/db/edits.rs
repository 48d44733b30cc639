//! Changes of the tree: written as tables, logged in the manifest, shown to readers.

use super::core::{Core, VersionState};
use super::view::SealedMemtable;
use crate::compaction::OutputCutter;
use crate::compaction::runner::{self, Outputs, Run};
use crate::format::{FileKind, FileNum, file_path};
use crate::iter::{CompactionIter, MergeIter};
use crate::table::{Table, TableOptions};
use crate::version::{ManifestWriter, TableFile, Version, VersionEdit};
use kvant_base::log::Level;
use kvant_base::{Error, ErrorKind, Result};
use std::sync::Arc;
use std::sync::atomic::Ordering;

impl Core {
    /// Writes what `entries` yields as tables for `level`.
    pub(crate) fn write_tables(
        &self,
        entries: &mut CompactionIter<MergeIter>,
        level: usize,
        cutter: Option<OutputCutter<'_>>,
        progress: &mut dyn FnMut(u64) -> Result<()>,
    ) -> Result<Outputs> {
        let table_options = TableOptions {
            block_bytes: self.options.block_bytes,
            compression: self.options.compression[level],
            filter_bits_per_key: self.filter_bits_per_key[level],
        };
        let run = Run {
            env: &self.env,
            dir: &self.dir,
            log: &*self.log,
            events: &self.events,
            tables: &self.tables,
            obsolete: &self.obsolete,
            new_file_num: &|| self.new_file_num(),
            table_options,
            cutter,
            progress,
            fence: &|cause| self.fence(cause).with_kind(ErrorKind::Fenced),
        };
        runner::write_tables(entries, run)
    }

    /// Logs an edit durably, then shows it to readers. `opened` holds its new tables; `flushed`
    /// leaves the sealed memtables with it. On error nothing has changed, and the new tables are
    /// removed unless the edit may be found after a restart.
    pub(crate) fn apply(
        &self,
        versions: &mut VersionState,
        mut edit: VersionEdit,
        opened: &[Arc<TableFile<Table>>],
        flushed: Option<&Arc<SealedMemtable>>,
    ) -> Result<()> {
        // The logs first: their numbers are below the next one.
        edit.logs = self.log_changes(versions, edit.oldest_wal.unwrap_or(versions.oldest_wal));
        edit.next_file_num = Some(FileNum(self.next_file_num.load(Ordering::Relaxed)));
        let view = self.views.load_full();
        let next = self.log_edit(versions, &view.version, &edit, opened);
        let next = next.inspect_err(|error| {
            if error.kind() != ErrorKind::Fenced {
                opened.iter().for_each(|file| file.mark_obsolete());
            }
        })?;
        versions.last_seq = edit.last_seq.unwrap_or(versions.last_seq);
        versions.oldest_wal = edit.oldest_wal.unwrap_or(versions.oldest_wal);
        versions.logs.extend(edit.logs.iter().copied());
        let oldest_wal = versions.oldest_wal;
        versions.logs.retain(|num, _| *num >= oldest_wal);
        let removed = view.version.removed_by(&edit);
        self.views.install(Arc::clone(&next), flushed);
        removed.iter().for_each(|file| file.mark_obsolete());
        if versions.manifest.is_overgrown()
            && let Err(error) = self.start_manifest(versions, &next)
        {
            // The edit is durable in the manifest there is, which goes on unless writes are fenced
            // now.
            self.log.event(Level::Warn, "manifest_not_replaced", &[("error", &error)]);
        }
        Ok(())
    }

    /// The logs from `oldest_wal` on that the manifest does not know, or not with all that is
    /// synced.
    fn log_changes(&self, versions: &VersionState, oldest_wal: FileNum) -> Vec<(FileNum, u64)> {
        // The prepared log first: if it comes into use meanwhile, the second field for it has at
        // least as many synced bytes.
        let prepared = self.prepared_wal.lock().as_ref().map(|wal| (wal.num, 0));
        let known = prepared.into_iter().chain(self.log_sync.known_logs());
        let news = |&(num, synced_bytes): &(FileNum, u64)| {
            num >= oldest_wal && versions.logs.get(&num).is_none_or(|&before| before < synced_bytes)
        };
        known.filter(news).collect()
    }

    /// Records logs that the manifest does not know, so that recovery misses them when they vanish.
    pub(crate) fn record_new_logs(&self) {
        let mut versions = self.versions.lock();
        let logs = self.log_changes(&versions, versions.oldest_wal);
        if logs.iter().any(|(num, _)| !versions.logs.contains_key(num)) {
            self.record_logs(&mut versions, logs);
        }
    }

    /// Records how far the logs are synced. At close, they are synced completely.
    pub(crate) fn record_end_of_logs(&self) {
        let mut versions = self.versions.lock();
        let logs = self.log_changes(&versions, versions.oldest_wal);
        if !logs.is_empty() {
            self.record_logs(&mut versions, logs);
        }
    }

    /// No write relies on these records: a failure is logged, and the database goes on.
    fn record_logs(&self, versions: &mut VersionState, logs: Vec<(FileNum, u64)>) {
        let edit = VersionEdit {
            next_file_num: Some(FileNum(self.next_file_num.load(Ordering::Relaxed))),
            logs,
            ..VersionEdit::default()
        };
        let view = self.views.load_full();
        match self.log_edit(versions, &view.version, &edit, &[]) {
            Ok(_) => versions.logs.extend(edit.logs),
            // A full disk is logged where writes fail; the next edit carries the logs.
            Err(error) if error.kind() == ErrorKind::NoSpace => {}
            Err(error) => self.log.event(Level::Warn, "logs_not_recorded", &[("error", &error)]),
        }
    }

    /// Makes an edit durable and gives the version after it.
    fn log_edit(
        &self,
        versions: &mut VersionState,
        version: &Version<Table>,
        edit: &VersionEdit,
        opened: &[Arc<TableFile<Table>>],
    ) -> Result<Arc<Version<Table>>> {
        // A fence may mean that another manifest is the current one after a restart.
        self.check_writable()?;
        let next = Arc::new(version.apply(edit, opened)?);
        let before_bytes = versions.manifest.bytes();
        versions.manifest.append(edit).map_err(|error| self.manifest_error(error))?;
        let written_bytes = versions.manifest.bytes() - before_bytes;
        self.counters.manifest_bytes.fetch_add(written_bytes, Ordering::Relaxed);
        Ok(next)
    }

    /// Goes on in a new manifest, whose first edit is the whole tree.
    fn start_manifest(&self, versions: &mut VersionState, version: &Version<Table>) -> Result<()> {
        let num = self.new_file_num();
        let next_file_num = FileNum(self.next_file_num.load(Ordering::Relaxed));
        let snapshot = VersionEdit {
            logs: versions.logs.clone().into_iter().collect(),
            ..version.snapshot_edit(next_file_num, versions.last_seq, versions.oldest_wal)
        };
        let created = ManifestWriter::create(&*self.env.fs, &self.dir, num, &snapshot);
        let manifest = created.map_err(|error| {
            let error = self.manifest_error(error);
            if error.kind() != ErrorKind::Fenced {
                self.remove_file(&file_path(&self.dir, FileKind::Temporary, num));
            }
            error
        })?;
        self.counters.manifest_bytes.fetch_add(manifest.bytes(), Ordering::Relaxed);
        versions.manifest = manifest;
        crate::version::remove_older(&*self.env.fs, &self.dir, num)?;
        Ok(())
    }

    /// An edit whose outcome is unknown fences: nothing may rely on it, nor on its absence.
    fn manifest_error(&self, error: Error) -> Error {
        match error.kind() {
            ErrorKind::OutcomeUnknown => self.fence(error).with_kind(ErrorKind::Fenced),
            _ => error,
        }
    }
}
