//! Sequential reads of data blocks, with readahead.
//!
//! Without the cache, a block takes the memory of the block before it.
//!
//! Readahead starts small after a jump and doubles with each sequential read up to
//! [`AHEAD_BYTES_MAX`], so short ranges read little and long ones read in large pieces.

use super::block::Block;
use super::data_block::DataBlock;
use super::index::Index;
use super::point_read::ReadTrace;
use super::reader::Table;
use super::stored::{self, BlockSpan};
use crate::options::Compression;
use kvant_base::{Consumer, Reservation, Result};
use std::ops::Range;
use std::sync::Arc;

/// Largest read of several blocks. A larger block is read alone.
const AHEAD_BYTES_MAX: usize = 256 << 10;
/// First read after a jump when the cache is not filled.
const AHEAD_BYTES_FIRST: usize = 16 << 10;
/// Longest buffer that is kept for the next block.
const SPARE_BYTES_MAX: usize = 2 << 20;

pub(super) struct BlockReader {
    fill_cache: bool,
    /// Adjacent blocks as stored, read at once.
    chunk: Vec<u8>,
    chunk_offset_bytes: u64,
    /// Memory for the next block or chunk.
    spare: Vec<u8>,
    /// Most bytes of the next read, unless its block is longer.
    ahead_bytes: usize,
    block_next: usize,
    /// What was read since the owner last took this.
    pub(super) trace: ReadTrace,
    /// Memory of `chunk` and, without the cache, of the last block.
    memory: Reservation,
}

impl BlockReader {
    pub(super) fn new(table: &Table, fill_cache: bool, consumer: Consumer) -> BlockReader {
        BlockReader {
            fill_cache,
            chunk: Vec::new(),
            chunk_offset_bytes: 0,
            spare: Vec::new(),
            ahead_bytes: 0,
            block_next: usize::MAX,
            trace: ReadTrace::default(),
            memory: table.context.memory.reserve(consumer, 0),
        }
    }

    /// Reads data block `block` of `table`, whose index is `index`.
    pub(super) fn read(
        &mut self,
        table: &Table,
        index: &Index,
        block: usize,
    ) -> Result<Arc<Block>> {
        let span = index.span(block);
        self.trace.block_count += 1;
        let in_sequence = block == self.block_next;
        self.block_next = block + 1;
        if self.fill_cache
            && let Some(cached) = table.cached_data_block(block, span)
        {
            return Ok(cached);
        }
        if !self.chunk_covers(span) {
            self.ahead_bytes = match (in_sequence, self.fill_cache) {
                (true, _) => (self.ahead_bytes * 2).clamp(AHEAD_BYTES_FIRST / 2, AHEAD_BYTES_MAX),
                (false, true) => 0,
                (false, false) => AHEAD_BYTES_FIRST,
            };
            self.read_chunk(table, index, block)?;
        }
        self.trace.count_read(span.stored_bytes);
        let data = self.take_block(table, span)?;
        if self.fill_cache {
            self.memory.resize(self.chunk.capacity() as u64);
            return Ok(table.cache_data_block(block, span, data));
        }
        let buffer_bytes = self.chunk.capacity() + self.spare.capacity();
        self.memory.resize((buffer_bytes + data.heap_bytes()) as u64);
        Ok(Arc::new(Block::Data(data)))
    }

    /// The block at `span` as stored, if the cache is not used and the last read left it.
    pub(super) fn stored(&self, span: BlockSpan) -> Option<(&[u8], Compression)> {
        let is_left = !self.fill_cache && self.chunk_covers(span);
        is_left.then(|| stored::split(&self.chunk[self.place(span)])).flatten()
    }

    /// Takes a block that its owner needs no more.
    pub(super) fn take_back(&mut self, block: Arc<Block>) {
        if !self.fill_cache
            && let Some(Block::Data(data)) = Arc::into_inner(block)
            && data.heap_bytes() <= SPARE_BYTES_MAX
        {
            self.spare = data.into_bytes().into_vec();
        }
    }

    /// Gives its memory to the next one.
    pub(super) fn end(&mut self, table: &Table) {
        for buffer in [std::mem::take(&mut self.chunk), std::mem::take(&mut self.spare)] {
            table.context.spares.keep_from_stored(buffer);
        }
    }

    fn chunk_covers(&self, span: BlockSpan) -> bool {
        let end_bytes = self.chunk_offset_bytes + self.chunk.len() as u64;
        self.chunk_offset_bytes <= span.offset_bytes && span.end_bytes() <= end_bytes
    }

    /// Reads `block` and the following blocks that fit into `ahead_bytes`.
    fn read_chunk(&mut self, table: &Table, index: &Index, block: usize) -> Result<()> {
        let start_bytes = index.span(block).offset_bytes;
        let mut end_bytes = index.span(block).end_bytes();
        for next in block + 1..index.len() {
            let next_end_bytes = index.span(next).end_bytes();
            if next_end_bytes - start_bytes > self.ahead_bytes as u64 {
                break;
            }
            end_bytes = next_end_bytes;
        }
        // Empty until the read has succeeded: after an error no block may come from the old chunk.
        let len = (end_bytes - start_bytes) as usize;
        let mut chunk = std::mem::take(&mut self.chunk);
        if !(1..=SPARE_BYTES_MAX).contains(&chunk.capacity()) {
            chunk = std::mem::take(&mut self.spare);
        }
        if chunk.capacity() < len {
            let spares = &table.context.spares;
            spares.keep_from_stored(chunk);
            chunk = spares.take_for_stored(len);
        }
        stored::set_len(&mut chunk, len);
        self.trace.block_read_ns += table.reader().read_into_timed(&mut chunk, start_bytes)?;
        self.chunk = chunk;
        self.chunk_offset_bytes = start_bytes;
        Ok(())
    }

    /// Decodes the block at `span`, which the chunk covers.
    fn take_block(&mut self, table: &Table, span: BlockSpan) -> Result<DataBlock> {
        let stored = &self.chunk[self.place(span)];
        let is_whole = stored.len() == self.chunk.len();
        let spares = &table.context.spares;
        let raw = if is_whole
            && (self.fill_cache
                || stored::split(stored).is_some_and(|(_, how)| how == Compression::None))
        {
            // A single block, as large ones are: use the chunk without copying.
            let chunk = std::mem::take(&mut self.chunk);
            stored::open_owned(chunk, span.offset_bytes, spares)
        } else if self.fill_cache {
            stored::open_into(stored, span.offset_bytes, |len| spares.take(len))
        } else {
            let memory = std::mem::take(&mut self.spare);
            stored::open_into(stored, span.offset_bytes, |_len| memory.into())
        };
        table.at(span, raw.and_then(DataBlock::new))
    }

    /// Where the chunk has the block at `span`, which it covers.
    fn place(&self, span: BlockSpan) -> Range<usize> {
        let start = (span.offset_bytes - self.chunk_offset_bytes) as usize;
        start..start + span.stored_bytes as usize
    }
}
