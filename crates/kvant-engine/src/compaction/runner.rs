//! Writes the output tables of a flush or a compaction, syncs them and opens them.
//!
//! A table ends where the [`OutputCutter`] decides, never between two versions of a user key: below
//! level 0, all versions of a key in a level are in one table.
//!
//! On error all files created so far are removed. The next open removes the remaining ones as
//! orphans.

use super::OutputCutter;
use crate::events::EventSink;
use crate::format::{FileKind, FileNum, file_path};
use crate::iter::{CompactionIter, KeptEntry, MergeIter};
use crate::table::{Table, TableBuilder, TableContext, TableOptions};
use crate::version::{FileMeta, ObsoleteQueue, TableFile};
use kvant_base::log::{Level, Log};
use kvant_base::tag::{self, Stage};
use kvant_base::{Consumer, Error, Reservation, Result};
use kvant_env::{Env, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Entry bytes between two calls of [`Run::progress`].
const PROGRESS_BYTES: u64 = 256 << 10;

/// The environment and settings of a flush or compaction.
pub(crate) struct Run<'a> {
    pub(crate) env: &'a Env,
    pub(crate) dir: &'a Path,
    pub(crate) log: &'a dyn Log,
    pub(crate) events: &'a EventSink,
    pub(crate) tables: &'a Arc<TableContext>,
    /// The queue for the new tables when they become obsolete.
    pub(crate) obsolete: &'a Arc<ObsoleteQueue>,
    pub(crate) new_file_num: &'a dyn Fn() -> FileNum,
    /// Settings of the output level.
    pub(crate) table_options: TableOptions,
    /// Where tables end; `None`: write one table.
    pub(crate) cutter: Option<OutputCutter<'a>>,
    /// Called with the entry bytes written since the last call. An error ends the run.
    pub(crate) progress: &'a mut dyn FnMut(u64) -> Result<()>,
    /// Fences writes after a failed fsync.
    pub(crate) fence: &'a dyn Fn(Error) -> Error,
}

/// The tables that a run has written: open, synced, and with durable names.
#[derive(Default)]
pub(crate) struct Outputs {
    pub(crate) tables: Vec<Arc<TableFile<Table>>>,
    pub(crate) written_bytes: u64,
}

impl Outputs {
    /// The additions of an edit.
    pub(crate) fn added(&self, level: usize) -> Vec<(usize, FileMeta)> {
        self.tables.iter().map(|file| (level, file.meta.clone())).collect()
    }

    fn add(&mut self, table: Arc<TableFile<Table>>) {
        self.written_bytes += table.meta.file_bytes;
        self.tables.push(table);
    }
}

pub(crate) fn write_tables(
    entries: &mut CompactionIter<MergeIter>,
    mut run: Run<'_>,
) -> Result<Outputs> {
    let mut created = Vec::new();
    write_all(entries, &mut run, &mut created).inspect_err(|_| {
        for path in &created {
            if let Err(source) = run.env.fs.remove_file(path) {
                let error = Error::io("remove", path, source);
                run.log.event(Level::Warn, "file_not_removed", &[("error", &error)]);
            }
        }
    })
}

fn write_all(
    entries: &mut CompactionIter<MergeIter>,
    run: &mut Run<'_>,
    created: &mut Vec<PathBuf>,
) -> Result<Outputs> {
    let _tag = tag::stage(Stage::Merge);
    let mut outputs = Outputs::default();
    let mut open: Option<OpenOutput> = None;
    let mut unreported_bytes = 0;
    while let Some(KeptEntry { key, value, starts_user_key }) = entries.next()? {
        if starts_user_key {
            let output_bytes = open.as_ref().map_or(0, |output| output.builder.estimated_bytes());
            let cut = run
                .cutter
                .as_mut()
                .is_some_and(|cutter| cutter.cut_before(key.user_key, output_bytes));
            if cut && let Some(output) = open.take() {
                outputs.add(output.finish(run)?);
            }
        }
        let output = match &mut open {
            Some(output) => output,
            None => open.insert(OpenOutput::create(run, created)?),
        };
        let building = tag::stage(Stage::Build);
        output.builder.add(key, value)?;
        drop(building);
        output.reserve_memory();
        unreported_bytes += (key.user_key.len() + value.len()) as u64;
        if unreported_bytes >= PROGRESS_BYTES {
            (run.progress)(std::mem::take(&mut unreported_bytes))?;
        }
    }
    if let Some(output) = open {
        outputs.add(output.finish(run)?);
    }
    (run.progress)(unreported_bytes)?;
    if !outputs.tables.is_empty() {
        run.events
            .sync("directory", || run.env.fs.sync_dir(run.dir))
            .map_err(|e| (run.fence)(Error::io("fsync", run.dir, e)))?;
    }
    Ok(outputs)
}

struct OpenOutput {
    num: FileNum,
    path: PathBuf,
    file: Arc<dyn File>,
    builder: TableBuilder,
    memory: Reservation,
}

impl OpenOutput {
    fn create(run: &Run<'_>, created: &mut Vec<PathBuf>) -> Result<OpenOutput> {
        let num = (run.new_file_num)();
        let path = file_path(run.dir, FileKind::Table, num);
        created.push(path.clone());
        let file = run.env.fs.create(&path).map_err(|source| Error::io("create", &path, source))?;
        let builder = TableBuilder::new(Arc::clone(&file), &path, num, run.table_options);
        let memory = run.tables.memory.reserve(Consumer::Compaction, 0);
        Ok(OpenOutput { num, path, file, builder, memory })
    }

    fn reserve_memory(&mut self) {
        let bytes = self.builder.memory_bytes();
        if bytes.abs_diff(self.memory.bytes()) >= 64 << 10 {
            self.memory.resize(bytes);
        }
    }

    fn finish(self, run: &Run<'_>) -> Result<Arc<TableFile<Table>>> {
        let tag = tag::stage(Stage::Build);
        let finished = self.builder.finish()?;
        tag.stage(Stage::Sync);
        run.events
            .sync("table", || self.file.sync_data())
            .map_err(|source| (run.fence)(Error::io("fsync", &self.path, source)))?;
        tag.stage(Stage::Build);
        let meta = FileMeta::of_table(self.num, &finished.properties, finished.file_bytes);
        let table =
            Table::open(self.file, &self.path, self.num, meta.file_bytes, Arc::clone(run.tables))?;
        Ok(TableFile::new(meta, table, Arc::clone(run.obsolete)))
    }
}
