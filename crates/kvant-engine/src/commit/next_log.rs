//! The log after the current one, made ahead of time: sealing a memtable costs one small write.
//!
//! A log whose memtable has been flushed becomes the next one. The system still has its pages, so
//! that puts wait neither for fresh ones nor for space, and no file is removed. What it holds is no
//! part of the new log: `docs/formats/wal.md`.
//!
//! A log reserves what a full memtable would have taken of the last one that has ended: how many
//! bytes of log that is depends on the records. What does not fit is written behind it, by system
//! calls.
//!
//! Invariants:
//! 1. logs are used in the order of their numbers;
//! 2. the name of a log is durable before the log is used;
//! 3. a log takes another name only when the manifest does not need it any more;
//! 4. a log of an earlier process takes none: the sync task may be writing it again.
//!
//! Threads: the flush task prepares logs and hands old ones over; the leader takes one; the
//! compaction task removes old ones when writers do not need them.

use super::admission::Admission;
use crate::context::Context;
use crate::format::{FileKind, FileNum, file_path};
use crate::options::SyncLevel;
use crate::version::list_files;
use kvant_base::lock::NamedMutex;
use kvant_base::log::Level;
use kvant_base::{Error, Result};
use kvant_env::{File, MappedFile};
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

/// Least room of the disk, in memtables, with which a log is reserved ahead.
const MAPPED_ROOM_MEMTABLES: u64 = 8;
/// Most old logs that are kept for the next ones. With one, a writer that needs the next log
/// shortly before a flush ends would get a new file each time, and each flush would remove an old
/// one.
const SPARES_MAX: usize = 2;
/// Places of an old log where we look whether the system still has its pages.
const SAMPLED_PAGES: u64 = 64;
/// Most bytes that the first log of a process reserves.
const FIRST_LOG_BYTES_MAX: u64 = 32 << 20;
/// The reserved bytes of a log are a multiple of this.
const LOG_BYTES_UNIT: u64 = 1 << 20;
/// A log reserves one part in this many more than it is expected to take.
const LOG_MARGIN_PARTS: f64 = 16.0;
/// A log that is longer than needed by more than one part in this many is cut for its next use.
const CUT_PARTS: u64 = 4;
/// The least share of a memtable that an ended log has filled, to say what a whole one takes.
const TELLING_SHARE: f64 = 0.5;

pub(crate) struct NextLog {
    context: Arc<Context>,
    admission: Arc<Admission>,
    /// The last log of earlier processes.
    last_recovered: FileNum,
    /// Held while a log is made, so that logs are used in the order of their numbers.
    slots: NamedMutex<Slots>,
}

struct Slots {
    /// What a log usually takes.
    log_bytes: u64,
    /// How far the files of logs have been written, by this log or one before it, from the end of a
    /// log or the reuse of its file on until it is removed.
    written_bytes: BTreeMap<FileNum, u64>,
    prepared: Option<PreparedLog>,
    /// Logs that are not needed any more, for the next ones, the oldest first: that is used first,
    /// so that the logs that are left have no gap. They have their old names.
    spares: VecDeque<FileNum>,
}

/// A log file whose name is durable.
pub(crate) struct PreparedLog {
    pub(crate) num: FileNum,
    pub(crate) path: PathBuf,
    pub(crate) file: Arc<dyn File>,
    pub(crate) mapped: Option<Box<dyn MappedFile>>,
    /// Before this the file may have records of an earlier log.
    pub(crate) earlier_bytes: u64,
}

/// The first log of a process: it is not known yet what the log of a memtable takes.
pub(crate) fn map_first_log(context: &Context, file: &dyn File) -> Option<Box<dyn MappedFile>> {
    map_log(context, file, first_log_bytes(context), 0)
}

fn first_log_bytes(context: &Context) -> u64 {
    context.options.memtable_bytes.min(FIRST_LOG_BYTES_MAX)
}

/// Reserves and maps `log_bytes`, unless the disk has little room besides `working_bytes`. At
/// [`SyncLevel::Always`] nothing is mapped: a system call is a small part of what a write waits for
/// there.
fn map_log(
    context: &Context,
    file: &dyn File,
    log_bytes: u64,
    working_bytes: u64,
) -> Option<Box<dyn MappedFile>> {
    may_map(context, working_bytes).then(|| file.map(log_bytes)).flatten()
}

fn may_map(context: &Context, working_bytes: u64) -> bool {
    let Context { env, dir, options, .. } = context;
    let room_bytes = options.memtable_bytes.saturating_mul(MAPPED_ROOM_MEMTABLES);
    let wanted_bytes = working_bytes.saturating_add(room_bytes);
    options.sync != SyncLevel::Always
        && env.fs.available_bytes(dir).is_ok_and(|available| available >= wanted_bytes)
}

impl NextLog {
    pub(crate) fn new(
        context: &Arc<Context>,
        admission: &Arc<Admission>,
        last_recovered: FileNum,
    ) -> NextLog {
        let slots = Slots {
            log_bytes: first_log_bytes(context),
            written_bytes: BTreeMap::new(),
            prepared: None,
            spares: VecDeque::new(),
        };
        NextLog {
            context: Arc::clone(context),
            admission: Arc::clone(admission),
            last_recovered,
            slots: NamedMutex::new("prepared_wal", slots),
        }
    }

    /// Log `num`, with `used_bytes`, has ended. `filled_share`: of a memtable without records of
    /// other logs.
    pub(crate) fn note_ended(&self, num: FileNum, used_bytes: u64, filled_share: Option<f64>) {
        let mut slots = self.slots.lock();
        let written_bytes = slots.written_bytes.entry(num).or_default();
        *written_bytes = used_bytes.max(*written_bytes);
        if let Some(filled_share) = filled_share.filter(|&share| share >= TELLING_SHARE) {
            let whole_bytes = used_bytes as f64 / filled_share;
            let wanted_bytes = (whole_bytes * (1.0 + 1.0 / LOG_MARGIN_PARTS)) as u64;
            slots.log_bytes = wanted_bytes
                .next_multiple_of(LOG_BYTES_UNIT)
                .min(self.context.options.memtable_bytes);
        }
    }

    /// The number of the prepared log.
    pub(crate) fn prepared_num(&self) -> Option<FileNum> {
        self.slots.lock().prepared.as_ref().map(|log| log.num)
    }

    /// Prepares the next log. True when there was none.
    pub(crate) fn prepare(&self) -> Result<bool> {
        let mut slots = self.slots.lock();
        let is_missing = slots.prepared.is_none();
        if is_missing {
            slots.prepared = Some(self.make(&mut slots)?);
        }
        Ok(is_missing)
    }

    /// The next log, which the caller begins.
    pub(crate) fn take(&self) -> Result<PreparedLog> {
        let mut slots = self.slots.lock();
        match slots.prepared.take() {
            Some(log) => Ok(log),
            None => self.make(&mut slots),
        }
    }

    /// Takes a log back that could not be begun. One that was prepared meanwhile is left to the
    /// next open: it has a later number.
    pub(crate) fn put_back(&self, log: PreparedLog) {
        self.slots.lock().prepared = Some(log);
    }

    /// The manifest needs no logs below `oldest` any more: keeps the newest of them for the next
    /// logs, and removes the others.
    pub(crate) fn retire_below(&self, oldest: FileNum) -> Result<()> {
        let Context { env, dir, .. } = &*self.context;
        // While they are listed, the leader makes a log of no old one.
        let mut slots = self.slots.lock();
        slots.spares.clear();
        let written_bytes = slots.written_bytes.clone();
        drop(slots);
        let mut old: Vec<FileNum> = list_files(&*env.fs, dir)?
            .into_iter()
            .filter(|(kind, num, _)| *kind == FileKind::Wal && *num < oldest)
            .map(|(_, num, _)| num)
            .collect();
        old.sort_unstable();
        let newest = old.iter().rev().take(SPARES_MAX).map(|num| (*num, written_bytes.get(num)));
        let is_kept = |&(num, bytes): &(FileNum, Option<&u64>)| {
            bytes.is_some_and(|&written_bytes| self.is_reusable(num, written_bytes))
        };
        let kept_count = newest.take_while(is_kept).count();
        let kept = old.split_off(old.len() - kept_count);
        old.into_iter().for_each(|num| self.remove(num));
        let mut slots = self.slots.lock();
        // A close gives back what is here, and comes once.
        if self.context.is_closing() {
            kept.into_iter().for_each(|num| self.remove(num));
        } else {
            slots.written_bytes.retain(|num, _| *num >= oldest || kept.contains(num));
            slots.spares = kept.into();
        }
        Ok(())
    }

    /// Removes the old logs that were kept and not used.
    pub(crate) fn remove_spares(&self) {
        // Locked until they are gone: else the flush task could list them once more, and keep them.
        let mut slots = self.slots.lock();
        slots.spares.drain(..).for_each(|num| self.remove(num));
    }

    /// Gives back the space that is reserved ahead: the database is closed.
    pub(crate) fn give_back(&self) {
        self.remove_spares();
        if let Some(PreparedLog { file, mapped, earlier_bytes, .. }) =
            &mut self.slots.lock().prepared
            && (mapped.take().is_some() || *earlier_bytes > 0)
            && let Err(error) = file.set_len(0)
        {
            self.context.log.event(Level::Warn, "log_not_cut", &[("error", &error)]);
        }
    }

    fn make(&self, slots: &mut Slots) -> Result<PreparedLog> {
        match slots.spares.pop_front() {
            Some(old) => {
                let log = self.reuse(old, slots.log_bytes)?;
                let written_bytes = slots.written_bytes.remove(&old).unwrap_or(0);
                slots.written_bytes.insert(log.num, written_bytes.min(log.earlier_bytes));
                Ok(log)
            }
            None => self.create(slots.log_bytes),
        }
    }

    fn create(&self, log_bytes: u64) -> Result<PreparedLog> {
        let Context { env, dir, .. } = &*self.context;
        let num = self.context.new_file_num();
        let path = file_path(dir, FileKind::Wal, num);
        let file = env.fs.create(&path).map_err(|source| Error::io("create", &path, source))?;
        self.context.sync_dir()?;
        let mapped = self.map(&*file, log_bytes);
        Ok(PreparedLog { num, path, file, mapped, earlier_bytes: 0 })
    }

    fn map(&self, file: &dyn File, log_bytes: u64) -> Option<Box<dyn MappedFile>> {
        let is_mapped = !self.context.is_closing() && !self.admission.space.is_full();
        let working_bytes = self.admission.working_bytes();
        is_mapped.then(|| map_log(&self.context, file, log_bytes, working_bytes)).flatten()
    }

    /// Gives an old log the name of a new one. After an error the old one may be left, and is
    /// removed with later ones or by the next open.
    fn reuse(&self, old: FileNum, log_bytes: u64) -> Result<PreparedLog> {
        let Context { env, dir, .. } = &*self.context;
        let old_path = file_path(dir, FileKind::Wal, old);
        let num = self.context.new_file_num();
        let path = file_path(dir, FileKind::Wal, num);
        let file = env.fs.open_writable(&old_path).map_err(|e| Error::io("open", &old_path, e))?;
        let cut = |len_bytes| file.set_len(len_bytes).map_err(|e| Error::io("cut", &old_path, e));
        let mut earlier_bytes =
            file.len_bytes().map_err(|e| Error::io("read the length of", &old_path, e))?;
        if earlier_bytes > log_bytes + log_bytes / CUT_PARTS {
            cut(log_bytes)?;
            earlier_bytes = log_bytes;
        }
        env.fs.rename(&old_path, &path).map_err(|e| Error::io("rename", &old_path, e))?;
        self.context.sync_dir()?;
        let mapped = self.map(&*file, log_bytes.max(earlier_bytes));
        if mapped.is_none() {
            file.set_len(0).map_err(|e| Error::io("cut", &path, e))?;
            earlier_bytes = 0;
        }
        Ok(PreparedLog { num, path, file, mapped, earlier_bytes })
    }

    /// Whether a log whose file is written up to `written_bytes` may be kept and is worth it: there
    /// is room for it, and the system has its pages. To read them again would take longer than
    /// fresh ones. Where nothing was written we do not look: the system would make pages of zeros,
    /// as many as it reads ahead.
    fn is_reusable(&self, num: FileNum, written_bytes: u64) -> bool {
        let Context { env, dir, .. } = &*self.context;
        if num <= self.last_recovered
            || self.admission.space.is_full()
            || !may_map(&self.context, self.admission.working_bytes())
        {
            return false;
        }
        let has_pages = || -> io::Result<bool> {
            let file = env.fs.open(&file_path(dir, FileKind::Wal, num))?;
            let mut byte = [0];
            for index in 0..SAMPLED_PAGES {
                let offset_bytes = written_bytes * index / SAMPLED_PAGES;
                if !file.try_read_exact_at(&mut byte, offset_bytes)? {
                    return Ok(false);
                }
            }
            Ok(true)
        };
        has_pages().unwrap_or(false)
    }

    fn remove(&self, num: FileNum) {
        self.context.remove_file(&file_path(&self.context.dir, FileKind::Wal, num));
    }
}
