//! Appends records to one log file.
//!
//! Invariants:
//! 1. every record is written by one call: a group is in the file completely, or its tail is
//!    missing;
//! 2. after a failed append nothing is written until [`WalWriter::rollback`] has truncated the file
//!    to the end of its last complete record;
//! 3. behind the records a file is zero, or ends, or has a zero and then the records of an earlier
//!    log, which are none of this one.

use super::layout::{FILE_HEADER_BYTES, FileHeader, PreviousWal, RecordHeader};
use super::short::{Place, ShortHeader, Stated};
use crate::format::{FileNum, SeqNum};
use kvant_base::checksum::crc32c_masked;
use kvant_base::{Error, ErrorKind, Result, limits};
use kvant_env::{File, MappedFile};
use std::io::{self, IoSlice};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Records of at most this length are copied into one buffer, and into the mapped file if there is
/// room: longer ones cost less by a system call.
const COPIED_BYTES_MAX: usize = 8 << 10;

/// Appends to one log file.
pub(crate) struct WalWriter {
    file: Arc<dyn File>,
    path: PathBuf,
    file_num: FileNum,
    /// End of the last complete record.
    end_bytes: u64,
    /// Before this the file may have records of an earlier log.
    earlier_bytes: u64,
    /// What the last record leaves a short one to follow from.
    stated: Option<Stated>,
    /// Whether the remains of a failed append have not been truncated yet.
    torn: bool,
    /// The memory of copied records.
    copy: Vec<u8>,
    /// The start of the file.
    mapped: Option<Box<dyn MappedFile>>,
}

impl WalWriter {
    /// Writes the header to `file`, whose first `earlier_bytes` may have records of an earlier log;
    /// behind them it is zero, or ends. Syncs neither the file nor its directory.
    pub(crate) fn start(
        file: Arc<dyn File>,
        path: &Path,
        file_num: FileNum,
        previous: Option<PreviousWal>,
        earlier_bytes: u64,
    ) -> Result<WalWriter> {
        let end_bytes = FILE_HEADER_BYTES as u64;
        let mut header = FileHeader { file_num, previous }.encode();
        header.extend_from_slice(end_mark(end_bytes, earlier_bytes));
        file.write_all_at(&header, 0).map_err(|e| Error::io("write the header of", path, e))?;
        Ok(WalWriter {
            file,
            path: path.to_path_buf(),
            file_num,
            end_bytes,
            earlier_bytes,
            stated: None,
            torn: false,
            copy: Vec::new(),
            mapped: None,
        })
    }

    /// Writes short records to `mapped`, a mapping of the file, as far as that goes.
    pub(crate) fn map(&mut self, mapped: Option<Box<dyn MappedFile>>) {
        self.mapped = mapped;
    }

    /// Appends one commit group, whose payload is the concatenation of `payload_parts`, and returns
    /// the new end of the file. `synced_bytes` is how far the file is known to be synced. A closing
    /// record has no parts and an `op_count` of 0.
    ///
    /// # Errors
    /// `Invalid` when the payload is over its limit: nothing was written. `NoSpace` or `Io`: call
    /// [`WalWriter::rollback`] before anything else. `Fenced` until that has succeeded.
    pub(crate) fn append(
        &mut self,
        first_seq: SeqNum,
        op_count: u32,
        payload_parts: &[&[u8]],
        synced_bytes: u64,
    ) -> Result<u64> {
        if self.torn {
            let message = "the log still has a failed write at its end";
            return Err(Error::new(ErrorKind::Fenced, message).with_file(&self.path));
        }
        let payload_bytes: usize = payload_parts.iter().map(|part| part.len()).sum();
        let payload_bytes = u32::try_from(payload_bytes)
            .ok()
            .filter(|&bytes| u64::from(bytes) <= limits::WAL_RECORD_BYTES_MAX)
            .ok_or_else(|| {
                Error::invalid(format!("a commit group of {payload_bytes} bytes is over the limit"))
            })?;
        let offset_bytes = self.end_bytes;
        let header = RecordHeader {
            payload_checksum: crc32c_masked(payload_parts),
            payload_bytes,
            first_seq,
            op_count,
            synced_bytes,
        };
        assert!(header.is_within_limits(offset_bytes), "readers reject {header:?}");

        let is_stated = self.stated == Some(Stated::new(offset_bytes, synced_bytes, first_seq));
        let place = Place { file_num: self.file_num, offset_bytes, first_seq };
        let written = match ShortHeader::of(&header, place).filter(|_| is_stated) {
            Some(short) => self.write(&short.encode(), payload_parts),
            None => self.write(&header.encode(self.file_num, offset_bytes), payload_parts),
        };
        let record_bytes = written.map_err(|e| {
            self.torn = true;
            Error::io("append to", &self.path, e)
        })?;
        self.stated = Some(Stated::new(offset_bytes, synced_bytes, header.next_seq()));
        self.end_bytes += record_bytes;
        Ok(self.end_bytes)
    }

    /// Writes a record behind the last one. Returns its length in bytes.
    fn write(&mut self, header: &[u8], payload_parts: &[&[u8]]) -> io::Result<u64> {
        let bytes = header.len() + payload_parts.iter().map(|part| part.len()).sum::<usize>();
        let end_mark = end_mark(self.end_bytes + bytes as u64, self.earlier_bytes);
        if bytes <= COPIED_BYTES_MAX {
            self.copy.clear();
            self.copy.extend_from_slice(header);
            payload_parts.iter().for_each(|part| self.copy.extend_from_slice(part));
            self.copy.extend_from_slice(end_mark);
            match &mut self.mapped {
                Some(mapped) if self.end_bytes + self.copy.len() as u64 <= mapped.len_bytes() => {
                    mapped.write(&self.copy, self.end_bytes)?;
                }
                _ => self.file.write_all_at(&self.copy, self.end_bytes)?,
            }
        } else {
            let parts = std::iter::once(&header).chain(payload_parts).chain([&end_mark]);
            let mut parts: Vec<_> = parts.map(|part| IoSlice::new(part)).collect();
            self.file.write_parts_at(&mut parts, self.end_bytes)?;
        }
        Ok(bytes as u64)
    }

    /// Truncates what a failed append left. Does nothing after a successful one.
    ///
    /// # Errors
    /// `Io` or `NoSpace` when the file could not be truncated: appends are rejected until this
    /// succeeds.
    pub(crate) fn rollback(&mut self) -> Result<()> {
        if self.torn {
            self.cut().map_err(|e| Error::io("truncate a failed write", &self.path, e))?;
            self.torn = false;
        }
        Ok(())
    }

    /// Gives space back that the records did not need. Records may follow.
    pub(crate) fn give_back(&mut self) -> Result<()> {
        match self.mapped {
            Some(_) => self.cut().map_err(|e| Error::io("truncate", &self.path, e)),
            None => Ok(()),
        }
    }

    fn cut(&mut self) -> io::Result<()> {
        self.mapped = None;
        self.file.set_len(self.end_bytes)?;
        self.earlier_bytes = 0;
        Ok(())
    }

    /// End of the last complete record.
    pub(crate) fn end_bytes(&self) -> u64 {
        self.end_bytes
    }

    /// This log as the header of the next one names it.
    pub(crate) fn as_previous(&self) -> PreviousWal {
        PreviousWal { file_num: self.file_num, final_bytes: self.end_bytes }
    }
}

/// What is written behind a record, or the header, that ends at `end_bytes`: no record starts with
/// a zero.
fn end_mark(end_bytes: u64, earlier_bytes: u64) -> &'static [u8] {
    if end_bytes < earlier_bytes { &[0] } else { &[] }
}
