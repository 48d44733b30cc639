//! A buffered window over a log file, and the search for record headers in it.

use super::layout::{MARKER, RECORD_HEADER_BYTES, RecordHeader};
use crate::format::{FileNum, SeqNum};
use kvant_base::{Error, Result};
use kvant_env::File;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Bytes per read, and the size of the buffer kept after a larger record.
const WINDOW_BYTES: usize = 256 << 10;

/// A buffer that moves forward over a file.
pub(super) struct Window {
    file: Arc<dyn File>,
    path: PathBuf,
    len_bytes: u64,
    start_bytes: u64,
    buffer: Vec<u8>,
}

impl Window {
    pub(super) fn new(file: Arc<dyn File>, path: &Path) -> Result<Window> {
        let len_bytes = file.len_bytes().map_err(|e| Error::io("read the length of", path, e))?;
        Ok(Window { file, path: path.to_path_buf(), len_bytes, start_bytes: 0, buffer: Vec::new() })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn len_bytes(&self) -> u64 {
        self.len_bytes
    }

    /// Buffers `count` bytes from `offset_bytes`, or as many as the file has. Returns the range of
    /// [`Window::bytes`] from `offset_bytes` to the end of the buffer.
    pub(super) fn fill(&mut self, offset_bytes: u64, count: usize) -> Result<Range<usize>> {
        let left_bytes =
            usize::try_from(self.len_bytes.saturating_sub(offset_bytes)).unwrap_or(usize::MAX);
        let needed = count.min(left_bytes);
        let end_bytes = self.start_bytes + self.buffer.len() as u64;
        let buffered =
            offset_bytes >= self.start_bytes && offset_bytes + needed as u64 <= end_bytes;
        if !buffered {
            let wanted = needed.max(WINDOW_BYTES).min(left_bytes);
            if self.buffer.capacity() > WINDOW_BYTES && wanted <= WINDOW_BYTES {
                self.buffer = Vec::new();
            }
            self.buffer.clear();
            self.buffer.resize(wanted, 0);
            self.start_bytes = offset_bytes;
            if let Err(e) = self.file.read_exact_at(&mut self.buffer, offset_bytes) {
                self.buffer.clear();
                return Err(Error::io("read", &self.path, e).with_offset(offset_bytes));
            }
        }
        let start =
            usize::try_from(offset_bytes - self.start_bytes).expect("the window fits into memory");
        Ok(start..self.buffer.len())
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.buffer
    }

    /// The record header at `offset_bytes`, or why there is none.
    pub(super) fn record_header(
        &mut self,
        file_num: FileNum,
        offset_bytes: u64,
    ) -> Result<std::result::Result<RecordHeader, &'static str>> {
        let range = self.fill(offset_bytes, RECORD_HEADER_BYTES)?;
        Ok(match self.buffer[range].first_chunk() {
            Some(bytes) => RecordHeader::decode(bytes, file_num, offset_bytes),
            None => Err("a record header is cut short"),
        })
    }

    /// The end of the last byte from `offset_bytes` on that is not zero; `offset_bytes` if all are.
    pub(super) fn contents_end(&mut self, mut offset_bytes: u64) -> Result<u64> {
        let mut end_bytes = offset_bytes;
        while offset_bytes < self.len_bytes {
            let range = self.fill(offset_bytes, WINDOW_BYTES)?;
            let bytes = &self.buffer[range];
            // Many bytes at a time; most of a reserved part is zero.
            if bytes.iter().fold(0, |all, byte| all | byte) != 0 {
                let last = bytes.iter().rposition(|&byte| byte != 0).unwrap_or_default();
                end_bytes = offset_bytes + last as u64 + 1;
            }
            offset_bytes += bytes.len() as u64;
        }
        Ok(end_bytes)
    }

    /// Searches for record headers from `from_bytes` on, at every offset. A valid header counts
    /// even if its payload is damaged; the search continues after that payload.
    pub(super) fn scan_headers(
        &mut self,
        file_num: FileNum,
        from_bytes: u64,
    ) -> Result<HeaderSummary> {
        let mut summary = HeaderSummary::default();
        let mut offset_bytes = from_bytes;
        while offset_bytes + RECORD_HEADER_BYTES as u64 <= self.len_bytes {
            if let Ok(header) = self.record_header(file_num, offset_bytes)? {
                summary.synced_bytes = summary.synced_bytes.max(header.synced_bytes);
                summary.op_count += u64::from(header.op_count);
                summary.next_seq = summary.next_seq.max(header.next_seq());
                offset_bytes += header.record_bytes();
                continue;
            }
            offset_bytes += 1;
            let range = self.fill(offset_bytes, RECORD_HEADER_BYTES)?;
            let ahead = &self.buffer[range];
            let skipped = ahead.iter().position(|&byte| byte == MARKER[0]).unwrap_or(ahead.len());
            offset_bytes += skipped as u64;
        }
        Ok(summary)
    }
}

/// The record headers in a part of a log, combined.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct HeaderSummary {
    /// The largest synced offset; 0 without headers.
    pub(super) synced_bytes: u64,
    pub(super) op_count: u64,
    /// The sequence number after the newest operation.
    pub(super) next_seq: SeqNum,
}
