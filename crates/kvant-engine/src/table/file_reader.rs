//! Reads from the file of a table, and counts the reads.

use super::filter::Filter;
use super::footer::Footer;
use super::index::Index;
use super::properties::TableProperties;
use super::stats::TableStats;
use super::stored::{self, BlockSpan, Malformed, Parsed};
use kvant_base::{Error, Result};
use kvant_env::fs::read_error;
use kvant_env::{Clock, File};
use std::io;
use std::path::Path;

/// The file of a table, with what its errors and statistics need.
#[derive(Clone, Copy)]
pub(crate) struct FileReader<'a> {
    pub(super) file: &'a dyn File,
    pub(super) path: &'a Path,
    pub(super) stats: &'a TableStats,
    pub(super) clock: &'a dyn Clock,
}

impl FileReader<'_> {
    /// Reads what is at `span` into the memory of `buffer`, whose contents are lost.
    pub(super) fn read(&self, span: BlockSpan, mut buffer: Vec<u8>) -> Result<Vec<u8>> {
        stored::set_len(&mut buffer, span.stored_bytes as usize);
        self.read_into(&mut buffer, span.offset_bytes)?;
        Ok(buffer)
    }

    fn read_into(&self, buffer: &mut [u8], offset_bytes: u64) -> Result<()> {
        self.file.read_exact_at(buffer, offset_bytes).map_err(|e| self.error(e, offset_bytes))?;
        self.stats.count_disk_read(buffer.len());
        Ok(())
    }

    /// As [`FileReader::read`], with the nanoseconds that it took.
    pub(super) fn read_timed(&self, span: BlockSpan, buffer: Vec<u8>) -> Result<(Vec<u8>, u64)> {
        let start_ns = self.clock.monotonic_ns();
        let stored = self.read(span, buffer)?;
        Ok((stored, self.clock.monotonic_ns() - start_ns))
    }

    /// Fills `buffer` from `offset_bytes` on. Returns how many nanoseconds it took.
    pub(super) fn read_into_timed(&self, buffer: &mut [u8], offset_bytes: u64) -> Result<u64> {
        let start_ns = self.clock.monotonic_ns();
        self.read_into(buffer, offset_bytes)?;
        Ok(self.clock.monotonic_ns() - start_ns)
    }

    /// As [`FileReader::read`]; `None` if the read would block.
    pub(super) fn try_read(&self, span: BlockSpan, mut buffer: Vec<u8>) -> Result<Option<Vec<u8>>> {
        stored::set_len(&mut buffer, span.stored_bytes as usize);
        let filled = self.file.try_read_exact_at(&mut buffer, span.offset_bytes);
        if !filled.map_err(|e| self.error(e, span.offset_bytes))? {
            return Ok(None);
        }
        self.stats.count_disk_read(buffer.len());
        Ok(Some(buffer))
    }

    #[cold]
    fn error(&self, error: io::Error, offset_bytes: u64) -> Error {
        if error.kind() == io::ErrorKind::UnexpectedEof {
            let message = "the file ends before the end of a block";
            return Error::corruption(self.path, offset_bytes, message);
        }
        read_error(error, self.path, offset_bytes)
    }

    #[cold]
    pub(super) fn corruption(&self, span: BlockSpan, malformed: Malformed) -> Error {
        Error::corruption(self.path, span.offset_bytes, malformed.0)
    }

    pub(super) fn read_footer(&self, file_bytes: u64) -> Result<Footer> {
        let stored_bytes = Footer::read_bytes(file_bytes);
        let offset_bytes = file_bytes - u64::from(stored_bytes);
        let file_end = self.read(BlockSpan { offset_bytes, stored_bytes }, Vec::new())?;
        Footer::decode(&file_end, self.path, file_bytes)
    }

    pub(super) fn read_properties(&self, footer: &Footer) -> Result<TableProperties> {
        self.read_metadata(footer.properties, |payload| {
            TableProperties::decode(payload, footer.version)
        })
    }

    pub(super) fn read_index(
        &self,
        footer: &Footer,
        properties: &TableProperties,
    ) -> Result<Index> {
        self.read_metadata(footer.index, |payload| decode_index(payload, footer, properties))
    }

    pub(super) fn read_filter(&self, footer: &Footer) -> Result<Filter> {
        self.read_metadata(footer.filter, Filter::decode)
    }

    fn read_metadata<T>(
        &self,
        span: BlockSpan,
        decode: impl FnOnce(&[u8]) -> Parsed<T>,
    ) -> Result<T> {
        let stored = self.read(span, Vec::new())?;
        stored::open_uncompressed(&stored, span.offset_bytes)
            .and_then(decode)
            .map_err(|malformed| self.corruption(span, malformed))
    }
}

/// Decodes the index and compares it with the properties.
pub(super) fn decode_index(
    payload: &[u8],
    footer: &Footer,
    properties: &TableProperties,
) -> Parsed<Index> {
    let index = Index::decode(payload, footer.filter.offset_bytes)?;
    let agrees = index.len() as u64 == properties.data_block_count
        && index.key_bytes() == properties.index_key_bytes
        && index.ends_with(&properties.largest.user_key);
    if agrees { Ok(index) } else { Err(Malformed("index and properties contradict each other")) }
}
