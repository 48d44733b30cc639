//! Reads one log file and decides where it ends: the recovery rule of `docs/formats/wal.md`.

use super::layout::{FILE_HEADER_BYTES, FileHeader, FileHeaderFault, PreviousWal};
use super::scan::{ScanSummary, Window};
use crate::batch::{self, Op};
use crate::format::{FileNum, SeqNum};
use kvant_base::{Error, ErrorKind, Result};
use kvant_env::File;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

/// One commit group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WalRecord<'a> {
    pub(crate) path: &'a Path,
    pub(crate) offset_bytes: u64,
    pub(crate) first_seq: SeqNum,
    pub(crate) op_count: u32,
    pub(crate) payload: &'a [u8],
    /// Where the payload starts in the file.
    payload_offset_bytes: u64,
}

impl WalRecord<'_> {
    /// Calls `visit` with every operation and its sequence number.
    ///
    /// # Errors
    /// `Corruption` when the payload does not decode into exactly `op_count` operations; errors of
    /// `visit`.
    pub(crate) fn replay(&self, visit: impl FnMut(SeqNum, Op<'_>) -> Result<()>) -> Result<()> {
        batch::replay(
            self.payload,
            self.first_seq,
            self.op_count,
            self.path,
            self.payload_offset_bytes,
            visit,
        )
    }

    /// The first sequence number of the next record.
    pub(crate) fn next_seq(&self) -> SeqNum {
        SeqNum(self.first_seq.0 + u64::from(self.op_count))
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.payload_offset_bytes - self.offset_bytes + self.payload.len() as u64
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WalEnd {
    /// End of the last valid record; 0 when the file header is bad, or an earlier log's.
    pub(crate) good_bytes: u64,
    /// Bytes after `good_bytes`, which are discarded.
    pub(crate) discarded_bytes: u64,
    /// The end of the file: space that was reserved, or had an earlier log, and was not used.
    pub(crate) unused_bytes: u64,
    pub(crate) reason: WalEndReason,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WalEndReason {
    /// The file ends after a valid record, or after its header, or has a zero there and then no
    /// record of this log; or it was to become this log and is unchanged.
    Clean,
    /// An invalid record that was not known to be synced follows.
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

pub(crate) struct WalReader {
    window: Window,
    file_num: FileNum,
    previous: Option<PreviousWal>,
    /// End of the valid records read so far.
    good_bytes: u64,
    /// The largest offset known to be synced.
    synced_bytes: u64,
    /// First sequence number of the next record; `None`: any.
    next_seq: Option<SeqNum>,
    /// Whether the file has the header of an earlier log.
    is_earlier: bool,
    end: Option<WalEnd>,
}

impl WalReader {
    /// Opens the log `file_num`, to which no writer may append meanwhile.
    ///
    /// `synced_bytes` is what the caller knows to be synced (0: nothing); `first_seq` is the first
    /// sequence number of the first record (`None`: any).
    ///
    /// # Errors
    /// `Corruption` when the header is bad although something in the file is known to be synced, or
    /// when the header names another file number; `Unsupported` for a later format version; `Io`.
    pub(crate) fn open(
        file: Arc<dyn File>,
        path: &Path,
        file_num: FileNum,
        synced_bytes: u64,
        first_seq: Option<SeqNum>,
    ) -> Result<WalReader> {
        let mut reader = WalReader {
            window: Window::new(file, path)?,
            file_num,
            previous: None,
            good_bytes: 0,
            synced_bytes,
            next_seq: first_seq,
            is_earlier: false,
            end: None,
        };
        let header_bytes = FILE_HEADER_BYTES as u64;
        match reader.read_file_header()? {
            Ok(header) if header.file_num < file_num => {
                reader.is_earlier = true;
                reader.finish_torn("the file header names an earlier log")?;
            }
            Ok(header) => {
                reader.previous = header.previous;
                reader.good_bytes = header_bytes;
            }
            Err(what) => reader.finish_torn(what)?,
        }
        Ok(reader)
    }

    pub(super) fn path(&self) -> &Path {
        self.window.path()
    }

    /// The log before this one according to the file header; `None` if the header is torn.
    pub(crate) fn previous(&self) -> Option<PreviousWal> {
        self.previous
    }

    /// The end of a log of which nothing is replayed.
    pub(super) fn end_unread(&mut self, reason: WalEndReason) -> Result<WalEnd> {
        let discarded_bytes = self.window.contents_end(0)?;
        let unused_bytes = self.window.len_bytes() - discarded_bytes;
        Ok(WalEnd { good_bytes: 0, discarded_bytes, unused_bytes, reason })
    }

    /// So far the log is known to be synced, once it has ended.
    pub(super) fn synced_bytes(&self) -> u64 {
        self.synced_bytes
    }

    /// How the log ended, once [`WalReader::next`] has returned `None`.
    pub(crate) fn end(&self) -> Option<WalEnd> {
        self.end
    }

    /// The next record; `None` at the end of the log.
    ///
    /// # Errors
    /// `Corruption` by the recovery rule; `Io`. The reader does not get past an error.
    pub(crate) fn next(&mut self) -> Result<Option<WalRecord<'_>>> {
        if self.end.is_some() {
            return Ok(None);
        }
        let offset_bytes = self.good_bytes;
        if offset_bytes == self.window.len_bytes() {
            self.finish(WalEndReason::Clean, offset_bytes)?;
            return Ok(None);
        }
        let record = match self.window.record(self.file_num, offset_bytes, self.next_seq)? {
            Ok(record) => record,
            Err(what) => {
                self.finish_torn(what)?;
                return Ok(None);
            }
        };
        let header = record.header;
        if let Some(expected) = self.next_seq.filter(|&expected| expected != header.first_seq) {
            let (expected, found) = (expected.0, header.first_seq.0);
            let what =
                format!("a record starts with sequence number {found} instead of {expected}");
            return Err(Error::corruption(self.path(), offset_bytes, what));
        }
        self.synced_bytes = self.synced_bytes.max(header.synced_bytes);
        self.next_seq = Some(header.next_seq());
        self.good_bytes = record.end_bytes;
        Ok(Some(WalRecord {
            path: self.window.path(),
            offset_bytes,
            first_seq: header.first_seq,
            op_count: header.op_count,
            payload: &self.window.bytes()[record.payload],
            payload_offset_bytes: record.end_bytes - u64::from(header.payload_bytes),
        }))
    }

    fn read_file_header(&mut self) -> Result<std::result::Result<FileHeader, &'static str>> {
        let range = self.window.fill(0, FILE_HEADER_BYTES)?;
        let path = self.window.path();
        let Some(bytes) = self.window.bytes()[range].first_chunk() else {
            return Ok(Err("the file header is cut short"));
        };
        match FileHeader::decode(bytes) {
            Ok(header) if header.file_num > self.file_num => {
                let (found, expected) = (header.file_num.0, self.file_num.0);
                let what = format!("the file header names log {found}, the file name {expected}");
                Err(Error::corruption(path, 0, what))
            }
            Ok(header) => Ok(Ok(header)),
            Err(FileHeaderFault::Bad(what)) => Ok(Err(what)),
            Err(FileHeaderFault::Newer { version }) => {
                let known = FileHeader::VERSION;
                let what = format!(
                    "the log has format version {version}; this version of Kvant reads up to \
                     {known}"
                );
                Err(Error::new(ErrorKind::Unsupported, what).with_file(path))
            }
        }
    }

    /// Ends the log after its valid part, unless a later record states that more was synced. `what`
    /// is wrong there.
    fn finish_torn(&mut self, what: &'static str) -> Result<()> {
        let contents_bytes = self.window.contents_end(self.good_bytes)?;
        if contents_bytes == self.good_bytes && self.window.len_bytes() > 0 {
            return self.finish(WalEndReason::Clean, contents_bytes);
        }
        // The bad record itself, if its header is valid, states no offset behind its own.
        let from_bytes = self.good_bytes.max(FILE_HEADER_BYTES as u64);
        let later = self.window.scan(self.file_num, from_bytes, self.next_seq)?;
        self.synced_bytes = self.synced_bytes.max(later.synced_bytes);
        let is_unwritten = self.is_earlier || self.window.byte_at(self.good_bytes)? == Some(0);
        let is_synced = self.synced_bytes > self.good_bytes;
        if is_unwritten && !is_synced && later == ScanSummary::default() {
            return self.finish(WalEndReason::Clean, self.good_bytes);
        }
        self.finish(WalEndReason::Torn(what), contents_bytes)
    }

    /// Ends the log at `good_bytes`, unless more is known to be synced. What is behind
    /// `contents_bytes` was not written for this log.
    fn finish(&mut self, reason: WalEndReason, contents_bytes: u64) -> Result<()> {
        let (good_bytes, synced_bytes) = (self.good_bytes, self.synced_bytes);
        if good_bytes < synced_bytes {
            let what = match reason {
                WalEndReason::Clean => "the file ends",
                WalEndReason::Torn(what) => what,
            };
            let what =
                format!("{what}, though the log is known to be synced up to byte {synced_bytes}");
            return Err(Error::corruption(self.path(), good_bytes, what));
        }
        let discarded_bytes = contents_bytes - good_bytes;
        let unused_bytes = self.window.len_bytes() - contents_bytes;
        self.end = Some(WalEnd { good_bytes, discarded_bytes, unused_bytes, reason });
        Ok(())
    }
}

#[cfg(test)]
mod tests;
