//! The bytes of the file header and of a record header, as the tables in `docs/formats/wal.md` list
//! them.

use crate::format::{FileNum, SeqNum};
use kvant_base::checksum::crc32c_masked;
use kvant_base::limits;

pub(super) const FILE_HEADER_BYTES: usize = 40;
pub(super) const RECORD_HEADER_BYTES: usize = 36;
/// What every record starts with. The first byte is rare in text and numbers, which keeps searches
/// for it fast.
pub(super) const MARKER: [u8; 4] = [0x9e, b'K', b'V', b'R'];

const MAGIC: [u8; 8] = *b"KVANTWAL";
const VERSION: u32 = 1;

/// The log that was sealed when another was started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PreviousWal {
    pub(crate) file_num: FileNum,
    pub(crate) final_bytes: u64,
}

/// The start of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FileHeader {
    pub(super) file_num: FileNum,
    pub(super) previous: Option<PreviousWal>,
}

/// Why a file header is not usable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FileHeaderFault {
    /// Torn or damaged.
    Bad(&'static str),
    /// Written by a later version of the format.
    Newer { version: u32 },
}

impl FileHeader {
    pub(super) const VERSION: u32 = VERSION;

    pub(super) fn encode(&self) -> [u8; FILE_HEADER_BYTES] {
        let (previous_num, previous_bytes) = match self.previous {
            Some(previous) => (previous.file_num.0, previous.final_bytes),
            None => (0, 0),
        };
        let mut out = [0; FILE_HEADER_BYTES];
        out[..8].copy_from_slice(&MAGIC);
        out[8..12].copy_from_slice(&VERSION.to_le_bytes());
        out[12..20].copy_from_slice(&self.file_num.0.to_le_bytes());
        out[20..28].copy_from_slice(&previous_num.to_le_bytes());
        out[28..36].copy_from_slice(&previous_bytes.to_le_bytes());
        let checksum = crc32c_masked(&[&out[..36]]);
        out[36..].copy_from_slice(&checksum.to_le_bytes());
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
            VERSION => {}
            0 => return Err(FileHeaderFault::Bad("the file header has version 0")),
            version => return Err(FileHeaderFault::Newer { version }),
        }
        let file_num = FileNum(u64_at(bytes, 12));
        let previous = match (FileNum(u64_at(bytes, 20)), u64_at(bytes, 28)) {
            (FileNum(0), 0) => None,
            (previous_num, final_bytes) if FileNum(0) < previous_num && previous_num < file_num => {
                Some(PreviousWal { file_num: previous_num, final_bytes })
            }
            _ => {
                return Err(FileHeaderFault::Bad(
                    "the file header names an impossible previous log",
                ));
            }
        };
        Ok(FileHeader { file_num, previous })
    }
}

/// The start of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RecordHeader {
    pub(super) payload_checksum: u32,
    pub(super) payload_bytes: u32,
    pub(super) first_seq: SeqNum,
    pub(super) op_count: u32,
    pub(super) synced_bytes: u64,
}

impl RecordHeader {
    /// The header as it stands in file `file_num` at `offset_bytes`.
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

    /// The header found in file `file_num` at `offset_bytes`; what is wrong with it when it was not
    /// written for that place.
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
        if header.is_within_limits(offset_bytes) {
            Ok(header)
        } else {
            Err("a record header is outside the limits")
        }
    }

    /// Whether a record with this header may stand at `offset_bytes`.
    pub(super) fn is_within_limits(&self, offset_bytes: u64) -> bool {
        u64::from(self.payload_bytes) <= limits::WAL_RECORD_BYTES_MAX
            && (self.op_count == 0) == (self.payload_bytes == 0)
            && self.synced_bytes <= offset_bytes
            && self
                .first_seq
                .0
                .checked_add(u64::from(self.op_count))
                .is_some_and(|next| next <= SeqNum::MAX.0 + 1)
    }

    /// Bytes of header and payload together.
    pub(super) fn record_bytes(&self) -> u64 {
        RECORD_HEADER_BYTES as u64 + u64::from(self.payload_bytes)
    }

    /// The sequence number that the next record starts with.
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

fn u32_at(bytes: &[u8], offset: usize) -> u32 {
    u32::from_le_bytes(bytes[offset..offset + 4].try_into().expect("the range has four bytes"))
}

fn u64_at(bytes: &[u8], offset: usize) -> u64 {
    u64::from_le_bytes(bytes[offset..offset + 8].try_into().expect("the range has eight bytes"))
}
