//! Reads one log file and decides where it ends: the recovery rule of `docs/formats/wal.md`.

use super::layout::{
    FILE_HEADER_BYTES, FileHeader, FileHeaderFault, PreviousWal, RECORD_HEADER_BYTES,
};
use super::scan::{Window, stated};
use crate::batch::{self, Op};
use crate::format::{FileNum, SeqNum};
use kvant_base::checksum::crc32c_masked;
use kvant_base::{Error, ErrorKind, Result};
use kvant_env::File;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

/// One commit group, as it was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WalRecord<'a> {
    pub(crate) path: &'a Path,
    /// Where the record starts in its file.
    pub(crate) offset_bytes: u64,
    pub(crate) first_seq: SeqNum,
    pub(crate) op_count: u32,
    pub(crate) payload: &'a [u8],
}

impl WalRecord<'_> {
    /// Calls `visit` with every operation and its sequence number.
    ///
    /// # Errors
    /// `Corruption` when the payload does not decode into exactly `op_count` operations; what
    /// `visit` returns.
    pub(crate) fn replay(&self, visit: impl FnMut(SeqNum, Op<'_>) -> Result<()>) -> Result<()> {
        let payload_offset_bytes = self.offset_bytes + RECORD_HEADER_BYTES as u64;
        batch::replay(
            self.payload,
            self.first_seq,
            self.op_count,
            self.path,
            payload_offset_bytes,
            visit,
        )
    }

    /// The sequence number that the next record starts with.
    pub(crate) fn next_seq(&self) -> SeqNum {
        SeqNum(self.first_seq.0 + u64::from(self.op_count))
    }

    /// Bytes of the record in its file.
    pub(crate) fn bytes(&self) -> u64 {
        (RECORD_HEADER_BYTES + self.payload.len()) as u64
    }
}

/// How a log ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WalEnd {
    /// Where the last good record ends; 0 when not even the file header is good.
    pub(crate) good_bytes: u64,
    /// What follows it and is given up.
    pub(crate) discarded_bytes: u64,
    pub(crate) reason: WalEndReason,
}

/// Why a log ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WalEndReason {
    /// The file ends after a good record, or after its header.
    Clean,
    /// What follows is no good record, and was not known to be synced.
    Torn(&'static str),
}

impl fmt::Display for WalEndReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            WalEndReason::Clean => "clean",
            WalEndReason::Torn(what) => what,
        })
    }
}

/// A log file being read.
pub(crate) struct WalReader {
    window: Window,
    file_num: FileNum,
    previous: Option<PreviousWal>,
    /// End of what has been read and is good.
    good_bytes: u64,
    /// The largest offset known so far to be synced.
    synced_bytes: u64,
    /// What the next record must start with; `None` before the first record of all.
    next_seq: Option<SeqNum>,
    end: Option<WalEnd>,
}

/// Something that is not a good record.
struct Fault {
    what: &'static str,
    /// Where a search for later records starts.
    resume_bytes: u64,
}

impl WalReader {
    /// Opens the log `file_num` for reading from its start. The file must not be written meanwhile.
    ///
    /// `synced_bytes` is what is known from outside to be synced (0: nothing); `first_seq` what the
    /// first record must start with (`None`: anything).
    ///
    /// # Errors
    /// `Corruption` when the header is bad although something in the file is known to be synced, or
    /// when the file belongs to another number; `Unsupported` for a later format version; `Io`.
    pub(crate) fn open(
        file: Arc<dyn File>,
        path: &Path,
        file_num: FileNum,
        synced_bytes: u64,
        first_seq: Option<SeqNum>,
    ) -> Result<WalReader> {
        let window = Window::new(file, path)?;
        let mut reader = WalReader {
            window,
            file_num,
            previous: None,
            good_bytes: 0,
            synced_bytes,
            next_seq: first_seq,
            end: None,
        };
        match reader.read_file_header()? {
            Ok(header) => {
                reader.previous = header.previous;
                reader.good_bytes = FILE_HEADER_BYTES as u64;
            }
            Err(what) => reader.finish(Fault { what, resume_bytes: FILE_HEADER_BYTES as u64 })?,
        }
        Ok(reader)
    }

    /// The log before this one, as the file header names it; `None` also when the header is torn.
    pub(crate) fn previous(&self) -> Option<PreviousWal> {
        self.previous
    }

    /// What the next record must start with; after the end, what the next log must start with.
    #[cfg(test)]
    pub(crate) fn next_seq(&self) -> Option<SeqNum> {
        self.next_seq
    }

    /// Length of the file.
    pub(crate) fn len_bytes(&self) -> u64 {
        self.window.len_bytes()
    }

    /// How the log ended, once [`WalReader::next`] has returned `None`.
    pub(crate) fn end(&self) -> Option<WalEnd> {
        self.end
    }

    /// The next record; `None` where the log ends.
    ///
    /// # Errors
    /// `Corruption` by the recovery rule; `Io`. The reader does not get past an error.
    pub(crate) fn next(&mut self) -> Result<Option<WalRecord<'_>>> {
        if self.end.is_some() {
            return Ok(None);
        }
        let offset_bytes = self.good_bytes;
        if offset_bytes == self.window.len_bytes() {
            self.finish_at_end_of_file()?;
            return Ok(None);
        }
        let header = match self.window.record_header(self.file_num, offset_bytes)? {
            Ok(header) => header,
            Err(what) => {
                self.finish(Fault { what, resume_bytes: offset_bytes + 1 })?;
                return Ok(None);
            }
        };
        let end_bytes = offset_bytes + header.record_bytes();
        if end_bytes > self.window.len_bytes() {
            self.finish(Fault {
                what: "a record's payload is cut short",
                resume_bytes: end_bytes,
            })?;
            return Ok(None);
        }
        let record_bytes = usize::try_from(header.record_bytes()).map_err(|_| {
            Error::new(ErrorKind::Unsupported, "a record is larger than this machine can address")
        })?;
        let start = self.window.fill(offset_bytes, record_bytes)?.start;
        let payload = start + RECORD_HEADER_BYTES..start + record_bytes;
        if header.payload_checksum != crc32c_masked(&[&self.window.bytes()[payload.clone()]]) {
            let what = "a record's payload checksum does not match";
            self.finish(Fault { what, resume_bytes: end_bytes })?;
            return Ok(None);
        }
        if let Some(expected) = self.next_seq.filter(|&expected| expected != header.first_seq) {
            let (expected, found) = (expected.0, header.first_seq.0);
            let what =
                format!("a record starts with sequence number {found} instead of {expected}");
            return Err(Error::corruption(self.window.path(), offset_bytes, what));
        }
        self.synced_bytes = self.synced_bytes.max(header.synced_bytes);
        self.next_seq = Some(header.next_seq());
        self.good_bytes = end_bytes;
        Ok(Some(WalRecord {
            path: self.window.path(),
            offset_bytes,
            first_seq: header.first_seq,
            op_count: header.op_count,
            payload: &self.window.bytes()[payload],
        }))
    }

    fn read_file_header(&mut self) -> Result<std::result::Result<FileHeader, &'static str>> {
        let range = self.window.fill(0, FILE_HEADER_BYTES)?;
        let path = self.window.path();
        let Some(bytes) = self.window.bytes()[range].first_chunk() else {
            return Ok(Err("the file header is cut short"));
        };
        match FileHeader::decode(bytes) {
            Ok(header) if header.file_num != self.file_num => {
                let (found, expected) = (header.file_num.0, self.file_num.0);
                let what = format!(
                    "the file header is that of log {found}, the file's name that of log {expected}"
                );
                Err(Error::corruption(path, 0, what))
            }
            Ok(header) => Ok(Ok(header)),
            Err(FileHeaderFault::Bad(what)) => Ok(Err(what)),
            Err(FileHeaderFault::Newer { version }) => {
                let known = FileHeader::VERSION;
                let what = format!(
                    "the log has format version {version}; this version of Kvant reads up to {known}"
                );
                Err(Error::new(ErrorKind::Unsupported, what).with_file(path))
            }
        }
    }

    /// Ends the log before `fault`, unless it lies in what is known to be synced.
    fn finish(&mut self, fault: Fault) -> Result<()> {
        let stated = stated(&mut self.window, self.file_num, fault.resume_bytes)?;
        self.synced_bytes = self.synced_bytes.max(stated.synced_bytes);
        let Fault { what, .. } = fault;
        if self.good_bytes < self.synced_bytes {
            let what = format!(
                "{what}, though the log is known to be synced up to byte {}",
                self.synced_bytes
            );
            return Err(Error::corruption(self.window.path(), self.good_bytes, what));
        }
        let discarded_bytes = self.window.len_bytes() - self.good_bytes;
        let reason = WalEndReason::Torn(what);
        self.end = Some(WalEnd { good_bytes: self.good_bytes, discarded_bytes, reason });
        Ok(())
    }

    fn finish_at_end_of_file(&mut self) -> Result<()> {
        if self.good_bytes < self.synced_bytes {
            let what = format!(
                "the log ends, though it is known to be synced up to byte {}",
                self.synced_bytes
            );
            return Err(Error::corruption(self.window.path(), self.good_bytes, what));
        }
        self.end = Some(WalEnd {
            good_bytes: self.good_bytes,
            discarded_bytes: 0,
            reason: WalEndReason::Clean,
        });
        Ok(())
    }
}

#[cfg(test)]
mod tests;
