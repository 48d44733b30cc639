//! Iterates over the entries of a table.
//!
//! Invariant: while the iterator is valid, `block` is data block `block_index` and `cursor` is a
//! valid position in it.
//!
//! Threads: an iterator belongs to one thread at a time.

use super::block::Block;
use super::block_reader::BlockReader;
use super::data_block::DataBlockCursor;
use super::index::Index;
use super::point_read::{PointRead, RangeTrace, ReadTrace, Wait};
use super::reader::Table;
use super::stored::{BlockSpan, Parsed};
use crate::cursor::{InternalIterator, StoredBlock};
use crate::format::InternalKeyRef;
use kvant_base::{Consumer, Result};
use std::sync::Arc;

pub(crate) struct TableIter {
    table: Arc<Table>,
    /// The index, if the table has not pinned it.
    cached_index: Option<Arc<Block>>,
    reader: BlockReader,
    block: Option<Arc<Block>>,
    block_index: usize,
    span: BlockSpan,
    cursor: DataBlockCursor,
    /// Receives what this cursor touches.
    trace: Option<Arc<RangeTrace>>,
    /// Whether a block of this table has been read.
    entered: bool,
    /// Whether each entry is checked. The cursor is strict then.
    is_checked: bool,
}

impl Table {
    /// An iterator. `fill_cache` reads blocks through the block cache; compactions bypass it.
    /// Memory of the iterator is counted for `consumer`.
    pub(crate) fn iter(self: &Arc<Self>, fill_cache: bool, consumer: Consumer) -> TableIter {
        TableIter {
            table: Arc::clone(self),
            cached_index: None,
            reader: BlockReader::new(self, fill_cache, consumer),
            block: None,
            block_index: 0,
            span: BlockSpan::default(),
            cursor: DataBlockCursor::default(),
            trace: None,
            entered: false,
            is_checked: false,
        }
    }
}

impl Drop for TableIter {
    fn drop(&mut self) {
        self.reader.end(&self.table);
    }
}

impl TableIter {
    /// Adds what this cursor touches to `trace`.
    pub(crate) fn traced(mut self, trace: Arc<RangeTrace>) -> TableIter {
        self.trace = Some(trace);
        self
    }

    /// Entries that no other table may hold are an error: for a cursor that copies them.
    pub(crate) fn checked(mut self) -> TableIter {
        self.is_checked = true;
        self.cursor = DataBlockCursor::strict();
        self
    }

    fn add_to_trace(&self, read: ReadTrace) {
        if let Some(trace) = &self.trace {
            trace.add(read);
        }
    }

    /// Positions the cursor in data block `block` with `place`, or on the first entry of the next
    /// block if `place` finds none.
    fn enter_block(
        &mut self,
        block: usize,
        place: impl FnOnce(&mut DataBlockCursor, &Block) -> Parsed<()>,
    ) -> Result<()> {
        if !self.load_block(block)? {
            return Ok(());
        }
        self.in_block(true, place)?;
        if !self.cursor.valid() && self.load_block(block + 1)? {
            self.in_block(true, |cursor, block| cursor.seek_to_first(block.data()?))?;
        }
        Ok(())
    }

    /// Makes `block` the current block, without a position. False if there is no such block.
    fn load_block(&mut self, block: usize) -> Result<bool> {
        self.cursor.clear();
        if self.block.is_some() && self.block_index == block {
            return Ok(true);
        }
        if let Some(block) = self.block.take() {
            self.reader.take_back(block);
        }
        let mut read = PointRead::new(Wait::ALWAYS);
        let index = index_of(&self.table, &mut self.cached_index, &mut read)?;
        if block >= index.len() {
            return Ok(false);
        }
        self.block = Some(self.reader.read(&self.table, index, block)?);
        self.block_index = block;
        self.span = index.span(block);
        let mut trace = std::mem::take(&mut self.reader.trace);
        trace.add(read.trace);
        trace.table_count = u32::from(!self.entered);
        self.entered = true;
        self.add_to_trace(trace);
        Ok(true)
    }

    /// Moves the cursor within the current block, which it has just entered or not.
    #[inline]
    fn in_block(
        &mut self,
        has_entered: bool,
        place: impl FnOnce(&mut DataBlockCursor, &Block) -> Parsed<()>,
    ) -> Result<()> {
        let Some(block) = &self.block else { return Ok(()) };
        self.table.at(self.span, place(&mut self.cursor, block))?;
        if self.is_checked { self.check(has_entered) } else { Ok(()) }
    }

    /// Checks the entry at the cursor. Not a part of [`TableIter::in_block`]: ranges are faster.
    #[inline(never)]
    fn check(&mut self, has_entered: bool) -> Result<()> {
        let Some(block) = self.block.as_ref().filter(|_| self.cursor.valid()) else {
            return Ok(());
        };
        let index =
            index_of(&self.table, &mut self.cached_index, &mut PointRead::new(Wait::ALWAYS))?;
        let checked = block.data().and_then(|data| {
            self.table.check_position(index, self.block_index, data, &self.cursor, has_entered)
        });
        self.table.at(self.span, checked.inspect_err(|_| self.cursor.clear()))
    }
}

/// The index of the table. `cached` keeps it if the table has not pinned it.
fn index_of<'a>(
    table: &'a Table,
    cached: &'a mut Option<Arc<Block>>,
    read: &mut PointRead,
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
        let mut read = PointRead::new(Wait::ALWAYS);
        let block = index_of(&self.table, &mut self.cached_index, &mut read)?.find(target);
        self.add_to_trace(read.trace);
        self.enter_block(block, |cursor, block| cursor.seek(block.data()?, target))
    }

    #[inline]
    fn next(&mut self) -> Result<()> {
        debug_assert!(self.valid());
        self.in_block(false, |cursor, block| cursor.next(block.data()?))?;
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

    fn own_block(&self) -> Option<StoredBlock<'_>> {
        let Some(Block::Data(data)) = self.block.as_deref() else { return None };
        let (payload, compression) = self.reader.stored(self.span)?;
        let block = StoredBlock { payload, compression, raw_bytes: data.raw_bytes() };
        self.cursor.is_alone_in(data).then_some(block)
    }
}
