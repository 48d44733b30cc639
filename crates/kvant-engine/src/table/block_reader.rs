//! Reads data blocks in sequence, several at once.
//!
//! The first read after a jump is small, and each read that follows on the one before doubles, up
//! to [`AHEAD_BYTES_MAX`]: a short range costs little, a long one or a compaction reads in large
//! pieces.

use super::block::Block;
use super::data_block::DataBlock;
use super::index::Index;
use super::point_read::ReadTrace;
use super::reader::Table;
use super::stored::{self, BlockSpan, Payload};
use crate::cache::Admission;
use kvant_base::{Consumer, Reservation, Result};
use std::sync::Arc;

/// The largest read of several blocks; a larger single block is read alone.
const AHEAD_BYTES_MAX: usize = 256 << 10;
/// The first read after a jump when blocks do not stay in the cache.
const AHEAD_BYTES_FIRST: usize = 16 << 10;

/// Reads data blocks of one table in sequence.
pub(super) struct BlockReader {
    fill_cache: bool,
    /// Adjoining blocks as stored, read at once.
    chunk: Vec<u8>,
    chunk_offset_bytes: u64,
    /// What the next read may take beyond the block that it is for.
    ahead_bytes: usize,
    /// The block that would continue the sequence.
    block_next: usize,
    /// What has been read since somebody took this.
    pub(super) touched: ReadTrace,
    /// Counts `chunk` and, where the cache does not, the block handed out last.
    memory: Reservation,
}

impl BlockReader {
    pub(super) fn new(table: &Table, fill_cache: bool, consumer: Consumer) -> BlockReader {
        BlockReader {
            fill_cache,
            chunk: Vec::new(),
            chunk_offset_bytes: 0,
            ahead_bytes: 0,
            block_next: usize::MAX,
            touched: ReadTrace::default(),
            memory: table.context.memory.reserve(consumer, 0),
        }
    }

    /// Data block `block` of `table`, whose index is `index`.
    pub(super) fn read(
        &mut self,
        table: &Table,
        index: &Index,
        block: usize,
    ) -> Result<Arc<Block>> {
        let span = index.span(block);
        self.touched.block_count += 1;
        let in_sequence = block == self.block_next;
        self.block_next = block + 1;
        let key = table.block_key(span);
        if self.fill_cache
            && let Some(cached) = table.context.cache.get(key)
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
        self.touched.count_read(span.stored_bytes);
        let decoded = Arc::new(Block::Data(self.take_block(table, span)?));
        let heap_bytes = decoded.heap_bytes();
        if self.fill_cache {
            self.memory.resize(self.chunk.capacity() as u64);
            return Ok(table.context.cache.insert(key, decoded, heap_bytes, Admission::Probation));
        }
        self.memory.resize((self.chunk.capacity() + heap_bytes) as u64);
        Ok(decoded)
    }

    fn chunk_covers(&self, span: BlockSpan) -> bool {
        let end_bytes = self.chunk_offset_bytes + self.chunk.len() as u64;
        self.chunk_offset_bytes <= span.offset_bytes && span.end_bytes() <= end_bytes
    }

    /// Reads `block` and those after it that fit into `ahead_bytes`.
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
        // Empty until the read has succeeded, so that no later call takes an older chunk for what
        // it asked for.
        let mut chunk = std::mem::take(&mut self.chunk);
        let chunk_bytes = (end_bytes - start_bytes) as usize;
        chunk.clear();
        chunk.reserve_exact(chunk_bytes);
        chunk.resize(chunk_bytes, 0);
        table.reader().read_into(&mut chunk, start_bytes)?;
        self.chunk = chunk;
        self.chunk_offset_bytes = start_bytes;
        Ok(())
    }

    /// Decodes the block at `span`, which the chunk covers.
    fn take_block(&mut self, table: &Table, span: BlockSpan) -> Result<DataBlock> {
        let raw = if self.chunk.len() == span.stored_bytes as usize {
            // Alone, as large blocks are: not copied, and its buffer is not kept.
            stored::open_owned(std::mem::take(&mut self.chunk), span.offset_bytes)
        } else {
            let start = (span.offset_bytes - self.chunk_offset_bytes) as usize;
            let stored = &self.chunk[start..start + span.stored_bytes as usize];
            stored::open(stored, span.offset_bytes).map(|payload| match payload {
                Payload::Raw(payload) => payload.to_vec(),
                Payload::Compressed(raw) => raw,
            })
        };
        table.at(span, raw.and_then(DataBlock::new))
    }
}
