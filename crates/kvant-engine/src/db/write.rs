//! The leader's work: one group of batches to the log, into the memtable, to its completions.

use super::core::Core;
use super::view::{is_full, new_memtable};
use crate::batch::WriteBatch;
use crate::commit::queue::{Completion, Pending};
use crate::commit::sync::LogFile;
use crate::format::{FileKind, FileNum, InternalKeyRef, SeqNum, file_path};
use crate::memtable::MemtableWriter;
use crate::wal::{PreviousWal, WalWriter};
use kvant_base::log::Level;
use kvant_base::tag::{self, Stage};
use kvant_base::{Error, ErrorKind, Result};
use kvant_env::File;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// A group larger than this is split: it bounds the log writer's buffer.
const GROUP_BYTES_MAX: usize = 8 << 20;
/// Bytes of log after which is looked whether space runs out.
const SPACE_CHECK_BYTES: u64 = 1 << 20;
/// More than a log's header, or a record's, takes.
const LOG_HEADER_ROOM_BYTES: u64 = 64;
/// What the active memtable may take on a full disk, in memtables: with the sealed ones it stays
/// below half of the memory.
const FULL_DISK_MEMTABLES_MAX: u64 = 4;

/// A batch that was not taken: why, and what was given.
pub struct Refused {
    /// The cause.
    pub error: Error,
    /// The batch, for another attempt.
    pub batch: WriteBatch,
    /// Its completion, which was not called.
    pub done: Completion,
}

/// What the leader writes to.
pub(crate) struct Writer {
    /// None after an open that found no space for a log, until the first write.
    wal: Option<WalWriter>,
    /// The end of the history before `wal`, where there is none yet.
    previous: Option<PreviousWal>,
    pub(crate) active: MemtableWriter,
    pub(crate) next_seq: u64,
    /// Kept between groups to save allocations.
    group: Vec<Pending>,
}

/// A log file made ahead of time by the flush task, its name already durable, so that sealing a
/// memtable costs one small write.
pub(crate) struct PreparedWal {
    pub(crate) num: FileNum,
    pub(crate) path: PathBuf,
    pub(crate) file: Arc<dyn File>,
}

impl Writer {
    pub(crate) fn new(
        wal: Option<WalWriter>,
        previous: Option<PreviousWal>,
        active: MemtableWriter,
        next_seq: u64,
    ) -> Writer {
        Writer { wal, previous, active, next_seq, group: Vec::new() }
    }

    /// The log, while a group is being written.
    fn wal(&mut self) -> &mut WalWriter {
        self.wal.as_mut().expect("a log is begun before a group is written")
    }
}

impl Core {
    /// Commits `batch` without waiting for an fsync or a stall. On error the batch comes back and
    /// nothing was written.
    pub(crate) fn submit(
        &self,
        batch: WriteBatch,
        done: Completion,
    ) -> std::result::Result<(), Refused> {
        if let Err(error) = self.admit(&batch) {
            return Err(Refused { error, batch, done });
        }
        if batch.is_empty() {
            done(Ok(()));
        } else if self.queue.push(Pending { batch, done }) {
            self.lead();
        }
        Ok(())
    }

    fn admit(&self, batch: &WriteBatch) -> Result<()> {
        self.check_usable()?;
        self.check_writable()?;
        batch.check(self.options.value_bytes_max)?;
        self.admit_to_disk(batch.put_count() > 0)?;
        if self.log_sync.is_overdue() {
            self.update_gate();
        }
        self.gate.admit(batch.bytes()).map_err(|reason| {
            Error::new(
                ErrorKind::Stalled,
                format!("writes are held back ({}), try again later", reason.name()),
            )
        })
    }

    fn lead(&self) {
        let mut writer = self.writer.lock();
        let mut group = std::mem::take(&mut writer.group);
        while self.queue.take(&mut group) {
            while !group.is_empty() {
                self.commit_front(&mut writer, &mut group);
            }
        }
        writer.group = group;
    }

    /// Commits as many batches from the front of `group` as one log record takes.
    fn commit_front(&self, writer: &mut Writer, group: &mut Vec<Pending>) {
        let mut bytes = 0;
        let taken = group
            .iter()
            .take_while(|pending| {
                let first = bytes == 0;
                bytes += pending.batch.bytes();
                first || bytes <= GROUP_BYTES_MAX
            })
            .count();
        match self.write_group(writer, &group[..taken]) {
            Ok(last_seq) => {
                let done = group.drain(..taken).map(|pending| pending.done).collect();
                self.finish_group(writer, last_seq, done);
            }
            // A delete is not to fail because it shares its group with a put that needs space.
            Err(error) if error.kind() == ErrorKind::NoSpace && taken > 1 => {
                for pending in group.drain(..taken) {
                    match self.write_group(writer, std::slice::from_ref(&pending)) {
                        Ok(last_seq) => self.finish_group(writer, last_seq, vec![pending.done]),
                        Err(error) => (pending.done)(Err(error)),
                    }
                }
            }
            Err(error) => {
                self.write_failure.note(&error, self.env.clock.monotonic_ns());
                group.drain(..taken).for_each(|pending| (pending.done)(Err(error.clone())));
            }
        }
    }

    /// Log first, then memtable. On error nothing of the group is in either, or its outcome is
    /// unknown and writes are fenced.
    fn write_group(&self, writer: &mut Writer, group: &[Pending]) -> Result<SeqNum> {
        self.check_usable()?;
        self.check_writable()?;
        if writer.wal.is_none() {
            self.with_reserve(group, LOG_HEADER_ROOM_BYTES, || self.begin_log(writer))?;
        }
        if is_full(writer.active.memtable(), &self.options) {
            self.seal_if_room(writer, group)?;
        }
        let count: usize = group.iter().map(|pending| pending.batch.len()).sum();
        let first_seq = SeqNum(writer.next_seq);
        let last_seq = SeqNum(writer.next_seq + count as u64 - 1);
        assert!(last_seq <= SeqNum::MAX, "sequence numbers are used up");
        let tag = tag::stage(Stage::Wal);
        self.append_to_log(writer, group, first_seq, count)?;
        tag.stage(Stage::Memtable);
        let ops = group.iter().flat_map(|pending| pending.batch.ops());
        writer.active.insert(ops.zip(first_seq.0..).map(|(op, seq)| {
            let op = op.expect("a batch that was built here decodes");
            (InternalKeyRef::new(op.key, SeqNum(seq), op.kind), op.stored)
        }));
        writer.next_seq = last_seq.0 + 1;
        let user_bytes = group.iter().map(|pending| pending.batch.user_bytes()).sum();
        self.counters.user_bytes.fetch_add(user_bytes, Ordering::Relaxed);
        self.counters.operations.fetch_add(count as u64, Ordering::Relaxed);
        self.counters.groups.fetch_add(1, Ordering::Relaxed);
        Ok(last_seq)
    }

    fn append_to_log(
        &self,
        writer: &mut Writer,
        group: &[Pending],
        first_seq: SeqNum,
        count: usize,
    ) -> Result<()> {
        let synced_bytes = self.log_sync.current_synced_bytes();
        let single;
        let several;
        let payload: &[&[u8]] = if let [pending] = group {
            single = [pending.batch.encoded()];
            &single
        } else {
            several = group.iter().map(|pending| pending.batch.encoded()).collect::<Vec<_>>();
            &several
        };
        let wal = writer.wal();
        let before = wal.end_bytes();
        let payload_bytes: usize = payload.iter().map(|part| part.len()).sum();
        let record_bytes = payload_bytes as u64 + LOG_HEADER_ROOM_BYTES;
        self.space.spare_lent_room(before, before + record_bytes)?;
        let end_bytes = self.with_reserve(group, record_bytes, || {
            wal.append(first_seq, count as u32, payload, synced_bytes).map_err(|error| {
                match wal.rollback() {
                    Ok(()) => error,
                    // All of the record may be there, and be found by a restart.
                    Err(cause) => self.fence(cause).with_kind(ErrorKind::OutcomeUnknown),
                }
            })
        })?;
        self.counters.wal_bytes.fetch_add(end_bytes - before, Ordering::Relaxed);
        if before / SPACE_CHECK_BYTES != end_bytes / SPACE_CHECK_BYTES {
            self.check_space();
        }
        Ok(())
    }

    /// Does what may find no space. Deletes free space in the end, so they may use what was kept
    /// for them: `bytes` at a time, until it is enough.
    fn with_reserve<T>(
        &self,
        group: &[Pending],
        bytes: u64,
        mut attempt: impl FnMut() -> Result<T>,
    ) -> Result<T> {
        loop {
            match attempt() {
                Err(error) if error.kind() == ErrorKind::NoSpace => {
                    self.note_disk_full();
                    if !deletes_only(group) || !self.space.take_for_deletes(bytes)? {
                        return Err(error);
                    }
                }
                outcome => return outcome,
            }
        }
    }

    /// Writes down what was just made durable, so that the next recovery knows it. Nothing is lost
    /// when that fails.
    pub(crate) fn write_closing_record(&self, writer: &mut Writer) {
        let (next_seq, synced_bytes) =
            (SeqNum(writer.next_seq), self.log_sync.current_synced_bytes());
        let Some(wal) = &mut writer.wal else { return };
        let written = wal.append(next_seq, 0, &[], synced_bytes);
        if let Err(error) = written.or_else(|error| wal.rollback().and(Err(error))) {
            self.log.event(Level::Warn, "log_not_closed", &[("error", &error)]);
        }
    }

    fn finish_group(&self, writer: &mut Writer, last_seq: SeqNum, done: Vec<Completion>) {
        self.write_failure.note_success();
        let (done, wake_sync) = self.log_sync.written(writer.wal().end_bytes(), last_seq, done);
        if let Some(done) = done {
            self.visible_seq.store(last_seq.0, Ordering::Release);
            done.into_iter().for_each(|done| done(Ok(())));
        }
        if wake_sync {
            self.wake(|tasks| &tasks.sync);
        }
    }

    /// Seals the active memtable unless too many sealed ones wait already: then it grows, and the
    /// gate holds new writes back. On a full disk it lets deletes pass, and the active memtable
    /// takes them up to a bound.
    fn seal_if_room(&self, writer: &mut Writer, group: &[Pending]) -> Result<()> {
        if self.views.load().sealed.len() < self.options.memtables_sealed_max {
            self.with_reserve(group, LOG_HEADER_ROOM_BYTES, || self.seal(writer))?;
            self.check_space();
        } else if self.space.is_full()
            && writer.active.memtable().memory_bytes()
                >= self.options.memtable_bytes * FULL_DISK_MEMTABLES_MAX
        {
            let message = "no space left on the device for flushes, and no more memory for what they would take";
            return Err(Error::new(ErrorKind::NoSpace, message).with_file(&self.dir));
        }
        self.update_gate();
        Ok(())
    }

    /// Seals the active memtable and goes on with a new one and a new log file.
    pub(crate) fn seal(&self, writer: &mut Writer) -> Result<()> {
        let wal_num = self.begin_log(writer)?;
        let active = new_memtable(&self.memory, &self.options);
        self.views.seal(Arc::clone(active.memtable()), wal_num);
        writer.active = active;
        self.wake(|tasks| &tasks.flush);
        Ok(())
    }

    /// Goes on in a new log file.
    fn begin_log(&self, writer: &mut Writer) -> Result<FileNum> {
        let mut prepared = self.prepared_wal.lock();
        let taken = prepared.take().map_or_else(|| self.prepare_wal(), Ok);
        drop(prepared);
        let prepared = taken?;
        let previous = writer.wal.as_ref().map(WalWriter::as_previous).or(writer.previous);
        let created =
            WalWriter::start(Arc::clone(&prepared.file), &prepared.path, prepared.num, previous);
        let wal = match created {
            Ok(wal) => wal,
            Err(error) => {
                // The file may hold half a header, which a later attempt overwrites. The manifest
                // may name the file, so it is not removed.
                *self.prepared_wal.lock() = Some(prepared);
                return Err(error);
            }
        };
        self.counters.wal_bytes.fetch_add(wal.end_bytes(), Ordering::Relaxed);
        let wake_sync = self.log_sync.add_file(LogFile {
            num: prepared.num,
            path: prepared.path,
            file: prepared.file,
            written_bytes: wal.end_bytes(),
            synced_bytes: 0,
        });
        if wake_sync {
            self.wake(|tasks| &tasks.sync);
        }
        writer.wal = Some(wal);
        Ok(prepared.num)
    }

    /// Makes a log file whose name is durable.
    pub(crate) fn prepare_wal(&self) -> Result<PreparedWal> {
        let num = self.new_file_num();
        let path = file_path(&self.dir, FileKind::Wal, num);
        let file =
            self.env.fs.create(&path).map_err(|source| Error::io("create", &path, source))?;
        self.sync_dir()?;
        Ok(PreparedWal { num, path, file })
    }

    /// Tells everyone whose group has become durable, or that its outcome is unknown.
    pub(crate) fn complete(&self, done: Vec<Completion>, result: &Result<()>) {
        done.into_iter().for_each(|done| done(result.clone()));
    }

    /// Fences writes for good and returns the first cause.
    pub(crate) fn fence(&self, cause: Error) -> Error {
        let first = self.fence.set(cause);
        self.log.event(Level::Error, "writes_fenced", &[("cause", &first)]);
        self.update_gate();
        self.progressed.notify_all();
        self.log_sync.synced.notify_all();
        self.wake(|tasks| &tasks.sync);
        self.wake(|tasks| &tasks.compact);
        first
    }
}

fn deletes_only(group: &[Pending]) -> bool {
    group.iter().all(|pending| pending.batch.put_count() == 0)
}
