//! Writes a table.
//!
//! Invariants:
//! 1. Entries are added in strictly ascending internal-key order. This is asserted, because reads
//!    of an unordered table return wrong results. Entries of other tables are checked before
//!    (`checks`): no contents of a file reach the assertion.
//! 2. The file is written sequentially, in large pieces.
//!
//! Threads: one thread builds a table.

use super::data_block::DataBlockBuilder;
use super::filter::Filter;
use super::footer::{FOOTER_BYTES, FORMAT_VERSION, Footer};
use super::index::{IndexBuilder, shortest_separator};
use super::properties::TableProperties;
use super::stored::{self, BLOCK_TRAILER_BYTES, BlockCompressor, BlockSpan, Malformed};
use crate::cursor::StoredBlock;
use crate::format::{FileKind, FileNum, InternalKey, InternalKeyRef, file_path, key_hash};
use crate::options::Compression;
use kvant_base::{Error, Result};
use kvant_env::{File, Fs};
use std::path::{Path, PathBuf};
use std::sync::Arc;

const WRITE_BYTES: usize = 512 << 10;
/// The device gets pieces of this length: the sync of the whole table would wait for all of it, and
/// writers with it.
const WRITE_BACK_BYTES: u64 = 4 << 20;
/// Largest block buffer kept after a large block.
const BLOCK_BUFFER_KEEP_BYTES: usize = 2 << 20;
const CREATED_BY: &str = concat!("kvant ", env!("CARGO_PKG_VERSION"));

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct TableOptions {
    /// Size at which a data block is closed, before compression.
    pub(crate) block_bytes: usize,
    pub(crate) compression: Compression,
    /// Bits of the filter per user key, see [`super::bits_per_key_for`]; 0: no filter.
    pub(crate) filter_bits_per_key: f64,
}

/// A table that has been written but not synced.
pub(crate) struct FinishedTable {
    pub(crate) num: FileNum,
    pub(crate) path: PathBuf,
    pub(crate) file: Arc<dyn File>,
    pub(crate) properties: TableProperties,
    pub(crate) file_bytes: u64,
}

/// Builds a table in a new file.
pub(crate) struct TableBuilder {
    num: FileNum,
    out: Output,
    options: TableOptions,
    compressor: BlockCompressor,
    block: DataBlockBuilder,
    /// The last entry added, in the current block or the one before.
    last: InternalKey,
    last_hash: u64,
    /// Stored bytes of the last closed block, whose index entry depends on the next key.
    unindexed_block: Option<u32>,
    index: IndexBuilder,
    separator: Vec<u8>,
    /// One hash per distinct user key.
    hashes: Vec<u64>,
    pub(super) properties: TableProperties,
}

/// A file with a write buffer.
struct Output {
    file: Arc<dyn File>,
    path: PathBuf,
    buffer: Vec<u8>,
    written_bytes: u64,
    /// The first of them are on their way to the device.
    sent_bytes: u64,
}

impl TableBuilder {
    /// Starts table `num` in a new file of `dir`.
    pub(crate) fn create(
        fs: &dyn Fs,
        dir: &Path,
        num: FileNum,
        options: TableOptions,
    ) -> Result<TableBuilder> {
        let path = file_path(dir, FileKind::Table, num);
        let file = fs.create(&path).map_err(|source| Error::io("create", &path, source))?;
        Ok(TableBuilder {
            num,
            out: Output { file, path, buffer: Vec::new(), written_bytes: 0, sent_bytes: 0 },
            options,
            compressor: BlockCompressor::new(options.compression),
            block: DataBlockBuilder::default(),
            last: InternalKey::default(),
            last_hash: 0,
            unindexed_block: None,
            index: IndexBuilder::default(),
            separator: Vec::new(),
            hashes: Vec::new(),
            properties: TableProperties::new(options.compression, CREATED_BY, Some(num)),
        })
    }

    /// Adds an entry, which must be after all entries before. `own_block` is a block of another
    /// table that holds only this entry: if this table would have the same, it is copied instead of
    /// compressed anew.
    pub(crate) fn add(
        &mut self,
        key: InternalKeyRef<'_>,
        value: &[u8],
        own_block: Option<StoredBlock<'_>>,
    ) -> Result<()> {
        let first = self.properties.entry_count == 0;
        assert!(first || self.last.as_ref() < key, "entries are added to a table in order");
        let distinct = first || self.last.user_key != key.user_key;
        self.properties
            .count(key, value, distinct)
            .map_err(|Malformed(what)| Error::invalid(what).with_file(&self.out.path))?;

        let entry_bytes = DataBlockBuilder::entry_bytes_max(key, value);
        if !self.block.is_empty() && self.closes_before(entry_bytes) {
            self.close_block()?;
        }
        if let Some(block_bytes) = self.unindexed_block.take() {
            self.index_block_before(key, block_bytes);
        }
        if distinct {
            self.last_hash = key_hash(key.user_key);
            if self.options.filter_bits_per_key > 0.0 {
                self.hashes.push(self.last_hash);
            }
        }
        let same_block = own_block.filter(|block| self.would_write(block));
        if let Some(StoredBlock { payload, compression, raw_bytes }) = same_block {
            self.last.assign(key);
            let span = self.out.append_block(payload, compression)?;
            self.note_block(raw_bytes, span);
            return Ok(());
        }
        self.block.add(key, value, &self.last.user_key, self.last_hash);
        self.last.assign(key);
        if self.block.payload_bytes() >= self.options.block_bytes {
            self.close_block()?;
        }
        Ok(())
    }

    /// Whether the next block would be `block`, if it holds only the next entry. An uncompressed
    /// one is compressed if that is worth it now.
    fn would_write(&self, block: &StoredBlock<'_>) -> bool {
        self.block.is_empty()
            && block.raw_bytes >= self.options.block_bytes
            && block.compression != Compression::None
            && block.compression == self.options.compression
    }

    /// Whether an entry of `entry_bytes` starts a new block: if it is large, or would overfill a
    /// block that is at least half full.
    fn closes_before(&self, entry_bytes: usize) -> bool {
        let (block_bytes, target_bytes) = (self.block.payload_bytes(), self.options.block_bytes);
        entry_bytes >= target_bytes
            || (block_bytes >= target_bytes / 2 && block_bytes + entry_bytes > target_bytes)
    }

    /// Estimated length of the file if it were finished now.
    pub(crate) fn estimated_bytes(&self) -> u64 {
        let filter_bytes = self.hashes.len() as f64 * self.options.filter_bits_per_key / 8.0;
        self.out.end_bytes()
            + (self.block.payload_bytes() + self.index.payload_bytes() + FOOTER_BYTES) as u64
            + filter_bytes as u64
    }

    /// Memory of the buffers, the index and the filter hashes.
    pub(crate) fn memory_bytes(&self) -> u64 {
        let bytes = self.out.buffer.capacity()
            + self.compressor.memory_bytes()
            + self.block.memory_bytes()
            + self.index.memory_bytes()
            + self.hashes.capacity() * 8;
        bytes as u64
    }

    /// Completes the table, which must have entries. The caller syncs the file and its directory.
    pub(crate) fn finish(mut self) -> Result<FinishedTable> {
        assert!(self.properties.entry_count > 0, "a table has at least one entry");
        if !self.block.is_empty() {
            self.close_block()?;
        }
        if let Some(block_bytes) = self.unindexed_block.take() {
            self.index.add(&self.last.user_key, None, block_bytes);
        }
        self.properties.data_block_count = u64::from(self.index.len());
        self.properties.index_key_bytes = self.index.key_bytes();
        self.properties.largest = self.last;

        let mut filter = BlockSpan { offset_bytes: self.out.end_bytes(), stored_bytes: 0 };
        if !self.hashes.is_empty() {
            let payload = Filter::build(&self.hashes, self.options.filter_bits_per_key).encode();
            filter = self.out.append_block(&payload, Compression::None)?;
        }
        let index = self.out.append_block(&self.index.finish(), Compression::None)?;
        let properties = self.out.append_block(&self.properties.encode(), Compression::None)?;
        self.out.append(&Footer { version: FORMAT_VERSION, filter, index, properties }.encode())?;
        self.out.flush()?;
        let Output { file, path, written_bytes, .. } = self.out;
        let (num, properties) = (self.num, self.properties);
        Ok(FinishedTable { num, path, file, properties, file_bytes: written_bytes })
    }

    fn close_block(&mut self) -> Result<()> {
        let raw = self.block.finish();
        let raw_bytes = raw.len();
        let (payload, compression) = self.compressor.compress(raw)?;
        let span = self.out.append_block(payload, compression)?;
        self.block.clear(BLOCK_BUFFER_KEEP_BYTES);
        self.compressor.release_above(BLOCK_BUFFER_KEEP_BYTES);
        self.note_block(raw_bytes, span);
        Ok(())
    }

    fn note_block(&mut self, raw_bytes: usize, span: BlockSpan) {
        debug_assert!(self.unindexed_block.is_none());
        self.properties.raw_data_bytes += raw_bytes as u64;
        self.unindexed_block = Some(span.stored_bytes);
    }

    /// Adds the index entry of the closed block of `block_bytes`, which ends with `last`; `next`
    /// starts the following block.
    fn index_block_before(&mut self, next: InternalKeyRef<'_>, block_bytes: u32) {
        if self.last.user_key == next.user_key {
            self.index.add(&self.last.user_key, Some(self.last.trailer), block_bytes);
        } else {
            shortest_separator(&self.last.user_key, next.user_key, &mut self.separator);
            self.index.add(&self.separator, None, block_bytes);
        }
    }
}

impl Output {
    fn end_bytes(&self) -> u64 {
        self.written_bytes + self.buffer.len() as u64
    }

    fn append_block(&mut self, payload: &[u8], compression: Compression) -> Result<BlockSpan> {
        let offset_bytes = self.end_bytes();
        let stored_bytes = u32::try_from(payload.len() + BLOCK_TRAILER_BYTES).map_err(|_| {
            Error::invalid("a block of the table would exceed 4 GiB").with_file(&self.path)
        })?;
        self.append(payload)?;
        self.append(&stored::trailer(payload, compression, offset_bytes))?;
        Ok(BlockSpan { offset_bytes, stored_bytes })
    }

    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        if self.buffer.len() + bytes.len() > WRITE_BYTES {
            self.flush()?;
        }
        if bytes.len() >= WRITE_BYTES {
            return self.write(bytes);
        }
        if self.buffer.capacity() == 0 {
            self.buffer.reserve_exact(WRITE_BYTES);
        }
        self.buffer.extend_from_slice(bytes);
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        let buffer = std::mem::take(&mut self.buffer);
        self.write(&buffer)?;
        self.buffer = buffer;
        self.buffer.clear();
        Ok(())
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.file
            .write_all_at(bytes, self.written_bytes)
            .map_err(|e| Error::io("write", &self.path, e))?;
        self.written_bytes += bytes.len() as u64;
        let unsent_bytes = self.written_bytes - self.sent_bytes;
        if unsent_bytes >= WRITE_BACK_BYTES {
            self.file
                .begin_write_back(self.sent_bytes, unsent_bytes)
                .map_err(|e| Error::io("write back", &self.path, e))?;
            self.sent_bytes = self.written_bytes;
        }
        Ok(())
    }
}
