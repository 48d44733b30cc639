//! Makes a database of what is readable.
//!
//! 1. Which tables count: those that the manifest names; without a readable manifest, every table in the directory, all on level 0,
//!    where the order of sequence numbers decides. That may bring back keys whose tombstones had been compacted away.
//! 2. A damaged table is replaced by one with the entries of its readable blocks, on the same level.
//! 3. A damaged log is replayed up to the damage, into a new table on level 0. So is a whole one without a readable manifest, which
//!    would say where among the tables it belongs.
//! 4. A new manifest names the outcome. Damaged files are moved to `lost/`, nothing is deleted.

use super::{lock_existing, open_table, table_context};
use crate::db::recovery::{list, needed_wals};
use crate::format::{FileKind, FileNum, InternalKeyRef, SeqNum, file_name, file_path};
use crate::iter::InternalIterator;
use crate::memtable::Memtable;
use crate::options::Options;
use crate::table::{Table, TableBuilder, TableContext, TableOptions, bits_per_key_for};
use crate::version::{self, FileMeta, ManifestWriter, VersionEdit};
use crate::wal;
use kvant_base::{Error, ErrorKind, Result};
use kvant_env::Env;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What [`repair`] did.
#[derive(Debug, Default)]
pub struct RepairReport {
    /// Tables that were whole.
    pub whole_table_count: u64,
    /// Tables that were damaged.
    pub damaged_table_count: u64,
    /// Entries saved from damaged tables.
    pub saved_entry_count: u64,
    /// Blocks of damaged tables that could not be read. What they held is lost.
    pub lost_block_count: u64,
    /// Records of a damaged log that were saved.
    pub saved_record_count: u64,
    /// Files moved to `lost/`.
    pub moved_files: Vec<PathBuf>,
    /// What was found damaged, with file and offset.
    pub problems: Vec<Error>,
}

struct Repair<'a> {
    env: &'a Env,
    dir: &'a Path,
    context: Arc<TableContext>,
    next_file_num: u64,
    last_seq: SeqNum,
    added: Vec<(usize, FileMeta)>,
    /// Moved when the new manifest is durable: until then the old state is as it was.
    to_move: Vec<PathBuf>,
    report: RepairReport,
}

/// Repairs the database in `dir`. A whole database is left as it is, but for a new manifest.
///
/// # Errors
/// `Locked` when somebody serves the directory; `Unsupported` for files of a newer version; `Io`, `NoSpace`. Nothing is moved then.
pub fn repair(env: &Env, dir: &Path) -> Result<RepairReport> {
    let _owner = lock_existing(env, dir)?;
    let files = list(env, dir)?;
    let next_file_num = files.iter().map(|(_, num, _)| num.0 + 1).max().unwrap_or(1);
    let mut repair = Repair {
        env,
        dir,
        context: table_context(),
        next_file_num,
        last_seq: SeqNum(0),
        added: Vec::new(),
        to_move: Vec::new(),
        report: RepairReport::default(),
    };
    let mut oldest_wal = None;
    match repair.readable(version::recover(&*env.fs, dir))?.flatten() {
        Some(manifest) => {
            oldest_wal = Some(manifest.state.oldest_wal);
            repair.last_seq = manifest.state.last_seq;
            for (level, metas) in manifest.state.levels().iter().enumerate() {
                for meta in metas {
                    repair.table(level, meta.num)?;
                }
            }
        }
        None => {
            for (kind, num, _) in &files {
                match kind {
                    FileKind::Table => repair.table(0, *num)?,
                    FileKind::Manifest => repair.to_move.push(file_path(dir, FileKind::Manifest, *num)),
                    _ => {}
                }
            }
        }
    }
    let oldest_wal = repair.logs(&needed_wals(&files, oldest_wal.unwrap_or(FileNum(0))), oldest_wal)?;
    repair.finish(oldest_wal)
}

impl Repair<'_> {
    /// Notes damage and goes on; other errors end the repair.
    fn readable<T>(&mut self, result: Result<T>) -> Result<Option<T>> {
        match result {
            Ok(value) => Ok(Some(value)),
            Err(error) if error.kind() == ErrorKind::Corruption => {
                self.report.problems.push(error);
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    fn new_num(&mut self) -> FileNum {
        self.next_file_num += 1;
        FileNum(self.next_file_num - 1)
    }

    fn table(&mut self, level: usize, num: FileNum) -> Result<()> {
        let path = file_path(self.dir, FileKind::Table, num);
        if !self
            .env
            .fs
            .exists(&path)
            .map_err(|e| Error::io("look at", &path, e))?
        {
            self.report.problems.push(Error::corruption(
                &path,
                0,
                "a table that the manifest names is missing",
            ));
            return Ok(());
        }
        let opened = open_table(self.env, self.dir, num, &self.context);
        let Some(table) = self.readable(opened)? else {
            self.report.damaged_table_count += 1;
            self.to_move.push(path);
            return Ok(());
        };
        if self.readable(table.verify())?.is_some() {
            self.report.whole_table_count += 1;
            let meta = FileMeta::of_table(num, table.properties(), table.file_bytes());
            self.last_seq = self.last_seq.max(meta.seq_max);
            self.added.push((level, meta));
            return Ok(());
        }
        self.report.damaged_table_count += 1;
        self.to_move.push(path);
        self.save(level, &table)
    }

    /// Writes the entries of a damaged table's readable blocks to a new one.
    fn save(&mut self, level: usize, damaged: &Arc<Table>) -> Result<()> {
        let mut output: Option<(FileNum, TableBuilder)> = None;
        let mut saved = 0;
        let lost = damaged.salvage(&mut |key, value| {
            if output.is_none() {
                output = Some(self.begin_table()?);
            }
            let (_, builder) = output.as_mut().expect("a table was begun");
            saved += 1;
            builder.add(key, value)
        })?;
        self.report.saved_entry_count += saved;
        self.report.lost_block_count += lost;
        match output {
            Some((num, builder)) => self.finish_table(level, num, builder),
            None => Ok(()),
        }
    }

    fn begin_table(&mut self) -> Result<(FileNum, TableBuilder)> {
        let num = self.new_num();
        let path = file_path(self.dir, FileKind::Table, num);
        let file = self
            .env
            .fs
            .create(&path)
            .map_err(|e| Error::io("create", &path, e))?;
        let options = Options::for_memory(super::TOOL_MEMORY_BYTES);
        let table_options = TableOptions {
            block_bytes: options.block_bytes,
            compression: options.compression[0],
            filter_bits_per_key: bits_per_key_for(options.filter_false_positive_share / 2.0),
        };
        Ok((num, TableBuilder::new(file, &path, table_options)))
    }

    fn finish_table(&mut self, level: usize, num: FileNum, builder: TableBuilder) -> Result<()> {
        let finished = builder.finish()?;
        let path = file_path(self.dir, FileKind::Table, num);
        let file = self
            .env
            .fs
            .open_writable(&path)
            .map_err(|e| Error::io("open", &path, e))?;
        file.sync_data().map_err(|e| Error::io("sync", &path, e))?;
        let meta = FileMeta::of_table(num, &finished.properties, finished.file_bytes);
        self.last_seq = self.last_seq.max(meta.seq_max);
        self.added.push((level, meta));
        Ok(())
    }

    /// Keeps a whole log, given the oldest that the manifest names; replays another one into a table. Returns the oldest log that the
    /// new manifest has to name.
    fn logs(&mut self, nums: &[FileNum], named: Option<FileNum>) -> Result<FileNum> {
        let oldest = named.unwrap_or(FileNum(0));
        let memtable = Memtable::new(&self.context.memory, 1 << 20, usize::MAX);
        let mut records = 0;
        let replayed = wal::recover(&*self.env.fs, self.dir, nums, None, &mut |_, record| {
            records += 1;
            record.replay(|seq, op| {
                memtable.insert(InternalKeyRef::new(op.key, seq, op.kind), op.stored);
                Ok(())
            })
        });
        let path = file_path(self.dir, FileKind::Wal, oldest);
        let missing = oldest != FileNum(0)
            && !self
                .env
                .fs
                .exists(&path)
                .map_err(|e| Error::io("look at", &path, e))?;
        if missing {
            self.report.problems.push(Error::corruption(
                &path,
                0,
                "a log file that the manifest needs is missing",
            ));
        }
        let whole = self.readable(replayed)?.is_some() && !missing;
        if whole && named.is_some() {
            return Ok(oldest);
        }
        self.report.saved_record_count = records;
        self.to_move
            .extend(nums.iter().map(|&num| file_path(self.dir, FileKind::Wal, num)));
        if !memtable.is_empty() {
            let (num, mut builder) = self.begin_table()?;
            let mut entries = memtable.iter();
            entries.seek_to_first()?;
            while entries.valid() {
                builder.add(entries.key(), entries.value())?;
                entries.next()?;
            }
            self.finish_table(0, num, builder)?;
        }
        // Zero: no log is needed.
        Ok(FileNum(0))
    }

    fn finish(mut self, oldest_wal: FileNum) -> Result<RepairReport> {
        let fs = &*self.env.fs;
        let num = self.new_num();
        let edit = VersionEdit {
            added: std::mem::take(&mut self.added),
            next_file_num: Some(FileNum(self.next_file_num)),
            last_seq: Some(self.last_seq),
            oldest_wal: Some(oldest_wal),
            ..VersionEdit::default()
        };
        fs.sync_dir(self.dir)
            .map_err(|e| Error::io("sync", self.dir, e))?;
        ManifestWriter::create(fs, self.dir, num, &edit)?;
        let lost = self.dir.join("lost");
        if !self.to_move.is_empty() {
            fs.create_dir_all(&lost)
                .map_err(|e| Error::io("create", &lost, e))?;
        }
        for from in std::mem::take(&mut self.to_move) {
            let to = lost.join(from.file_name().expect("a file has a name"));
            fs.rename(&from, &to).map_err(|e| Error::io("move", &from, e))?;
            self.report.moved_files.push(to);
        }
        fs.sync_dir(self.dir)
            .map_err(|e| Error::io("sync", self.dir, e))?;
        debug_assert!(
            !self
                .report
                .moved_files
                .contains(&self.dir.join(file_name(FileKind::Manifest, num)))
        );
        Ok(self.report)
    }
}
