//! Changes of the tree: logged in the manifest, then shown to readers.

use super::view::SealedMemtable;
use super::{Tree, VersionState};
use crate::context::Context;
use crate::format::{FileKind, FileNum, file_path};
use crate::table::Table;
use crate::version::{ManifestWriter, TableFile, Version, VersionEdit, remove_older};
use kvant_base::log::Level;
use kvant_base::{Error, ErrorKind, Result};
use std::sync::Arc;
use std::sync::atomic::Ordering;

impl Tree {
    /// Logs an edit durably, then shows it to readers. `opened` holds its new tables; `flushed` is
    /// the sealed memtable that is in one of them; `known_logs` are the logs and their synced
    /// bytes. On error nothing has changed, and the new tables are removed unless a restart may
    /// find the edit.
    pub(crate) fn apply(
        &self,
        versions: &mut VersionState,
        mut edit: VersionEdit,
        known_logs: Vec<(FileNum, u64)>,
        opened: &[Arc<TableFile<Table>>],
        flushed: Option<&Arc<SealedMemtable>>,
    ) -> Result<()> {
        let oldest_wal = edit.oldest_wal.unwrap_or(versions.oldest_wal);
        edit.logs = versions.news_of(known_logs, oldest_wal);
        let view = self.views.load_full();
        let next = self.log_edit(versions, &view.version, &mut edit, opened);
        let next = next.inspect_err(|error| {
            if error.kind() != ErrorKind::Fenced {
                opened.iter().for_each(|file| file.mark_obsolete());
            }
        })?;
        versions.last_seq = edit.last_seq.unwrap_or(versions.last_seq);
        versions.oldest_wal = oldest_wal;
        versions.logs.extend(edit.logs.iter().copied());
        versions.logs.retain(|num, _| *num >= oldest_wal);
        let removed = view.version.removed_by(&edit);
        self.views.install(Arc::clone(&next), flushed);
        removed.iter().for_each(|file| file.mark_obsolete());
        if versions.manifest.is_overgrown()
            && let Err(error) = self.start_manifest(versions, &next)
        {
            // The edit is durable in the current manifest, which stays in use unless writes are
            // fenced now.
            self.context.log.event(Level::Warn, "manifest_not_replaced", &[("error", &error)]);
        }
        Ok(())
    }

    /// Records the logs that the manifest does not know, so that recovery misses them when they
    /// vanish. With `is_closing` also how far the known ones are synced. No write relies on these
    /// records: a failure is logged.
    pub(crate) fn record_logs(
        &self,
        known_logs: impl FnOnce() -> Vec<(FileNum, u64)>,
        is_closing: bool,
    ) {
        let mut versions = self.versions.lock();
        let logs = versions.news_of(known_logs(), versions.oldest_wal);
        if !logs.iter().any(|(num, _)| is_closing || !versions.logs.contains_key(num)) {
            return;
        }
        let mut edit = VersionEdit { logs, ..VersionEdit::default() };
        let view = self.views.load_full();
        match self.log_edit(&mut versions, &view.version, &mut edit, &[]) {
            Ok(_) => versions.logs.extend(edit.logs),
            // Writes that fail log a full disk; the next edit records the logs.
            Err(error) if error.kind() == ErrorKind::NoSpace => {}
            Err(error) => {
                self.context.log.event(Level::Warn, "logs_not_recorded", &[("error", &error)]);
            }
        }
    }

    /// Makes an edit durable, with the next file number, and returns the version after it.
    fn log_edit(
        &self,
        versions: &mut VersionState,
        version: &Version<Table>,
        edit: &mut VersionEdit,
        opened: &[Arc<TableFile<Table>>],
    ) -> Result<Arc<Version<Table>>> {
        // After a restart another manifest may be the current one.
        self.context.check_writable()?;
        let next = Arc::new(version.apply(edit, opened)?);
        if versions.manifest.is_doubtful() {
            self.start_manifest(versions, version)?;
        }
        edit.next_file_num = Some(self.context.next_file_num());
        let before_bytes = versions.manifest.bytes();
        versions.manifest.append(edit).map_err(|error| self.manifest_error(error))?;
        let written_bytes = versions.manifest.bytes() - before_bytes;
        self.counters.manifest_bytes.fetch_add(written_bytes, Ordering::Relaxed);
        Ok(next)
    }

    /// Begins a new manifest, whose first edit is the whole tree.
    fn start_manifest(&self, versions: &mut VersionState, version: &Version<Table>) -> Result<()> {
        let Context { env, dir, .. } = &*self.context;
        let num = self.context.new_file_num();
        let next_file_num = self.context.next_file_num();
        let snapshot = VersionEdit {
            logs: versions.logs.clone().into_iter().collect(),
            ..version.snapshot_edit(next_file_num, versions.last_seq, versions.oldest_wal)
        };
        let created = ManifestWriter::create(&*env.fs, dir, num, &snapshot);
        let manifest = created.map_err(|error| {
            let error = self.manifest_error(error);
            if error.kind() != ErrorKind::Fenced {
                self.context.remove_file(&file_path(dir, FileKind::Temporary, num));
            }
            error
        })?;
        self.counters.manifest_bytes.fetch_add(manifest.bytes(), Ordering::Relaxed);
        versions.manifest = manifest;
        remove_older(&*env.fs, dir, num).map(drop)
    }

    /// An edit whose outcome is unknown fences: nothing may rely on it or on its absence.
    fn manifest_error(&self, error: Error) -> Error {
        match error.kind() {
            ErrorKind::OutcomeUnknown => self.context.fence(error).with_kind(ErrorKind::Fenced),
            _ => error,
        }
    }
}

impl VersionState {
    /// Those of `known_logs` from `oldest_wal` on that the manifest does not know, or not with all
    /// their synced bytes.
    fn news_of(&self, known_logs: Vec<(FileNum, u64)>, oldest_wal: FileNum) -> Vec<(FileNum, u64)> {
        let is_news = |&(num, synced_bytes): &(FileNum, u64)| {
            num >= oldest_wal && self.logs.get(&num).is_none_or(|&before| before < synced_bytes)
        };
        known_logs.into_iter().filter(is_news).collect()
    }
}
