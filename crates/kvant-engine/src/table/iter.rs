//! Iterates over the entries of a table.
//!
//! Invariant: while the iterator is valid, `block` is data block `block_index` and `cursor` stands
//! in it.
//!
//! Threads: an iterator belongs to one thread at a time.

use super::block::Block;
use super::block_reader::BlockReader;
use super::data_block::DataBlockCursor;
use super::index::Index;
use super::point_read::{RangeTrace, ReadTrace, Waiting};
use super::reader::Table;
use super::stored::{Malformed, Parsed};
use crate::format::InternalKeyRef;
use crate::iter::InternalIterator;
use kvant_base::{Consumer, Result};
use std::sync::Arc;

/// A cursor over a table.
pub(crate) struct TableIter {
    table: Arc<Table>,
    /// The index, where the table itself does not hold it.
    cached_index: Option<Arc<Block>>,
    reader: BlockReader,
    block: Option<Arc<Block>>,
    block_index: usize,
    cursor: DataBlockCursor,
    /// Where it is told what this cursor touches, if anybody asks.
    trace: Option<Arc<RangeTrace>>,
    /// A block of this table has been read.
    entered: bool,
}

impl Table {
    /// An iterator. `fill_cache`: blocks are looked up in the block cache and kept there; without,
    /// the cache is left alone, as it should be by compactions and long ranges. What the iterator
    /// holds itself is counted for `consumer`.
    pub(crate) fn iter(self: &Arc<Self>, fill_cache: bool, consumer: Consumer) -> TableIter {
        TableIter {
            table: Arc::clone(self),
            cached_index: None,
            reader: BlockReader::new(self, fill_cache, consumer),
            block: None,
            block_index: 0,
            cursor: DataBlockCursor::default(),
            trace: None,
            entered: false,
        }
    }
}

impl TableIter {
    /// Tells `trace` what this cursor touches from now on.
    pub(crate) fn traced(mut self, trace: Arc<RangeTrace>) -> TableIter {
        self.trace = Some(trace);
        self
    }

    fn tell(&self, touched: ReadTrace) {
        if let Some(trace) = &self.trace {
            trace.add(touched);
        }
    }

    /// Places the cursor, with `place`, in data block `block`; on the first entry of the next one
    /// if it finds none there.
    fn enter_block(
        &mut self,
        block: usize,
        place: impl FnOnce(&mut DataBlockCursor, &Block) -> Parsed<()>,
    ) -> Result<()> {
        if !self.load_block(block)? {
            return Ok(());
        }
        self.in_block(place)?;
        if !self.cursor.valid() && self.load_block(block + 1)? {
            self.in_block(|cursor, block| cursor.seek_to_first(block.data()?))?;
        }
        Ok(())
    }

    /// Makes `block` the current one, without a position in it. False, and no position, when there
    /// is no such block.
    fn load_block(&mut self, block: usize) -> Result<bool> {
        self.cursor.clear();
        if self.block.is_some() && self.block_index == block {
            return Ok(true);
        }
        self.block = None;
        let mut read = Waiting::default();
        let index = index_of(&self.table, &mut self.cached_index, &mut read)?;
        if block >= index.len() {
            return Ok(false);
        }
        self.block = Some(self.reader.read(&self.table, index, block)?);
        self.block_index = block;
        let mut touched = std::mem::take(&mut self.reader.touched);
        touched.add(read.0);
        touched.table_count = u32::from(!self.entered);
        self.entered = true;
        self.tell(touched);
        Ok(true)
    }

    /// Moves the cursor within the current block.
    #[inline]
    fn in_block(
        &mut self,
        place: impl FnOnce(&mut DataBlockCursor, &Block) -> Parsed<()>,
    ) -> Result<()> {
        let Some(block) = &self.block else { return Ok(()) };
        place(&mut self.cursor, block).map_err(|malformed| self.corruption(malformed))
    }

    #[cold]
    fn corruption(&self, malformed: Malformed) -> kvant_base::Error {
        let span =
            match index_of(&self.table, &mut self.cached_index.clone(), &mut Waiting::default()) {
                Ok(index) => index.span(self.block_index),
                Err(error) => return error,
            };
        self.table.corruption(span, malformed)
    }
}

/// The table's index, which `cached` keeps here when the table does not hold it.
fn index_of<'a>(
    table: &'a Table,
    cached: &'a mut Option<Arc<Block>>,
    read: &mut Waiting,
) -> Result<&'a Index> {
    if let Some(index) = table.pinned_index() {
        return Ok(index);
    }
    let block = match cached {
        Some(block) => block,
        none => none.insert(table.index_block(read)?),
    };
    table.at(table.footer.index, block.index())
}

impl InternalIterator for TableIter {
    #[inline]
    fn valid(&self) -> bool {
        self.cursor.valid()
    }

    fn seek_to_first(&mut self) -> Result<()> {
        self.enter_block(0, |cursor, block| cursor.seek_to_first(block.data()?))
    }

    fn seek(&mut self, target: InternalKeyRef<'_>) -> Result<()> {
        self.cursor.clear();
        let mut read = Waiting::default();
        let block = index_of(&self.table, &mut self.cached_index, &mut read)?.find(target);
        self.tell(read.0);
        self.enter_block(block, |cursor, block| cursor.seek(block.data()?, target))
    }

    #[inline]
    fn next(&mut self) -> Result<()> {
        debug_assert!(self.valid());
        self.in_block(|cursor, block| cursor.next(block.data()?))?;
        if !self.cursor.valid() {
            self.enter_block(self.block_index + 1, |cursor, block| {
                cursor.seek_to_first(block.data()?)
            })?;
        }
        Ok(())
    }

    #[inline]
    fn key(&self) -> InternalKeyRef<'_> {
        self.cursor.key()
    }

    #[inline]
    fn value(&self) -> &[u8] {
        match self.block.as_deref() {
            Some(Block::Data(data)) => data.bytes_at(self.cursor.value()),
            _ => &[],
        }
    }
}
