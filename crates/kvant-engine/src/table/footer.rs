//! The footer: the places of filter, index and properties (`docs/formats/table.md`, section 6).

use super::stored::BlockSpan;
use crate::format::{u32_at, u64_at};
use kvant_base::checksum::crc32c_masked;
use kvant_base::{Error, ErrorKind, Result};
use std::path::Path;

/// The format that this code writes, and the newest that it reads.
pub(super) const FORMAT_VERSION: u32 = 2;
pub(super) const FOOTER_BYTES: usize = 56;
/// The end of the footer, the same in every version: footer bytes, version, checksum, magic.
pub(super) const TAIL_BYTES: usize = 20;
const MAGIC: [u8; 8] = *b"KVANTSST";
/// Longest footer of any future version: bounds the read that checks an unknown version.
const FOOTER_BYTES_MAX: usize = 4096;

/// The places of the blocks other than data blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Footer {
    /// Version of the file's format.
    pub(super) version: u32,
    /// Empty if the table has no filter.
    pub(super) filter: BlockSpan,
    pub(super) index: BlockSpan,
    pub(super) properties: BlockSpan,
}

impl Footer {
    pub(super) fn encode(&self) -> [u8; FOOTER_BYTES] {
        let mut out = Vec::with_capacity(FOOTER_BYTES);
        for span in [self.filter, self.index, self.properties] {
            out.extend_from_slice(&span.offset_bytes.to_le_bytes());
            out.extend_from_slice(&span.stored_bytes.to_le_bytes());
        }
        out.extend_from_slice(&(FOOTER_BYTES as u32).to_le_bytes());
        out.extend_from_slice(&self.version.to_le_bytes());
        out.extend_from_slice(&crc32c_masked(&[&out]).to_le_bytes());
        out.extend_from_slice(&MAGIC);
        out.try_into().expect("the fields add up to the footer's length")
    }

    /// Decodes the footer at the end of `file_end`, the last [`Footer::read_bytes`] of a file of
    /// `file_bytes`.
    pub(super) fn decode(file_end: &[u8], path: &Path, file_bytes: u64) -> Result<Footer> {
        let corrupt = |distance: usize, what: &str| {
            Err(Error::corruption(path, file_bytes.saturating_sub(distance as u64), what))
        };
        let Some((_, tail)) = file_end.split_last_chunk::<TAIL_BYTES>() else {
            return corrupt(file_end.len(), "table is shorter than its footer");
        };
        if tail[12..] != MAGIC {
            return corrupt(8, "table does not end with its magic number");
        }
        let footer_bytes = u32_at(tail, 0) as usize;
        if !(TAIL_BYTES..=FOOTER_BYTES_MAX).contains(&footer_bytes) || footer_bytes > file_end.len()
        {
            return corrupt(TAIL_BYTES, "footer length is impossible");
        }
        let footer = &file_end[file_end.len() - footer_bytes..];
        if crc32c_masked(&[&footer[..footer_bytes - 12]]) != u32_at(tail, 8) {
            return corrupt(footer_bytes, "footer checksum does not match");
        }
        let version = u32_at(tail, 4);
        if version > FORMAT_VERSION {
            let message = format!(
                "table has format version {version}, this program reads up to {FORMAT_VERSION}"
            );
            return Err(Error::new(ErrorKind::Unsupported, message).with_file(path));
        }
        if version == 0 || footer_bytes != FOOTER_BYTES {
            return corrupt(footer_bytes, "footer has an unknown version or length");
        }
        let span = |at: usize| BlockSpan {
            offset_bytes: u64_at(footer, at),
            stored_bytes: u32_at(footer, at + 8),
        };
        let footer = Footer { version, filter: span(0), index: span(12), properties: span(24) };
        let adjoining = footer.filter.end_bytes() == footer.index.offset_bytes
            && footer.index.end_bytes() == footer.properties.offset_bytes
            && footer.properties.end_bytes().checked_add(FOOTER_BYTES as u64) == Some(file_bytes);
        if !adjoining {
            return corrupt(FOOTER_BYTES, "footer and file length contradict each other");
        }
        Ok(footer)
    }

    /// Bytes at the end of a file of `file_bytes` that [`Footer::decode`] needs.
    pub(super) fn read_bytes(file_bytes: u64) -> u32 {
        file_bytes.min(FOOTER_BYTES_MAX as u64) as u32
    }
}
