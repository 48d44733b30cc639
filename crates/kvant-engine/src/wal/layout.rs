//! Encoding of the file header and of the header of a full record, as specified in
//! `docs/formats/wal.md`.

use crate::format::{FileNum, SeqNum, u32_at, u64_at};
use kvant_base::checksum::crc32c_masked;
use kvant_base::limits;

pub(super) const FILE_HEADER_BYTES: usize = 40;
pub(super) const RECORD_HEADER_BYTES: usize = 36;
/// Starts every full record. The first byte is rare in text and numbers, so a search for it is
/// fast.
pub(super) const MARKER: [u8; 4] = [0x9e, b'K', b'V', b'R'];

const MAGIC: [u8; 8] = *b"KVANTWAL";
/// Version 1 has no short records.
const VERSION: u32 = 2;

/// The log that was sealed when this one was started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PreviousWal {
    pub(crate) file_num: FileNum,
    pub(crate) final_bytes: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FileHeader {
    pub(super) file_num: FileNum,
    pub(super) previous: Option<PreviousWal>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FileHeaderFault {
    /// Torn or damaged.
    Bad(&'static str),
    /// Written by a later version of the format.
    Newer { version: u32 },
}

impl FileHeader {
    pub(super) const VERSION: u32 = VERSION;

    pub(super) fn encode(&self) -> Vec<u8> {
        let previous = self.previous.unwrap_or_default();
        let mut out = [
            &MAGIC[..],
            &VERSION.to_le_bytes(),
            &self.file_num.0.to_le_bytes(),
            &previous.file_num.0.to_le_bytes(),
            &previous.final_bytes.to_le_bytes(),
        ]
        .concat();
        out.extend_from_slice(&crc32c_masked(&[&out]).to_le_bytes());
        out
    }

    pub(super) fn decode(bytes: &[u8; FILE_HEADER_BYTES]) -> Result<FileHeader, FileHeaderFault> {
        if u32_at(bytes, 36) != crc32c_masked(&[&bytes[..36]]) {
            return Err(FileHeaderFault::Bad("the file header's checksum does not match"));
        }
        if bytes[..8] != MAGIC {
            return Err(FileHeaderFault::Bad("the file is not a write-ahead log"));
        }
        match u32_at(bytes, 8) {
            0 => return Err(FileHeaderFault::Bad("the file header has version 0")),
            1..=VERSION => {}
            version => return Err(FileHeaderFault::Newer { version }),
        }
        let file_num = FileNum(u64_at(bytes, 12));
        let (previous_num, final_bytes) = (FileNum(u64_at(bytes, 20)), u64_at(bytes, 28));
        let previous = if (previous_num, final_bytes) == (FileNum(0), 0) {
            None
        } else if FileNum(0) < previous_num && previous_num < file_num {
            Some(PreviousWal { file_num: previous_num, final_bytes })
        } else {
            return Err(FileHeaderFault::Bad("the file header names an impossible previous log"));
        };
        Ok(FileHeader { file_num, previous })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RecordHeader {
    pub(super) payload_checksum: u32,
    pub(super) payload_bytes: u32,
    pub(super) first_seq: SeqNum,
    pub(super) op_count: u32,
    pub(super) synced_bytes: u64,
}

impl RecordHeader {
    /// Encodes the header for `offset_bytes` of file `file_num`.
    pub(super) fn encode(&self, file_num: FileNum, offset_bytes: u64) -> [u8; RECORD_HEADER_BYTES] {
        let mut out = [0; RECORD_HEADER_BYTES];
        out[..4].copy_from_slice(&MARKER);
        out[8..12].copy_from_slice(&self.payload_checksum.to_le_bytes());
        out[12..16].copy_from_slice(&self.payload_bytes.to_le_bytes());
        out[16..24].copy_from_slice(&self.first_seq.0.to_le_bytes());
        out[24..28].copy_from_slice(&self.op_count.to_le_bytes());
        out[28..36].copy_from_slice(&self.synced_bytes.to_le_bytes());
        let checksum = header_checksum(&out, file_num, offset_bytes);
        out[4..8].copy_from_slice(&checksum.to_le_bytes());
        out
    }

    /// Decodes the header at `offset_bytes` of file `file_num`. The error says why the bytes are
    /// not a header written for that place.
    pub(super) fn decode(
        bytes: &[u8; RECORD_HEADER_BYTES],
        file_num: FileNum,
        offset_bytes: u64,
    ) -> Result<RecordHeader, &'static str> {
        if bytes[..4] != MARKER {
            return Err("a record's marker does not match");
        }
        if u32_at(bytes, 4) != header_checksum(bytes, file_num, offset_bytes) {
            return Err("a record header's checksum does not match");
        }
        let header = RecordHeader {
            payload_checksum: u32_at(bytes, 8),
            payload_bytes: u32_at(bytes, 12),
            first_seq: SeqNum(u64_at(bytes, 16)),
            op_count: u32_at(bytes, 24),
            synced_bytes: u64_at(bytes, 28),
        };
        let is_valid = header.is_within_limits(offset_bytes);
        if is_valid { Ok(header) } else { Err("a record header is outside the limits") }
    }

    /// Whether a record with this header may start at `offset_bytes`.
    pub(super) fn is_within_limits(&self, offset_bytes: u64) -> bool {
        let next_seq = self.first_seq.0.checked_add(u64::from(self.op_count));
        u64::from(self.payload_bytes) <= limits::WAL_RECORD_BYTES_MAX
            && (self.op_count == 0) == (self.payload_bytes == 0)
            && self.synced_bytes <= offset_bytes
            && next_seq.is_some_and(|next| next <= SeqNum::MAX.0 + 1)
    }

    pub(super) fn record_bytes(&self) -> u64 {
        RECORD_HEADER_BYTES as u64 + u64::from(self.payload_bytes)
    }

    /// The first sequence number of the next record.
    pub(super) fn next_seq(&self) -> SeqNum {
        SeqNum(self.first_seq.0 + u64::from(self.op_count))
    }
}

fn header_checksum(
    header: &[u8; RECORD_HEADER_BYTES],
    file_num: FileNum,
    offset_bytes: u64,
) -> u32 {
    crc32c_masked(&[&header[8..], &file_num.0.to_le_bytes(), &offset_bytes.to_le_bytes()])
}
