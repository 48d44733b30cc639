//! The manifest: an append-only, checksummed log of version edits. `docs/formats/manifest.md` is
//! its specification.
//!
//! Invariants:
//! 1. A manifest gets its name only when its header and first record, the snapshot, are durable.
//! 2. A record is durable before the next one is written, so only the last record can be torn.
//! 3. A record's checksum is bound to the manifest's number and the record's offset.
//!
//! Threads: one writer; readers only while there is no writer.

mod reader;
mod state;
mod writer;

pub(crate) use reader::{ManifestReader, RecoveredManifest, recover};
pub(crate) use state::{KnownLogs, ManifestState};
pub(crate) use writer::{ManifestWriter, remove_older};

use crate::format::FileNum;
use kvant_base::checksum::crc32c_masked;

const MAGIC: [u8; 8] = *b"KVANTMAN";
const FORMAT_VERSION: u32 = 2;
const FILE_HEADER_BYTES: usize = 24;

const RECORD_MARKER: [u8; 4] = [0xd5, b'M', b'E', 0x9b];
const RECORD_HEADER_BYTES: usize = 16;

fn encode_file_header(num: FileNum) -> [u8; FILE_HEADER_BYTES] {
    let mut header = [0; FILE_HEADER_BYTES];
    header[..8].copy_from_slice(&MAGIC);
    header[8..12].copy_from_slice(&FORMAT_VERSION.to_le_bytes());
    header[12..20].copy_from_slice(&num.0.to_le_bytes());
    let crc = crc32c_masked(&[&header[..20]]);
    header[20..].copy_from_slice(&crc.to_le_bytes());
    header
}

/// The header of a record with `payload_bytes` bytes of payload at `offset_bytes` of manifest
/// `num`.
fn encode_record_header(
    num: FileNum,
    offset_bytes: u64,
    payload_bytes: u32,
    payload_crc: u32,
) -> [u8; RECORD_HEADER_BYTES] {
    let mut header = [0; RECORD_HEADER_BYTES];
    header[..4].copy_from_slice(&RECORD_MARKER);
    header[4..8].copy_from_slice(&payload_bytes.to_le_bytes());
    header[8..12].copy_from_slice(&payload_crc.to_le_bytes());
    let crc = record_crc(num, offset_bytes, &header);
    header[12..].copy_from_slice(&crc.to_le_bytes());
    header
}

fn record_crc(num: FileNum, offset_bytes: u64, header: &[u8; RECORD_HEADER_BYTES]) -> u32 {
    crc32c_masked(&[&num.0.to_le_bytes(), &offset_bytes.to_le_bytes(), &header[..12]])
}

#[cfg(test)]
mod tests;
