//! An open table: point reads.
//!
//! Invariants:
//! 1. A block is used only after its checksum has been verified.
//! 2. A point read searches at most one data block, which the index determines even for a user key
//!    whose versions span blocks.
//! 3. Index and filter are pinned in the table while those of all tables fit the share of
//!    [`TableContext`]; otherwise each use goes through the block cache, and a filter that would
//!    take the room of indexes there is not used. Pinned memory is counted under
//!    [`Consumer::TableMetadata`] until the table is dropped.
//!
//! Threads: any number of readers; a [`Table`] is immutable.

use super::block::{Block, BlockCache, FoundEntry, HeldBlock};
use super::data_block::DataBlock;
use super::file_reader::{FileReader, decode_index};
use super::filter::Filter;
use super::footer::Footer;
use super::index::Index;
use super::point_read::{PointRead, PointResult};
use super::properties::TableProperties;
use super::spares::Spares;
use super::stats::TableStats;
use super::stored::{self, BlockSpan, Malformed, Parsed};
use crate::cache::{Admission, BlockKey, Shortcut, ShortcutOf};
use crate::format::{FileNum, InternalKeyRef, SeqNum};
use kvant_base::{Consumer, Error, MemoryBudget, Reservation, Result};
use kvant_env::{Clock, File, Fs};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What all tables of a database share.
pub(crate) struct TableContext {
    pub(crate) cache: Arc<BlockCache>,
    /// Memory of blocks that left `cache`.
    pub(super) spares: Arc<Spares>,
    pub(crate) memory: Arc<MemoryBudget>,
    /// Most bytes of pinned index and filter blocks, over all tables.
    pub(crate) metadata_share_bytes: u64,
    pub(crate) stats: Arc<TableStats>,
    /// Tables are read past the page cache of the system.
    pub(crate) direct_reads: bool,
    /// Times reads.
    clock: Arc<dyn Clock>,
}

pub(crate) struct Table {
    pub(super) file: Arc<dyn File>,
    pub(super) path: PathBuf,
    pub(super) file_num: FileNum,
    pub(super) file_bytes: u64,
    pub(super) footer: Footer,
    pub(super) context: Arc<TableContext>,
    properties: TableProperties,
    /// `None`: in the block cache.
    index: Option<PinnedIndex>,
    filter: FilterState,
    /// Memory of `properties` and of a pinned index and filter.
    _reservations: Vec<Reservation>,
}

struct PinnedIndex {
    index: Index,
    /// To the data blocks in the cache.
    shortcuts: Arc<[Shortcut<Block>]>,
}

enum FilterState {
    /// The table was built without a filter.
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
        let (stats, clock) = (&context.stats, &*context.clock);
        let reader = FileReader { file: &*file, path, stats, clock };
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
            let shortcuts: Arc<[_]> = (0..read.len()).map(|_| Shortcut::default()).collect();
            reserved.resize((read.heap_bytes() + size_of_val(&*shortcuts)) as u64);
            reservations.push(reserved);
            index = Some(PinnedIndex { index: read, shortcuts });
        }
        let filter = if footer.filter.stored_bytes == 0 {
            FilterState::Absent
        } else if let Some(mut reserved) =
            context.try_reserve(Filter::memory_bytes_max(footer.filter.stored_bytes))
        {
            let filter = reader.read_filter(&footer)?;
            reserved.resize(filter.memory_bytes() as u64);
            reservations.push(reserved);
            FilterState::Pinned(filter)
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

    /// Fetches what [`Table::get`] reads first.
    #[inline]
    pub(crate) fn prefetch(&self, hash: u64) {
        if let FilterState::Pinned(filter) = &self.filter {
            filter.prefetch(hash);
        }
    }

    /// The newest version of `user_key` with a sequence number up to `visible_at`. `hash` is
    /// [`crate::format::key_hash`] of the key.
    #[inline]
    pub(crate) fn get(
        &self,
        user_key: &[u8],
        hash: u64,
        visible_at: SeqNum,
        read: &mut PointRead,
    ) -> PointResult<Option<FoundEntry<'_>>> {
        if !self.may_contain(hash, read)? {
            return Ok(None);
        }
        read.trace.table_count += 1;
        let target = InternalKeyRef::seek(user_key, visible_at);
        let found = match &self.index {
            Some(pinned) => pinned.index.find_span(target),
            None => self.at(self.footer.index, self.index_block(read)?.index())?.find_span(target),
        };
        let Some((number, span)) = found else {
            return Ok(None);
        };
        let block = self.data_block(number, span, read)?;
        read.trace.block_count += 1;
        let found = self.at(span, block.data().and_then(|data| data.get(target, hash)))?;
        let Some(entry) = found else {
            return Ok(None);
        };
        let key = InternalKeyRef { user_key, trailer: entry.trailer };
        let kind = self.at(span, key.kind().ok_or(Malformed("entry has an unknown kind")))?;
        Ok(Some(FoundEntry { seq: key.seq(), kind, block, value: entry.value }))
    }

    #[inline]
    fn may_contain(&self, hash: u64, read: &mut PointRead) -> PointResult<bool> {
        let positive = match &self.filter {
            FilterState::Absent => return Ok(true),
            FilterState::Pinned(filter) => filter.may_contain(hash),
            FilterState::InCache => match self.filter_block(read)? {
                Some(block) => self.at(self.footer.filter, block.filter())?.may_contain(hash),
                None => return Ok(true),
            },
        };
        self.context.stats.count_probe(positive);
        Ok(positive)
    }

    /// The filter; `None` if it is not in the cache, where it would take the room of indexes.
    fn filter_block(&self, read: &mut PointRead) -> PointResult<Option<Arc<Block>>> {
        let span = self.footer.filter;
        let cached = self.context.cache.get(self.block_key(span));
        if cached.is_some() {
            return Ok(cached);
        }
        let bytes_max = Filter::memory_bytes_max(span.stored_bytes);
        if !self.context.cache.has_room_for_filter(bytes_max) {
            self.context.cache.take_back_miss(self.block_key(span));
            return Ok(None);
        }
        let decode = |payload: &[u8]| Ok(Block::Filter(Filter::decode(payload)?));
        self.read_metadata_block(span, read, decode).map(Some)
    }

    #[inline]
    pub(super) fn pinned_index(&self) -> Option<&Index> {
        self.index.as_ref().map(|pinned| &pinned.index)
    }

    pub(super) fn index_block(&self, read: &mut PointRead) -> PointResult<Arc<Block>> {
        let span = self.footer.index;
        let decode = |payload: &[u8]| {
            Ok(Block::Index(decode_index(payload, &self.footer, &self.properties)?))
        };
        let cached = self.context.cache.get(self.block_key(span));
        cached.map_or_else(|| self.read_metadata_block(span, read, decode), Ok)
    }

    /// Data block `number`, which is at `span`.
    #[inline]
    fn data_block(
        &self,
        number: usize,
        span: BlockSpan,
        read: &mut PointRead,
    ) -> PointResult<HeldBlock<'_>> {
        if let Some(pinned) = &self.index
            && let Some(block) = pinned.shortcuts[number].pin()
        {
            self.context.stats.count_shortcut();
            return Ok(HeldBlock::Pinned(block));
        }
        let cached = self.context.cache.get(self.block_key(span));
        cached.map_or_else(|| self.read_data_block(number, span, read), Ok).map(HeldBlock::Shared)
    }

    /// As [`Table::data_block`], from the cache alone, and to keep.
    pub(super) fn cached_data_block(&self, number: usize, span: BlockSpan) -> Option<Arc<Block>> {
        let pinned = self.index.as_ref().and_then(|pinned| pinned.shortcuts[number].pin());
        match pinned {
            Some(block) => {
                self.context.stats.count_shortcut();
                Some(block.to_arc())
            }
            None => self.context.cache.get(self.block_key(span)),
        }
    }

    #[cold]
    fn read_data_block(
        &self,
        number: usize,
        span: BlockSpan,
        read: &mut PointRead,
    ) -> PointResult<Arc<Block>> {
        let stored = self.read_missed(span, read)?;
        let spares = &self.context.spares;
        let data = stored::open_owned(stored, span.offset_bytes, spares).and_then(DataBlock::new);
        Ok(self.cache_data_block(number, span, self.at(span, data)?))
    }

    /// Adds data block `number` to the cache.
    pub(super) fn cache_data_block(
        &self,
        number: usize,
        span: BlockSpan,
        data: DataBlock,
    ) -> Arc<Block> {
        let shortcut = self.index.as_ref().map(|pinned| {
            pinned.shortcuts[number].begin_at(data.begin());
            ShortcutOf { all: Arc::clone(&pinned.shortcuts), index: number }
        });
        self.cache_block(span, Block::Data(data), Admission::Probation, shortcut)
    }

    /// Reads an index or filter block that the cache missed, and adds it.
    fn read_metadata_block(
        &self,
        span: BlockSpan,
        read: &mut PointRead,
        decode: impl FnOnce(&[u8]) -> Parsed<Block>,
    ) -> PointResult<Arc<Block>> {
        let stored = self.read_missed(span, read)?;
        let decoded = stored::open_uncompressed(&stored, span.offset_bytes).and_then(decode);
        Ok(self.cache_block(span, self.at(span, decoded)?, Admission::Main, None))
    }

    /// Reads a block that the cache missed. A read that stops here gives its miss back: the retry
    /// counts it.
    fn read_missed(&self, span: BlockSpan, read: &mut PointRead) -> PointResult<Vec<u8>> {
        let stored = read
            .fetch(self.reader(), span, &self.context.spares)
            .inspect_err(|_| self.context.cache.take_back_miss(self.block_key(span)))?;
        read.trace.count_read(span.stored_bytes);
        Ok(stored)
    }

    fn cache_block(
        &self,
        span: BlockSpan,
        block: Block,
        admission: Admission,
        shortcut: Option<ShortcutOf<Block>>,
    ) -> Arc<Block> {
        let (key, heap_bytes) = (self.block_key(span), block.heap_bytes());
        self.context.cache.insert(key, Arc::new(block), heap_bytes, admission, shortcut)
    }

    fn block_key(&self, span: BlockSpan) -> BlockKey {
        BlockKey { file_num: self.file_num, offset_bytes: span.offset_bytes }
    }

    pub(super) fn reader(&self) -> FileReader<'_> {
        let context = &self.context;
        FileReader {
            file: &*self.file,
            path: &self.path,
            stats: &context.stats,
            clock: &*context.clock,
        }
    }

    /// Adds file and offset to a decoding error.
    #[inline]
    pub(super) fn at<T>(&self, span: BlockSpan, result: Parsed<T>) -> Result<T> {
        result.map_err(|malformed| self.reader().corruption(span, malformed))
    }
}

impl TableContext {
    pub(crate) fn new(
        clock: &Arc<dyn Clock>,
        memory: &Arc<MemoryBudget>,
        metadata_share_bytes: u64,
        direct_reads: bool,
    ) -> Arc<TableContext> {
        let spares = Arc::<Spares>::default();
        let cache = BlockCache::new(Arc::clone(memory), {
            let spares = Arc::clone(&spares);
            move |block| {
                if let Block::Data(data) = block {
                    spares.keep(data.into_bytes());
                }
            }
        });
        Arc::new(TableContext {
            cache,
            spares,
            memory: Arc::clone(memory),
            metadata_share_bytes,
            stats: Arc::default(),
            direct_reads,
            clock: Arc::clone(clock),
        })
    }

    /// Opens the file of a table.
    pub(crate) fn open_file(&self, fs: &dyn Fs, path: &Path) -> io::Result<Arc<dyn File>> {
        if self.direct_reads { fs.open_direct(path) } else { fs.open(path) }
    }

    /// Reserves memory for an index or filter block, if the share allows.
    fn try_reserve(&self, bytes: u64) -> Option<Reservation> {
        self.memory.try_reserve(Consumer::TableMetadata, bytes, self.metadata_share_bytes)
    }
}
