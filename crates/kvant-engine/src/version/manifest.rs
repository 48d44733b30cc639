//! The manifest: an append-only, checksummed log of version edits. `docs/formats/manifest.md` is
//! its specification.
//!
//! Invariants:
//! 1. A manifest is renamed to its name when its header and first record, the snapshot, are
//!    durable.
//! 2. A record is durable before the next one is written: only the last record can be torn.
//! 3. The checksum of a record covers the number of the manifest and the offset of the record.
//!
//! Threads: one writer, or any number of readers.

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

fn encode_file_header(num: FileNum) -> Vec<u8> {
    let mut header = [&MAGIC[..], &FORMAT_VERSION.to_le_bytes(), &num.0.to_le_bytes()].concat();
    header.extend_from_slice(&crc32c_masked(&[&header]).to_le_bytes());
    header
}

/// The header of a record at `offset_bytes` of manifest `num`.
fn encode_record_header(
    num: FileNum,
    offset_bytes: u64,
    payload_bytes: u32,
    payload_crc: u32,
) -> Vec<u8> {
    let mut header =
        [RECORD_MARKER, payload_bytes.to_le_bytes(), payload_crc.to_le_bytes()].concat();
    header.extend_from_slice(&record_crc(num, offset_bytes, &header).to_le_bytes());
    header
}

/// The checksum over the first 12 bytes of a record header and its place.
fn record_crc(num: FileNum, offset_bytes: u64, header: &[u8]) -> u32 {
    crc32c_masked(&[&num.0.to_le_bytes(), &offset_bytes.to_le_bytes(), &header[..12]])
}

#[cfg(test)]
mod tests;
