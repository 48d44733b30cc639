//! Writes the output tables of a flush or a compaction, syncs them and opens them.
//!
//! A table ends where the [`OutputCutter`] decides, never between two versions of a user key: below
//! level 0, all versions of a key in a level are in one table.
//!
//! On error all files created so far are removed. The next open removes the remaining ones as
//! orphans.

use super::Tree;
use crate::compaction::OutputCutter;
use crate::format::{FileKind, FileNum, ValueKind, file_path};
use crate::iter::{CompactionIter, KeptEntry, PacedIter};
use crate::table::{FinishedTable, Table, TableBuilder, TableOptions};
use crate::version::{FileMeta, TableFile};
use kvant_base::tag::{self, Stage};
use kvant_base::{Consumer, Error, ErrorKind, Reservation, Result};
use std::sync::Arc;

/// Entry bytes between two reports of progress.
const PROGRESS_BYTES: u64 = 64 << 10;

/// The tables that a flush or a compaction has written: open, synced, and with durable names.
#[derive(Default)]
pub(crate) struct Outputs {
    pub(crate) tables: Vec<Arc<TableFile<Table>>>,
    pub(crate) written_bytes: u64,
}

impl Outputs {
    pub(crate) fn added(&self, level: usize) -> Vec<(usize, FileMeta)> {
        self.tables.iter().map(|file| (level, file.meta.clone())).collect()
    }

    fn add(&mut self, table: Arc<TableFile<Table>>) {
        self.written_bytes += table.meta.file_bytes;
        self.tables.push(table);
    }
}

/// A table that is being written, and the memory for that.
struct OpenOutput {
    builder: TableBuilder,
    memory: Reservation,
}

impl Tree {
    /// Writes what `entries` yields as tables for `level`, or as one table without a `cutter`.
    /// `progress` receives the entry bytes written since its last call; its error ends the run.
    pub(crate) fn write_tables(
        &self,
        entries: &mut CompactionIter<PacedIter<'_>>,
        level: usize,
        cutter: Option<OutputCutter<'_>>,
        progress: &mut dyn FnMut(u64) -> Result<()>,
    ) -> Result<Outputs> {
        let mut created = Vec::new();
        self.write_all(entries, level, cutter, progress, &mut created).inspect_err(|_| {
            for num in created {
                let path = file_path(&self.context.dir, FileKind::Table, num);
                self.context.remove_file(&path);
            }
        })
    }

    fn write_all(
        &self,
        entries: &mut CompactionIter<PacedIter<'_>>,
        level: usize,
        mut cutter: Option<OutputCutter<'_>>,
        progress: &mut dyn FnMut(u64) -> Result<()>,
        created: &mut Vec<FileNum>,
    ) -> Result<Outputs> {
        let _tag = tag::stage(Stage::Merge);
        let mut outputs = Outputs::default();
        let mut open: Option<OpenOutput> = None;
        let mut unreported_bytes = 0;
        while let Some(KeptEntry { key, value, starts_user_key, own_block }) = entries.next()? {
            if starts_user_key {
                let output_bytes =
                    open.as_ref().map_or(0, |output| output.builder.estimated_bytes());
                let is_tombstone = key.kind() == Some(ValueKind::Delete);
                let cut = cutter.as_mut().is_some_and(|cutter| {
                    cutter.cut_before(key.user_key, output_bytes, is_tombstone)
                });
                if cut && let Some(output) = open.take() {
                    outputs.add(self.finish_output(output)?);
                }
            }
            let output = match &mut open {
                Some(output) => output,
                None => open.insert(self.create_output(level, created)?),
            };
            let building = tag::stage(Stage::Build);
            output.builder.add(key, value, own_block)?;
            drop(building);
            output.reserve_memory();
            unreported_bytes += (key.user_key.len() + value.len()) as u64;
            if unreported_bytes >= PROGRESS_BYTES {
                progress(std::mem::take(&mut unreported_bytes))?;
            }
        }
        if let Some(output) = open {
            outputs.add(self.finish_output(output)?);
        }
        progress(unreported_bytes)?;
        if !outputs.tables.is_empty() {
            self.context.sync_dir()?;
        }
        Ok(outputs)
    }

    fn create_output(&self, level: usize, created: &mut Vec<FileNum>) -> Result<OpenOutput> {
        let options = &self.context.options;
        let table_options = TableOptions {
            block_bytes: options.block_bytes,
            compression: options.compression[level],
            filter_bits_per_key: self.filter_bits_per_key[level],
        };
        let num = self.context.new_file_num();
        created.push(num);
        let fs = &*self.context.env.fs;
        let builder = TableBuilder::create(fs, &self.context.dir, num, table_options)?;
        Ok(OpenOutput { builder, memory: self.tables.memory.reserve(Consumer::Compaction, 0) })
    }

    fn finish_output(&self, output: OpenOutput) -> Result<Arc<TableFile<Table>>> {
        let tag = tag::stage(Stage::Build);
        let FinishedTable { num, path, file, properties, file_bytes } = output.builder.finish()?;
        tag.stage(Stage::Sync);
        self.context.events.sync("table", || file.sync_data()).map_err(|source| {
            self.context.fence(Error::io("fsync", &path, source)).with_kind(ErrorKind::Fenced)
        })?;
        tag.stage(Stage::Build);
        let meta = FileMeta::of_table(num, &properties, file_bytes);
        let file = if self.tables.direct_reads {
            drop(file);
            let opened = self.tables.open_file(&*self.context.env.fs, &path);
            opened.map_err(|e| Error::io("open", &path, e))?
        } else {
            file
        };
        let table = Table::open(file, &path, num, file_bytes, Arc::clone(&self.tables))?;
        Ok(TableFile::new(meta, table, Arc::clone(&self.obsolete)))
    }
}

impl OpenOutput {
    fn reserve_memory(&mut self) {
        let bytes = self.builder.memory_bytes();
        if bytes.abs_diff(self.memory.bytes()) >= 64 << 10 {
            self.memory.resize(bytes);
        }
    }
}
