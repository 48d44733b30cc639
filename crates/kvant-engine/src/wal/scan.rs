//! A buffered window over a log file, and the search for what is known to be synced in it.

use super::layout::{MARKER, RECORD_HEADER_BYTES, RecordHeader};
use crate::format::{FileNum, SeqNum};
use kvant_base::{Error, Result};
use kvant_env::File;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What is read at once, and kept when a larger record has been read.
const WINDOW_BYTES: usize = 256 << 10;

/// A file seen through a buffer that moves forward.
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

    /// Length of the file when the window was opened.
    pub(super) fn len_bytes(&self) -> u64 {
        self.len_bytes
    }

    /// Makes `count` bytes from `offset_bytes` available, or what the file has of them, and says
    /// where in [`Window::bytes`] they are, together with all that is buffered behind them.
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

    /// The record header at `offset_bytes`, or what is wrong with what is there.
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
}

/// What the record headers of a part of a log say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Stated {
    /// The largest synced offset; 0 when there is no header.
    pub(super) synced_bytes: u64,
    /// Operations of all of them.
    pub(super) op_count: u64,
    /// The sequence number after the newest operation.
    pub(super) next_seq: SeqNum,
}

/// What the record headers at or after `from_bytes` state.
///
/// Every byte is tried; a header that verifies counts whatever became of its payload, and the
/// search goes on behind that payload.
pub(super) fn stated(window: &mut Window, file_num: FileNum, from_bytes: u64) -> Result<Stated> {
    let mut stated = Stated::default();
    let mut offset_bytes = from_bytes;
    while offset_bytes + RECORD_HEADER_BYTES as u64 <= window.len_bytes() {
        if let Ok(header) = window.record_header(file_num, offset_bytes)? {
            stated.synced_bytes = stated.synced_bytes.max(header.synced_bytes);
            stated.op_count += u64::from(header.op_count);
            stated.next_seq = stated.next_seq.max(header.next_seq());
            offset_bytes += header.record_bytes();
            continue;
        }
        offset_bytes += 1;
        let range = window.fill(offset_bytes, RECORD_HEADER_BYTES)?;
        let ahead = &window.bytes()[range];
        let skipped = ahead.iter().position(|&byte| byte == MARKER[0]).unwrap_or(ahead.len());
        offset_bytes += skipped as u64;
    }
    Ok(stated)
}

/// As [`stated`], of a file.
pub(super) fn stated_in_file(
    file: Arc<dyn File>,
    path: &Path,
    file_num: FileNum,
    from_bytes: u64,
) -> Result<Stated> {
    let mut window = Window::new(file, path)?;
    stated(&mut window, file_num, from_bytes)
}
