//! A buffered window over a log file, the record at an offset of it, and the search for records.

use super::layout::{MARKER, RECORD_HEADER_BYTES, RecordHeader};
use super::short::{Place, SHORT_HEADER_BYTES, SHORT_MARKER, ShortHeader};
use crate::format::{FileNum, SeqNum};
use kvant_base::checksum::crc32c_masked;
use kvant_base::{Error, ErrorKind, Result};
use kvant_env::File;
use kvant_env::fs::read_error;
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

/// A valid record in a window.
pub(super) struct Record {
    /// Of a short record: as the full one would be, without a synced offset.
    pub(super) header: RecordHeader,
    /// The range of its payload in [`Window::bytes`].
    pub(super) payload: Range<usize>,
    pub(super) end_bytes: u64,
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
            self.start_bytes = offset_bytes;
            match self.read(offset_bytes, wanted) {
                // What is needed may be readable.
                Err(e) if e.kind() == ErrorKind::Corruption && needed < wanted => {
                    self.read(offset_bytes, needed)?;
                }
                read => read?,
            }
        }
        let start =
            usize::try_from(offset_bytes - self.start_bytes).expect("the window fits into memory");
        Ok(start..self.buffer.len())
    }

    /// Replaces what is buffered. After an error nothing is.
    fn read(&mut self, offset_bytes: u64, len: usize) -> Result<()> {
        self.buffer.clear();
        self.buffer.resize(len, 0);
        if len == 0 {
            return Ok(());
        }
        self.file.read_exact_at(&mut self.buffer, offset_bytes).map_err(|error| {
            self.buffer.clear();
            read_error(error, &self.path, offset_bytes)
        })
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.buffer
    }

    /// The byte at `offset_bytes`; `None` behind the end.
    pub(super) fn byte_at(&mut self, offset_bytes: u64) -> Result<Option<u8>> {
        let range = self.fill(offset_bytes, 1)?;
        Ok(self.buffer[range].first().copied())
    }

    /// Buffers the record at `offset_bytes`, or says why there is none. `next_seq` is the number
    /// after the record before it; without it only a full record is found.
    pub(super) fn record(
        &mut self,
        file_num: FileNum,
        offset_bytes: u64,
        next_seq: Option<SeqNum>,
    ) -> Result<std::result::Result<Record, &'static str>> {
        if let Some(first_seq) = next_seq
            && let Some(record) = self.short_record(Place { file_num, offset_bytes, first_seq })?
        {
            return Ok(Ok(record));
        }
        let header = match self.full_header(file_num, offset_bytes)? {
            Ok(header) => header,
            Err(what) => return Ok(Err(what)),
        };
        let end_bytes = offset_bytes + header.record_bytes();
        if end_bytes > self.len_bytes {
            return Ok(Err("a record's payload is cut short"));
        }
        let record_bytes = usize::try_from(header.record_bytes()).map_err(|_| {
            Error::new(ErrorKind::Unsupported, "a record is larger than this machine can address")
        })?;
        let start = self.fill(offset_bytes, record_bytes)?.start;
        let payload = start + RECORD_HEADER_BYTES..start + record_bytes;
        if header.payload_checksum != crc32c_masked(&[&self.buffer[payload.clone()]]) {
            return Ok(Err("a record's payload checksum does not match"));
        }
        Ok(Ok(Record { header, payload, end_bytes }))
    }

    /// The header of a full record at `offset_bytes`, or why there is none.
    fn full_header(
        &mut self,
        file_num: FileNum,
        offset_bytes: u64,
    ) -> Result<std::result::Result<RecordHeader, &'static str>> {
        let range = self.fill(offset_bytes, RECORD_HEADER_BYTES)?;
        let bytes = &self.buffer[range];
        Ok(match bytes.first_chunk() {
            _ if bytes.first() == Some(&SHORT_MARKER) => {
                Err("a short record is cut short, or its checksum does not match")
            }
            Some(bytes) => RecordHeader::decode(bytes, file_num, offset_bytes),
            None => Err("a record header is cut short"),
        })
    }

    /// Buffers the short record that was written for `place`.
    fn short_record(&mut self, place: Place) -> Result<Option<Record>> {
        let Some(short) = self.short_header(place.offset_bytes)? else { return Ok(None) };
        let record_bytes = short.record_bytes();
        let range = self.fill(place.offset_bytes, record_bytes)?;
        if range.len() < record_bytes {
            return Ok(None);
        }
        let payload = range.start + SHORT_HEADER_BYTES..range.start + record_bytes;
        let payload_checksum = crc32c_masked(&[&self.buffer[payload.clone()]]);
        let header = short.as_full(payload_checksum, place.first_seq);
        let is_valid = short.is_valid_at(place, payload_checksum)
            && header.is_within_limits(place.offset_bytes);
        let end_bytes = place.offset_bytes + record_bytes as u64;
        Ok(is_valid.then_some(Record { header, payload, end_bytes }))
    }

    /// The header of a short record at `offset_bytes`, not verified.
    fn short_header(&mut self, offset_bytes: u64) -> Result<Option<ShortHeader>> {
        let range = self.fill(offset_bytes, SHORT_HEADER_BYTES)?;
        Ok(self.buffer[range].first_chunk().and_then(ShortHeader::decode))
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

    /// Searches for records from `from_bytes` on: for the headers of full ones at every offset, and
    /// for short ones behind them. `next_seq` is the first number of the record at `from_bytes`, if
    /// one starts there.
    ///
    /// The header of a full record counts even if its payload is damaged, and a damaged short one
    /// if the record behind it shows where it ended; the search continues behind that.
    pub(super) fn scan(
        &mut self,
        file_num: FileNum,
        from_bytes: u64,
        mut next_seq: Option<SeqNum>,
    ) -> Result<ScanSummary> {
        let mut summary = ScanSummary::default();
        let mut offset_bytes = from_bytes;
        while offset_bytes + SHORT_HEADER_BYTES as u64 <= self.len_bytes {
            if let Ok(header) = self.full_header(file_num, offset_bytes)? {
                summary.note(&header);
                offset_bytes += header.record_bytes();
                next_seq = Some(header.next_seq());
                continue;
            }
            if let Some(first_seq) = next_seq {
                let place = Place { file_num, offset_bytes, first_seq };
                let found = match self.short_record(place)? {
                    Some(record) => Some(record),
                    None => self.record_behind_damaged(place)?,
                };
                if let Some(record) = found {
                    summary.note(&record.header);
                    summary.op_count += record.header.first_seq.0 - first_seq.0;
                    offset_bytes = record.end_bytes;
                    next_seq = Some(record.header.next_seq());
                    continue;
                }
                next_seq = None;
            }
            offset_bytes += 1;
            let range = self.fill(offset_bytes, RECORD_HEADER_BYTES)?;
            let ahead = &self.buffer[range];
            let skipped = ahead.iter().position(|&byte| byte == MARKER[0]).unwrap_or(ahead.len());
            offset_bytes += skipped as u64;
        }
        Ok(summary)
    }

    /// The valid short record behind a damaged one, if that one's header is whole.
    fn record_behind_damaged(&mut self, damaged: Place) -> Result<Option<Record>> {
        let Some(short) = self.short_header(damaged.offset_bytes)? else { return Ok(None) };
        self.short_record(Place {
            offset_bytes: damaged.offset_bytes + short.record_bytes() as u64,
            first_seq: SeqNum(damaged.first_seq.0.saturating_add(u64::from(short.op_count))),
            ..damaged
        })
    }
}

/// The records in a part of a log, combined.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ScanSummary {
    /// The largest synced offset; 0 without full records.
    pub(super) synced_bytes: u64,
    pub(super) op_count: u64,
    /// The sequence number after the newest operation.
    pub(super) next_seq: SeqNum,
}

impl ScanSummary {
    fn note(&mut self, header: &RecordHeader) {
        self.synced_bytes = self.synced_bytes.max(header.synced_bytes);
        self.op_count += u64::from(header.op_count);
        self.next_seq = self.next_seq.max(header.next_seq());
    }
}
