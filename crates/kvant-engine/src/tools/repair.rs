//! Builds a database of what is readable.
//!
//! 1. The tables are those that the manifest names; without a readable manifest, every table in the
//!    directory, in level 0, where sequence numbers decide which entry is newest. Then records may
//!    reappear whose tombstones have been compacted away, and older values of records whose newest
//!    one has lost its sequence number, if a table or log that is not needed any more is there.
//! 2. A damaged table is replaced by one with the entries of its readable blocks, in the same
//!    level. A table under the name of another one is identified by its properties and rewritten.
//! 3. Damaged logs are replayed up to the damage, a prefix of the history, into a new table in the
//!    first level. Without a readable manifest all logs become such a table.
//! 4. A new manifest describes the result. If no log is kept, it names a new, empty one: those
//!    before it are then obsolete, even if this process ends before it has removed them.
//! 5. Damaged files are moved to `lost/`; nothing is deleted. They are linked there before the
//!    manifest leaves them out, since the next open removes what no manifest names.

use super::open::{TOOL_MEMORY_BYTES, lock_existing, open_table_file, table_context};
use crate::cursor::InternalIterator;
use crate::db::inventory::{first_seq, lost_logs, needed_wals, open_table};
use crate::format::{FileKind, FileNum, InternalKeyRef, SeqNum, file_path, parse_file_name};
use crate::memtable::{ChunkPool, MemtableWriter};
use crate::options::Options;
use crate::table::{Table, TableBuilder, TableContext, TableOptions, bits_per_key_for};
use crate::version::{
    self, FileMeta, KnownLogs, Listed, ManifestState, ManifestWriter, VersionEdit, list_files,
};
use crate::wal;
use kvant_base::{Error, ErrorKind, Result};
use kvant_env::{DirEntry, Env, Fs};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Result of [`repair`].
#[derive(Debug, Default)]
pub struct RepairReport {
    /// Undamaged tables.
    pub whole_table_count: u64,
    /// Tables that were damaged, missing or misplaced.
    pub damaged_table_count: u64,
    /// Entries saved from these.
    pub saved_entry_count: u64,
    /// Unreadable blocks of damaged tables, whose entries are lost.
    pub lost_block_count: u64,
    /// Records saved from damaged logs.
    pub saved_record_count: u64,
    /// Lost operations after the damage of a log, as far as they can be counted.
    pub lost_op_count: u64,
    /// Files moved to `lost/`.
    pub moved_files: Vec<PathBuf>,
    /// The damage, each with file and offset.
    pub problems: Vec<Error>,
    /// What could not be saved, one line each. Empty: nothing is lost.
    pub losses: Vec<String>,
}

const MAY_REAPPEAR: &str = "older or deleted records with their keys may have reappeared";

struct Repair<'a> {
    env: &'a Env,
    dir: &'a Path,
    files: Vec<Listed>,
    context: Arc<TableContext>,
    next_file_num: u64,
    last_seq: SeqNum,
    added: Vec<(usize, FileMeta)>,
    /// Files to move to `lost/`.
    to_move: Vec<PathBuf>,
    report: RepairReport,
}

/// Repairs the database in `dir`. An undamaged database only gets a new manifest.
///
/// # Errors
/// `Invalid` when there is no database, or one of LevelDB; `Locked` when the directory is in use;
/// `Unsupported` for files of a newer version; `Io`, `NoSpace`. After an error no file is lost:
/// each is in its place, in `lost/`, or in both.
pub fn repair(env: &Env, dir: &Path) -> Result<RepairReport> {
    require_database(env, dir)?;
    let _lock = lock_existing(env, dir)?;
    let files = list_files(&*env.fs, dir)?;
    let next_file_num = files.iter().map(|(_, num, _)| num.0 + 1).max().unwrap_or(1);
    let mut repair = Repair {
        env,
        dir,
        files,
        // Pins no indexes and filters: tables can be opened although these are damaged.
        context: table_context(env, 0),
        next_file_num,
        last_seq: SeqNum(0),
        added: Vec::new(),
        to_move: Vec::new(),
        report: RepairReport::default(),
    };
    let logs = match repair.readable(version::recover(&*env.fs, dir))?.flatten() {
        Some(manifest) => {
            let state = manifest.state;
            repair.next_file_num = repair.next_file_num.max(state.next_file_num.0);
            repair.last_seq = state.last_seq;
            for (level, metas) in state.levels().iter().enumerate() {
                for meta in metas {
                    repair.table(level, meta)?;
                }
            }
            repair.logs(&state)?
        }
        None => {
            repair.without_manifest()?;
            None
        }
    };
    repair.finish(logs)
}

/// Fails, before a file is left there, if `dir` has nothing to repair: the result would be a new
/// database in a misspelt directory.
fn require_database(env: &Env, dir: &Path) -> Result<()> {
    let entries = env.fs.list(dir).map_err(|e| Error::io("list", dir, e))?;
    if entries.iter().any(|entry| entry.name.ends_with(".ldb")) {
        let what = "the directory belongs to LevelDB: serve it with --engine leveldb, which \
                    repairs it with --recover-anyway";
        return Err(Error::invalid(what).with_file(dir));
    }
    let is_data = |entry: &DirEntry| {
        let kind = parse_file_name(&entry.name).map(|(kind, _)| kind);
        matches!(kind, Some(FileKind::Manifest | FileKind::Table | FileKind::Wal))
    };
    match entries.iter().any(is_data) {
        true => Ok(()),
        false => Err(Error::invalid("there is no database").with_file(dir)),
    }
}

impl Repair<'_> {
    /// Records damage in the report and returns `None`. Other errors end the repair.
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

    fn set_aside(&mut self, kind: FileKind, num: FileNum) {
        let path = file_path(self.dir, kind, num);
        let exists = self.files.iter().any(|(k, n, _)| (*k, *n) == (kind, num));
        if exists && !self.to_move.contains(&path) {
            self.to_move.push(path);
        }
    }

    fn nums(&self, kind: FileKind) -> Vec<FileNum> {
        let of_kind = self.files.iter().filter(|(found, ..)| *found == kind);
        of_kind.map(|(_, num, _)| *num).collect()
    }

    fn without_manifest(&mut self) -> Result<()> {
        for num in self.nums(FileKind::Manifest) {
            self.set_aside(FileKind::Manifest, num);
        }
        let tables = self.nums(FileKind::Table);
        let wals = needed_wals(&self.files, FileNum(0));
        self.report.losses.push(
            "the manifest: missing files go unnoticed, and deleted or overwritten records may have \
             reappeared"
                .to_string(),
        );
        for num in tables {
            let opened = open_table_file(self.env, self.dir, num, &self.context);
            match self.readable(opened)? {
                Some(table) => {
                    let meta = FileMeta::of_table(num, table.properties(), table.file_bytes());
                    self.keep_or_save(0, &meta, &table)?;
                }
                None => self.lost_table(num, ""),
            }
        }
        self.replay(&wals, &KnownLogs::new(), None, true)?;
        Ok(())
    }

    /// Handles a table that the manifest names.
    fn table(&mut self, level: usize, meta: &FileMeta) -> Result<()> {
        let opened = open_table(self.env, self.dir, meta, &self.context);
        if let Some(table) = self.readable(opened)? {
            return self.keep_or_save(level, meta, &table);
        }
        match self.find_misplaced(meta)? {
            Some(table) => self.save(level, meta.num, &table),
            None => {
                let (first, last) = (&meta.smallest.user_key, &meta.largest.user_key);
                let what = format!(
                    ", {} entries of level {level} with keys from {} to {}; {MAY_REAPPEAR}",
                    meta.entry_count,
                    first.escape_ascii(),
                    last.escape_ascii()
                );
                self.lost_table(meta.num, &what);
                Ok(())
            }
        }
    }

    fn lost_table(&mut self, num: FileNum, what: &str) {
        self.report.damaged_table_count += 1;
        self.report.losses.push(format!("table {}{what}", num.0));
        self.set_aside(FileKind::Table, num);
    }

    /// The table that `meta` describes, found under the name of another table.
    fn find_misplaced(&mut self, meta: &FileMeta) -> Result<Option<Arc<Table>>> {
        for num in self.nums(FileKind::Table) {
            match open_table_file(self.env, self.dir, num, &self.context) {
                Ok(table)
                    if meta.disagreement(table.properties(), table.file_bytes()).is_none() =>
                {
                    self.set_aside(FileKind::Table, num);
                    return Ok(Some(table));
                }
                Err(error) if error.kind() != ErrorKind::Corruption => return Err(error),
                // Another table; or damage, which is reported for that file.
                Ok(_) | Err(_) => {}
            }
        }
        Ok(None)
    }

    /// Keeps an undamaged table, and saves what is readable of another.
    fn keep_or_save(&mut self, level: usize, meta: &FileMeta, table: &Arc<Table>) -> Result<()> {
        let in_place = table.properties().file_num.is_none_or(|num| num == meta.num)
            && meta.problem().is_none();
        if in_place && self.readable(table.verify())?.is_some() {
            self.report.whole_table_count += 1;
            self.last_seq = self.last_seq.max(meta.seq_max);
            self.added.push((level, meta.clone()));
            return Ok(());
        }
        self.save(level, meta.num, table)
    }

    /// Writes the readable entries of table `num` to a new table and sets the file aside.
    fn save(&mut self, level: usize, num: FileNum, table: &Arc<Table>) -> Result<()> {
        self.report.damaged_table_count += 1;
        self.set_aside(FileKind::Table, num);
        let mut output: Option<TableBuilder> = None;
        let mut saved_count = 0;
        let salvaged = table.salvage(&mut |key, value| {
            let output = match &mut output {
                Some(output) => output,
                none => none.insert(self.create_table()?),
            };
            saved_count += 1;
            output.add(key, value, None)
        });
        let blocks = match self.readable(salvaged)? {
            Some(lost_count) => {
                self.report.lost_block_count += lost_count;
                (lost_count > 0).then(|| format!("{lost_count}"))
            }
            // The index is damaged: the places of the blocks are unknown.
            None => Some("all".to_string()),
        };
        if let Some(blocks) = blocks {
            self.report.losses.push(format!("{blocks} blocks of table {}; {MAY_REAPPEAR}", num.0));
        }
        self.report.saved_entry_count += saved_count;
        output.map_or(Ok(()), |output| self.finish_table(level, output))
    }

    fn create_table(&mut self) -> Result<TableBuilder> {
        let num = self.new_num();
        let options = Options::for_memory(TOOL_MEMORY_BYTES);
        let table_options = TableOptions {
            block_bytes: options.block_bytes,
            compression: options.compression[0],
            filter_bits_per_key: bits_per_key_for(options.filter_false_positive_share / 2.0),
        };
        TableBuilder::create(&*self.env.fs, self.dir, num, table_options)
    }

    fn finish_table(&mut self, level: usize, table: TableBuilder) -> Result<()> {
        let table = table.finish()?;
        table.file.sync_data().map_err(|e| Error::io("fsync", &table.path, e))?;
        let meta = FileMeta::of_table(table.num, &table.properties, table.file_bytes);
        self.last_seq = self.last_seq.max(meta.seq_max);
        self.added.push((level, meta));
        Ok(())
    }

    /// Keeps undamaged logs and returns the fields of the new manifest for them, or replays the
    /// logs into a table.
    fn logs(&mut self, state: &ManifestState) -> Result<Option<(FileNum, KnownLogs)>> {
        let lost = lost_logs(self.dir, &self.files, state);
        let whole = lost.is_empty();
        for error in lost {
            let file = error.file().and_then(Path::file_name).unwrap_or_default();
            let offset_bytes = error.offset_bytes().unwrap_or(0);
            self.report.losses.push(format!("{} from byte {offset_bytes} on", file.display()));
            self.report.problems.push(error);
        }
        let nums = needed_wals(&self.files, state.oldest_wal);
        let kept = self.replay(&nums, &state.logs, Some(first_seq(state)), !whole)?;
        Ok(kept.then(|| (state.oldest_wal, state.logs.clone())))
    }

    /// Reads logs up to the first damage. Without damage they are kept, unless `always`, and the
    /// result is true. Otherwise the records become a table and the logs are set aside.
    fn replay(
        &mut self,
        nums: &[FileNum],
        known: &KnownLogs,
        first_seq: Option<SeqNum>,
        always: bool,
    ) -> Result<bool> {
        let mut memtable = MemtableWriter::new(
            &ChunkPool::new(&self.context.memory, 0),
            1 << 20,
            usize::MAX,
            false,
        );
        let salvaged =
            wal::salvage(&*self.env.fs, self.dir, nums, known, first_seq, &mut |_, record| {
                record.replay(|seq, op| {
                    let key = InternalKeyRef::new(op.key, seq, op.kind);
                    memtable.insert(std::iter::once((key, op.stored)));
                    Ok(())
                })
            })?;
        if !always && salvaged.damage.is_none() {
            return Ok(true);
        }
        self.report.saved_record_count = salvaged.record_count;
        if let Some(damage) = salvaged.damage {
            self.report.lost_op_count = salvaged.lost_op_count;
            self.report.losses.push(format!(
                "the rest of the logs after the damage: at least {} operations",
                salvaged.lost_op_count
            ));
            let is_reported = |problem: &Error| problem.to_string() == damage.to_string();
            if !self.report.problems.iter().any(is_reported) {
                self.report.problems.push(damage);
            }
        }
        // Also those that were flushed, and wait for reuse or removal: the next open removes all
        // before the log that the new manifest names.
        for num in self.nums(FileKind::Wal) {
            self.set_aside(FileKind::Wal, num);
        }
        let memtable = memtable.memtable();
        if memtable.is_empty() {
            return Ok(false);
        }
        let mut table = self.create_table()?;
        let mut entries = memtable.iter();
        entries.seek_to_first()?;
        while entries.valid() {
            table.add(entries.key(), entries.value(), None)?;
            entries.next()?;
        }
        self.finish_table(0, table)?;
        Ok(false)
    }

    /// Creates an empty log, above all others.
    fn create_log(&mut self) -> Result<FileNum> {
        let num = self.new_num();
        let path = file_path(self.dir, FileKind::Wal, num);
        self.env.fs.create(&path).map_err(|e| Error::io("create", &path, e))?;
        Ok(num)
    }

    /// Writes the manifest and moves the files. `logs`: the oldest needed log, and the synced bytes
    /// of the logs from there on; `None` if no log is kept.
    fn finish(mut self, logs: Option<(FileNum, KnownLogs)>) -> Result<RepairReport> {
        let fs = &*self.env.fs;
        let (oldest_wal, logs) = match logs {
            Some(logs) => logs,
            None => (self.create_log()?, KnownLogs::new()),
        };
        let num = self.new_num();
        let edit = VersionEdit {
            added: std::mem::take(&mut self.added),
            next_file_num: Some(FileNum(self.next_file_num)),
            last_seq: Some(self.last_seq),
            oldest_wal: Some(oldest_wal),
            logs: logs.into_iter().collect(),
            ..VersionEdit::default()
        };
        let lost = self.dir.join("lost");
        if !self.to_move.is_empty() {
            fs.create_dir_all(&lost).map_err(|e| Error::io("create", &lost, e))?;
            for from in &self.to_move {
                self.report.moved_files.push(link_into(fs, from, &lost)?);
            }
            fs.sync_dir(&lost).map_err(|e| Error::io("fsync", &lost, e))?;
        }
        fs.sync_dir(self.dir).map_err(|e| Error::io("fsync", self.dir, e))?;
        ManifestWriter::create(fs, self.dir, num, &edit)?;
        for from in &self.to_move {
            fs.remove_file(from).map_err(|e| Error::io("remove", from, e))?;
        }
        fs.sync_dir(self.dir).map_err(|e| Error::io("fsync", self.dir, e))?;
        Ok(self.report)
    }
}

/// Links a file into `lost`, under a new name if an earlier repair left one of that name there.
fn link_into(fs: &dyn Fs, from: &Path, lost: &Path) -> Result<PathBuf> {
    let name = from.file_name().expect("a file has a name");
    let mut to = lost.join(name);
    let mut number = 1;
    loop {
        match fs.hard_link(from, &to) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                let mut numbered = name.to_os_string();
                numbered.push(format!(".{number}"));
                to = lost.join(numbered);
                number += 1;
            }
            linked => return linked.map(|()| to).map_err(|e| Error::io("link", from, e)),
        }
    }
}

#[cfg(test)]
mod tests;
