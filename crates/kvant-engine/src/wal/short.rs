//! Encoding of the header of a short record, as specified in `docs/formats/wal.md`.
//!
//! A short record leaves out what follows from the record before it: its first sequence number,
//! which its checksum includes, and the synced offset.

use super::layout::RecordHeader;
use crate::format::{FileNum, SeqNum, u32_at};
use kvant_base::checksum::crc32c_masked;

pub(super) const SHORT_HEADER_BYTES: usize = 8;
/// Starts every short record.
pub(super) const SHORT_MARKER: u8 = 0xb5;
/// The first record that starts in a page is a full one: damage within a page leaves the next
/// page's statement of what is synced.
const PAGE_BYTES: u64 = 4096;

/// Where a record was written, which its checksum includes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) file_num: FileNum,
    pub(super) offset_bytes: u64,
    pub(super) first_seq: SeqNum,
}

/// What short records leave out, as the last full record has it and those since.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stated {
    page: u64,
    synced_bytes: u64,
    next_seq: SeqNum,
}

impl Stated {
    /// The statement of a record that starts at `offset_bytes`.
    pub(super) fn new(offset_bytes: u64, synced_bytes: u64, next_seq: SeqNum) -> Stated {
        Stated { page: offset_bytes / PAGE_BYTES, synced_bytes, next_seq }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ShortHeader {
    pub(super) op_count: u8,
    pub(super) payload_bytes: u16,
    checksum: u32,
}

impl ShortHeader {
    /// The short header of the record that `full` heads, at its place; `None` if it needs the full
    /// one.
    pub(super) fn of(full: &RecordHeader, place: Place) -> Option<ShortHeader> {
        let op_count = u8::try_from(full.op_count).ok().filter(|&count| count > 0)?;
        let payload_bytes = u16::try_from(full.payload_bytes).ok()?;
        let mut header = ShortHeader { op_count, payload_bytes, checksum: 0 };
        header.checksum = header.checksum_at(place, full.payload_checksum);
        Some(header)
    }

    pub(super) fn encode(self) -> [u8; SHORT_HEADER_BYTES] {
        let mut out = [SHORT_MARKER, self.op_count, 0, 0, 0, 0, 0, 0];
        out[2..4].copy_from_slice(&self.payload_bytes.to_le_bytes());
        out[4..].copy_from_slice(&self.checksum.to_le_bytes());
        out
    }

    /// Decodes a header whose checksum is not verified; `None` if the bytes cannot be one.
    pub(super) fn decode(bytes: &[u8; SHORT_HEADER_BYTES]) -> Option<ShortHeader> {
        let (op_count, payload_bytes) = (bytes[1], u16::from_le_bytes([bytes[2], bytes[3]]));
        (bytes[0] == SHORT_MARKER && op_count > 0 && payload_bytes > 0).then(|| ShortHeader {
            op_count,
            payload_bytes,
            checksum: u32_at(bytes, 4),
        })
    }

    /// The header that a full record would have instead; it states nothing to be synced.
    pub(super) fn as_full(self, payload_checksum: u32, first_seq: SeqNum) -> RecordHeader {
        RecordHeader {
            payload_checksum,
            payload_bytes: u32::from(self.payload_bytes),
            first_seq,
            op_count: u32::from(self.op_count),
            synced_bytes: 0,
        }
    }

    pub(super) fn record_bytes(self) -> usize {
        SHORT_HEADER_BYTES + usize::from(self.payload_bytes)
    }

    /// Whether this header and a payload with that checksum were written for that place.
    pub(super) fn is_valid_at(self, place: Place, payload_checksum: u32) -> bool {
        self.checksum == self.checksum_at(place, payload_checksum)
    }

    fn checksum_at(self, place: Place, payload_checksum: u32) -> u32 {
        let mut covered = [0; 32];
        covered[..4].copy_from_slice(&self.encode()[..4]);
        covered[4..8].copy_from_slice(&payload_checksum.to_le_bytes());
        covered[8..16].copy_from_slice(&place.file_num.0.to_le_bytes());
        covered[16..24].copy_from_slice(&place.offset_bytes.to_le_bytes());
        covered[24..].copy_from_slice(&place.first_seq.0.to_le_bytes());
        crc32c_masked(&[&covered])
    }
}
