//! The log and the active memtable, which the commit pipeline writes.

use super::admission::Admission;
use super::next_log::{NextLog, PreparedLog};
use super::pipeline::{CommitEnv, Leader, Pipeline};
use super::queue::{Completion, Group};
use super::sync::{LogFile, LogSync};
use crate::batch::WriteBatch;
use crate::context::last_failure::LastFailure;
use crate::context::{Context, TaskName};
use crate::format::{FileNum, SeqNum};
use crate::memtable::MemtableWriter;
use crate::options::Options;
use crate::tree::Tree;
use crate::tree::view::{full_share, is_full, new_memtable};
use crate::wal::{PreviousWal, WalWriter};
use kvant_base::log::Level;
use kvant_base::{Error, ErrorKind, Result};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes of log between two checks for free space.
const SPACE_CHECK_BYTES: u64 = 1 << 20;
/// More than the header of a log or of a record takes.
const HEADER_BYTES_MAX: u64 = 64;
/// Largest active memtable on a full disk, in memtables: with the sealed ones it stays below half
/// of the memory.
const FULL_DISK_MEMTABLES_MAX: u64 = 4;

/// The log of a database, behind the commit pipeline.
pub(crate) type Log = Pipeline<LogEnv>;

/// A batch that was refused.
pub struct Refused {
    /// Why.
    pub error: Error,
    /// The batch, for another attempt.
    pub batch: WriteBatch,
    /// Its completion, which was not called.
    pub done: Completion,
}

/// The environment of the pipeline in a database.
pub(crate) struct LogEnv {
    context: Arc<Context>,
    tree: Arc<Tree>,
    admission: Arc<Admission>,
    sync: Arc<LogSync>,
    pub(crate) next_log: NextLog,
    pub(crate) failure: LastFailure,
    pub(crate) counters: LogCounters,
}

/// Counters for the statistics, since the database was opened.
#[derive(Default)]
pub(crate) struct LogCounters {
    pub(crate) operations: AtomicU64,
    pub(crate) groups: AtomicU64,
    pub(crate) user_bytes: AtomicU64,
    pub(crate) wal_bytes: AtomicU64,
}

/// The log and the memtable that are being written.
pub(crate) struct LogWriter {
    /// `None` after an open that found no space for a log, until the first write.
    pub(crate) wal: Option<WalWriter>,
    /// The end of the history before `wal`, where there is none yet.
    pub(crate) previous: Option<PreviousWal>,
    pub(crate) active: MemtableWriter,
    /// How full `active` was when it was empty; `None` if it has records of logs before `wal`.
    pub(crate) empty_share: Option<f64>,
}

impl LogWriter {
    /// How much of the room of `active` the records of `wal` have taken, if it has no others.
    fn filled_share(&self, options: &Options) -> Option<f64> {
        let full_share = full_share(self.active.memtable(), options);
        self.empty_share.map(|empty_share| (full_share - empty_share) / (1.0 - empty_share))
    }
}

impl Log {
    /// Commits `batch` without waiting for an fsync or a stall. On error the batch comes back and
    /// nothing was written.
    pub(crate) fn commit(
        &self,
        batch: WriteBatch,
        done: Completion,
    ) -> std::result::Result<(), Refused> {
        if let Err(error) = self.env.admission.admit(&batch) {
            return Err(Refused { error, batch, done });
        }
        self.submit(batch, done);
        Ok(())
    }
}

impl LogEnv {
    /// `last_recovered`: the last log of earlier processes.
    pub(crate) fn new(
        context: &Arc<Context>,
        tree: &Arc<Tree>,
        admission: &Arc<Admission>,
        sync: &Arc<LogSync>,
        last_recovered: FileNum,
    ) -> LogEnv {
        LogEnv {
            context: Arc::clone(context),
            tree: Arc::clone(tree),
            admission: Arc::clone(admission),
            sync: Arc::clone(sync),
            next_log: NextLog::new(context, admission, last_recovered),
            failure: LastFailure::new(),
            counters: LogCounters::default(),
        }
    }

    /// The logs in use and the prepared one, each with its synced bytes.
    pub(crate) fn known_logs(&self) -> Vec<(FileNum, u64)> {
        // The prepared log first: if it comes into use meanwhile, the second row for it has at
        // least as many synced bytes.
        let prepared = self.next_log.prepared_num().map(|num| (num, 0));
        prepared.into_iter().chain(self.sync.known_logs()).collect()
    }

    /// Seals the active memtable, and continues in a new one and a new log file.
    pub(crate) fn seal(&self, writer: &mut LogWriter) -> Result<()> {
        // A close or a fence may have come while the caller waited for the leader.
        self.context.check_not_closing()?;
        self.context.check_writable()?;
        let wal_num = self.begin_log(writer)?;
        let Context { chunks, options, .. } = &*self.context;
        writer.active = new_memtable(chunks, options, Some(writer.active.memtable()));
        writer.empty_share = Some(full_share(writer.active.memtable(), options));
        self.tree.views.seal(Arc::clone(writer.active.memtable()), wal_num);
        self.context.wake(TaskName::Flush);
        Ok(())
    }

    fn begin_log(&self, writer: &mut LogWriter) -> Result<FileNum> {
        let ended = writer.wal.as_ref().map(WalWriter::as_previous);
        if let Some(PreviousWal { file_num, final_bytes }) = ended {
            let filled_share = writer.filled_share(&self.context.options);
            self.next_log.note_ended(file_num, final_bytes, filled_share);
        }
        let log = self.next_log.take()?;
        let previous = ended.or(writer.previous);
        let file = Arc::clone(&log.file);
        let started = WalWriter::start(file, &log.path, log.num, previous, log.earlier_bytes);
        let mut wal = match started {
            Ok(wal) => wal,
            Err(error) => {
                // The file may hold half a header, which a later attempt overwrites. The manifest
                // may name the file, so it is not removed.
                self.next_log.put_back(log);
                return Err(error);
            }
        };
        let written_bytes = wal.end_bytes();
        self.counters.wal_bytes.fetch_add(written_bytes, Ordering::Relaxed);
        let PreparedLog { num, path, file, mapped, .. } = log;
        wal.map(mapped);
        writer.wal = Some(wal);
        if self.sync.add_file(LogFile {
            num,
            path,
            file,
            written_bytes,
            synced_bytes: 0,
            doubtful_bytes: 0,
        }) {
            self.wake_sync();
        }
        Ok(num)
    }

    /// Seals a full memtable, unless too many sealed ones wait: then it grows, and the gate holds
    /// new writes back. On a full disk the gate lets deletes pass, and the active memtable takes
    /// them up to a bound.
    fn seal_if_room(&self, writer: &mut LogWriter, group: Group<'_>) -> Result<()> {
        let Context { options, dir, .. } = &*self.context;
        let active_bytes = writer.active.memtable().memory_bytes();
        if self.tree.views.load().sealed.len() < options.memtables_sealed_max {
            self.with_reserve(group, HEADER_BYTES_MAX, || self.seal(writer))?;
            self.admission.check_space();
        } else if self.admission.space.is_full()
            && active_bytes >= options.memtable_bytes * FULL_DISK_MEMTABLES_MAX
        {
            let message = "no space left on the device for flushes, and no more memory for what they would take";
            return Err(Error::new(ErrorKind::NoSpace, message).with_file(dir));
        }
        self.admission.update_gate();
        Ok(())
    }

    /// Makes an attempt that may find no space. A group of deletes, which free space in the end,
    /// takes what it needs from the reserve and tries again.
    fn with_reserve<T>(
        &self,
        group: Group<'_>,
        bytes: u64,
        mut attempt: impl FnMut() -> Result<T>,
    ) -> Result<T> {
        loop {
            match attempt() {
                Err(error) if error.kind() == ErrorKind::NoSpace => {
                    self.admission.note_disk_full();
                    if !group.deletes_only() || !self.admission.space.take_for_deletes(bytes)? {
                        return Err(error);
                    }
                }
                outcome => return outcome,
            }
        }
    }

    fn try_prepare(&self, writer: &mut LogWriter, group: Group<'_>) -> Result<()> {
        self.context.check_not_closing()?;
        if writer.wal.is_none() {
            self.with_reserve(group, HEADER_BYTES_MAX, || self.begin_log(writer))?;
        }
        if is_full(writer.active.memtable(), &self.context.options) {
            self.seal_if_room(writer, group)?;
        }
        Ok(())
    }

    fn try_append(
        &self,
        writer: &mut LogWriter,
        group: Group<'_>,
        first_seq: SeqNum,
    ) -> Result<u64> {
        let synced_bytes = self.sync.current_synced_bytes();
        let (single, several): ([&[u8]; 1], Vec<&[u8]>);
        let mut parts = group.batches().map(WriteBatch::encoded);
        let payload: &[&[u8]] = if parts.len() == 1 {
            single = [parts.next().expect("a group has a batch")];
            &single
        } else {
            several = parts.collect();
            &several
        };
        let op_count = u32::try_from(group.op_count).expect("an operation takes a byte or more");
        let wal = writer.wal.as_mut().expect("a log is begun before a group is written");
        let before = wal.end_bytes();
        let record_bytes = group.bytes as u64 + HEADER_BYTES_MAX;
        self.admission.space.spare_lent_room(before, before + record_bytes)?;
        let end_bytes = self.with_reserve(group, record_bytes, || {
            wal.append(first_seq, op_count, payload, synced_bytes).map_err(|error| {
                match wal.rollback() {
                    Ok(()) => error,
                    // A restart may find the whole record.
                    Err(cause) => cause.with_kind(ErrorKind::OutcomeUnknown),
                }
            })
        })?;
        self.counters.wal_bytes.fetch_add(end_bytes - before, Ordering::Relaxed);
        if before / SPACE_CHECK_BYTES != end_bytes / SPACE_CHECK_BYTES {
            self.admission.check_space();
        }
        Ok(end_bytes)
    }

    fn note_failure<T>(&self, outcome: Result<T>) -> Result<T> {
        outcome.inspect_err(|error| {
            self.failure.note(error, self.context.env.clock.monotonic_ns());
        })
    }

    /// Appends a record of what is durable, for the next recovery, and gives unused space back. No
    /// write relies on either.
    pub(crate) fn write_closing_record(&self, leader: &mut Leader<LogWriter>) {
        let (next_seq, synced_bytes) = (leader.next_seq, self.sync.current_synced_bytes());
        self.next_log.give_back();
        let Some(wal) = &mut leader.writer.wal else { return };
        let written = wal.append(next_seq, 0, &[], synced_bytes);
        let closed = match written {
            Ok(_end_bytes) => wal.give_back(),
            Err(error) => wal.rollback().and(Err(error)),
        };
        if let Err(error) = closed {
            self.context.log.event(Level::Warn, "log_not_closed", &[("error", &error)]);
        }
    }
}

impl CommitEnv for LogEnv {
    type Writer = LogWriter;

    fn check_writable(&self) -> Result<()> {
        self.context.check_writable()
    }

    fn fence(&self, cause: Error) -> Error {
        self.context.fence(cause)
    }

    fn prepare(&self, writer: &mut LogWriter, group: Group<'_>) -> Result<()> {
        self.note_failure(self.try_prepare(writer, group))
    }

    fn append(&self, writer: &mut LogWriter, group: Group<'_>, first_seq: SeqNum) -> Result<u64> {
        let end_bytes = self.note_failure(self.try_append(writer, group, first_seq))?;
        self.failure.note_success();
        Ok(end_bytes)
    }

    fn insert(&self, writer: &mut LogWriter, group: Group<'_>, first_seq: SeqNum) {
        writer.active.insert(group.entries(first_seq));
        let user_bytes = group.batches().map(WriteBatch::user_bytes).sum();
        self.counters.user_bytes.fetch_add(user_bytes, Ordering::Relaxed);
        self.counters.operations.fetch_add(group.op_count as u64, Ordering::Relaxed);
        self.counters.groups.fetch_add(1, Ordering::Relaxed);
    }

    fn publish(&self, last_seq: SeqNum) {
        self.tree.visible_seq.store(last_seq.0, Ordering::Release);
    }

    fn wake_sync(&self) {
        self.context.wake(TaskName::Sync);
    }
}
