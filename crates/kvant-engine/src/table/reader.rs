//! An open table: point reads.
//!
//! Invariants:
//! 1. Every block read from the file has passed its checksum before any of it is used.
//! 2. A point read looks at one data block at most: the index says which, also for a user key whose
//!    versions span blocks.
//! 3. Index and filter stay in the table while all tables' stay within the share of
//!    [`TableContext`]; otherwise they go through the block cache on each use. What a table holds
//!    is counted under [`Consumer::TableMetadata`] until it is dropped.
//!
//! Threads: any number of readers; nothing here changes after [`Table::open`].

use super::BlockCache;
use super::block::{Block, FoundEntry};
use super::data_block::DataBlock;
use super::filter::Filter;
use super::footer::Footer;
use super::index::Index;
use super::point_read::{PointRead, ReadResult};
use super::properties::TableProperties;
use super::stats::TableStats;
use super::stored::{self, BlockSpan, Malformed, Parsed};
use crate::cache::{Admission, BlockKey};
use crate::format::{FileNum, InternalKeyRef, SeqNum};
use kvant_base::{Consumer, Error, MemoryBudget, Reservation, Result};
use kvant_env::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What all tables of a database share.
pub(crate) struct TableContext {
    pub(crate) cache: Arc<BlockCache>,
    pub(crate) memory: Arc<MemoryBudget>,
    /// What index and filter blocks held by tables may take, all tables together.
    pub(crate) metadata_share_bytes: u64,
    pub(crate) stats: Arc<TableStats>,
}

/// An open table.
pub(crate) struct Table {
    pub(super) file: Arc<dyn File>,
    pub(super) path: PathBuf,
    pub(super) file_num: FileNum,
    pub(super) file_bytes: u64,
    pub(super) footer: Footer,
    pub(super) context: Arc<TableContext>,
    properties: TableProperties,
    index: Option<Index>,
    filter: FilterState,
    /// Counts `properties`, and `index` and `filter` where they are here.
    _reservations: Vec<Reservation>,
}

enum FilterState {
    /// The table was built without.
    Absent,
    Pinned(Filter),
    InCache,
}

impl Table {
    /// Opens a table of `file_bytes`. `path` is for error messages.
    pub(crate) fn open(
        file: Arc<dyn File>,
        path: &Path,
        file_num: FileNum,
        file_bytes: u64,
        context: Arc<TableContext>,
    ) -> Result<Arc<Table>> {
        let len_bytes = file.len_bytes().map_err(|e| Error::io("read the length of", path, e))?;
        if len_bytes != file_bytes {
            let message = format!("table has {len_bytes} bytes where {file_bytes} are expected");
            return Err(Error::corruption(path, len_bytes.min(file_bytes), message));
        }
        let reader = FileReader { file: &*file, path, stats: &context.stats };
        let footer = reader.read_footer(file_bytes)?;
        let properties = reader.read_properties(&footer)?;
        let fixed_bytes = size_of::<Table>() + properties.heap_bytes();
        let mut reservations =
            vec![context.memory.reserve(Consumer::TableMetadata, fixed_bytes as u64)];

        let index_bytes_max =
            Index::heap_bytes_max(properties.data_block_count, properties.index_key_bytes);
        let mut index = None;
        if let Some(mut reserved) = context.try_reserve(index_bytes_max) {
            let read = reader.read_index(&footer, &properties)?;
            reserved.resize(read.heap_bytes() as u64);
            reservations.push(reserved);
            index = Some(read);
        }
        let filter = if footer.filter.stored_bytes == 0 {
            FilterState::Absent
        } else if let Some(reserved) = context.try_reserve(u64::from(footer.filter.stored_bytes)) {
            reservations.push(reserved);
            FilterState::Pinned(reader.read_filter(&footer)?)
        } else {
            FilterState::InCache
        };
        Ok(Arc::new(Table {
            path: path.to_path_buf(),
            file_num,
            file_bytes,
            footer,
            properties,
            index,
            filter,
            _reservations: reservations,
            context,
            file,
        }))
    }

    pub(crate) fn properties(&self) -> &TableProperties {
        &self.properties
    }

    pub(crate) fn file_bytes(&self) -> u64 {
        self.file_bytes
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The newest version of `user_key` with a sequence number up to `visible_at`. `hash` is
    /// [`crate::format::key_hash`] of the key.
    pub(crate) fn get<R: PointRead>(
        &self,
        user_key: &[u8],
        hash: u64,
        visible_at: SeqNum,
        read: &mut R,
    ) -> ReadResult<Option<FoundEntry>, R> {
        if !self.may_contain(hash, read)? {
            return Ok(None);
        }
        read.trace().table_count += 1;
        let target = InternalKeyRef::seek(user_key, visible_at);
        let span = match &self.index {
            Some(index) => index.find_span(target),
            None => self.at(self.footer.index, self.index_block(read)?.index())?.find_span(target),
        };
        let Some(span) = span else {
            return Ok(None);
        };
        let block = self.data_block(span, read)?;
        read.trace().block_count += 1;
        let found = self.at(span, block.data().and_then(|data| data.get(target, hash)))?;
        let Some(entry) = found else {
            return Ok(None);
        };
        let key = InternalKeyRef { user_key, trailer: entry.trailer };
        let kind = self.at(span, key.kind().ok_or(Malformed("entry has an unknown kind")))?;
        Ok(Some(FoundEntry::new(key.seq(), kind, block, entry.value)))
    }

    #[inline]
    fn may_contain<R: PointRead>(&self, hash: u64, read: &mut R) -> ReadResult<bool, R> {
        let positive = match &self.filter {
            FilterState::Absent => return Ok(true),
            FilterState::Pinned(filter) => filter.may_contain(hash),
            FilterState::InCache => {
                let block = self.metadata_block(self.footer.filter, read, |payload| {
                    Ok(Block::Filter(Filter::decode(payload)?))
                })?;
                self.at(self.footer.filter, block.filter())?.may_contain(hash)
            }
        };
        self.context.stats.count_probe(positive);
        Ok(positive)
    }

    /// The index, if the table holds it.
    #[inline]
    pub(super) fn pinned_index(&self) -> Option<&Index> {
        self.index.as_ref()
    }

    /// The index through the cache.
    pub(super) fn index_block<R: PointRead>(&self, read: &mut R) -> ReadResult<Arc<Block>, R> {
        self.metadata_block(self.footer.index, read, |payload| {
            Ok(Block::Index(decode_index(payload, &self.footer, &self.properties)?))
        })
    }

    #[inline]
    fn data_block<R: PointRead>(&self, span: BlockSpan, read: &mut R) -> ReadResult<Arc<Block>, R> {
        match self.context.cache.get(self.block_key(span)) {
            Some(block) => Ok(block),
            None => self.read_data_block(span, read),
        }
    }

    #[cold]
    fn read_data_block<R: PointRead>(
        &self,
        span: BlockSpan,
        read: &mut R,
    ) -> ReadResult<Arc<Block>, R> {
        let stored = read.read_stored(self, span)?;
        let data = stored::open_owned(stored, span.offset_bytes).and_then(DataBlock::new);
        let block = Arc::new(Block::Data(self.at(span, data)?));
        let heap_bytes = block.heap_bytes();
        Ok(self.context.cache.insert(self.block_key(span), block, heap_bytes, Admission::Probation))
    }

    /// A block that is not a data block.
    fn metadata_block<R: PointRead>(
        &self,
        span: BlockSpan,
        read: &mut R,
        decode: impl FnOnce(&[u8]) -> Parsed<Block>,
    ) -> ReadResult<Arc<Block>, R> {
        let key = self.block_key(span);
        if let Some(block) = self.context.cache.get(key) {
            return Ok(block);
        }
        let stored = read.read_stored(self, span)?;
        let decoded = stored::open_uncompressed(&stored, span.offset_bytes).and_then(decode);
        let block = Arc::new(self.at(span, decoded)?);
        let heap_bytes = block.heap_bytes();
        Ok(self.context.cache.insert(key, block, heap_bytes, Admission::Main))
    }

    pub(super) fn block_key(&self, span: BlockSpan) -> BlockKey {
        BlockKey { file_num: self.file_num, offset_bytes: span.offset_bytes }
    }

    pub(super) fn reader(&self) -> FileReader<'_> {
        FileReader { file: &*self.file, path: &self.path, stats: &self.context.stats }
    }

    /// Names the file and the block where `result` says that something is wrong.
    #[inline]
    pub(super) fn at<T>(&self, span: BlockSpan, result: Parsed<T>) -> Result<T> {
        result.map_err(|malformed| self.corruption(span, malformed))
    }

    pub(super) fn corruption(&self, span: BlockSpan, malformed: Malformed) -> Error {
        corruption(&self.path, span, malformed)
    }
}

impl TableContext {
    /// Room for index and filter blocks, if the share has it.
    fn try_reserve(&self, bytes: u64) -> Option<Reservation> {
        self.memory.try_reserve(Consumer::TableMetadata, bytes, self.metadata_share_bytes)
    }
}

#[cold]
fn corruption(path: &Path, span: BlockSpan, malformed: Malformed) -> Error {
    Error::corruption(path, span.offset_bytes, malformed.0)
}

fn decode_index(payload: &[u8], footer: &Footer, properties: &TableProperties) -> Parsed<Index> {
    let index = Index::decode(payload, footer.filter.offset_bytes)?;
    let agrees = index.len() as u64 == properties.data_block_count
        && index.key_bytes() == properties.index_key_bytes
        && index.ends_with(&properties.largest.user_key);
    if agrees { Ok(index) } else { Err(Malformed("index and properties contradict each other")) }
}

/// Reads from the file of a table and counts it.
#[derive(Clone, Copy)]
pub(super) struct FileReader<'a> {
    file: &'a dyn File,
    path: &'a Path,
    stats: &'a TableStats,
}

impl FileReader<'_> {
    pub(super) fn read(&self, offset_bytes: u64, bytes: usize) -> Result<Vec<u8>> {
        let mut buffer = vec![0; bytes];
        self.read_into(&mut buffer, offset_bytes)?;
        Ok(buffer)
    }

    pub(super) fn read_into(&self, buffer: &mut [u8], offset_bytes: u64) -> Result<()> {
        self.file.read_exact_at(buffer, offset_bytes).map_err(|e| self.error(e, offset_bytes))?;
        self.stats.count_disk_read(buffer.len());
        Ok(())
    }

    /// As [`FileReader::read`]; `None` when that would have to wait.
    pub(super) fn try_read(&self, offset_bytes: u64, bytes: usize) -> Result<Option<Vec<u8>>> {
        let mut buffer = vec![0; bytes];
        let filled = self
            .file
            .try_read_exact_at(&mut buffer, offset_bytes)
            .map_err(|e| self.error(e, offset_bytes))?;
        if filled {
            self.stats.count_disk_read(bytes);
        }
        Ok(filled.then_some(buffer))
    }

    #[cold]
    fn error(&self, error: io::Error, offset_bytes: u64) -> Error {
        match error.kind() {
            io::ErrorKind::UnexpectedEof => Error::corruption(
                self.path,
                offset_bytes,
                "file ends before the block that is expected",
            ),
            _ => Error::io("read", self.path, error).with_offset(offset_bytes),
        }
    }

    pub(super) fn read_footer(&self, file_bytes: u64) -> Result<Footer> {
        let bytes = Footer::read_bytes(file_bytes);
        let file_end = self.read(file_bytes - bytes as u64, bytes)?;
        Footer::decode(&file_end, self.path, file_bytes)
    }

    pub(super) fn read_properties(&self, footer: &Footer) -> Result<TableProperties> {
        self.read_block(footer.properties, |payload| {
            TableProperties::decode(payload, footer.version)
        })
    }

    pub(super) fn read_index(
        &self,
        footer: &Footer,
        properties: &TableProperties,
    ) -> Result<Index> {
        self.read_block(footer.index, |payload| decode_index(payload, footer, properties))
    }

    pub(super) fn read_filter(&self, footer: &Footer) -> Result<Filter> {
        self.read_block(footer.filter, Filter::decode)
    }

    /// Reads a block that is not a data block.
    fn read_block<T>(&self, span: BlockSpan, decode: impl FnOnce(&[u8]) -> Parsed<T>) -> Result<T> {
        let stored = self.read(span.offset_bytes, span.stored_bytes as usize)?;
        stored::open_uncompressed(&stored, span.offset_bytes)
            .and_then(decode)
            .map_err(|malformed| corruption(self.path, span, malformed))
    }
}
