//! Checks entries before they are written to another table.
//!
//! A checksum shows that a block is as it was written. Memory that flipped before that leaves a
//! block with a valid checksum that no writer makes: in another table its entries would break the
//! order of keys, the limits of an entry, or the ranges by which tables are found.

use super::block::Block;
use super::data_block::{DataBlock, DataBlockCursor};
use super::index::Index;
use super::properties::check_entry;
use super::reader::Table;
use super::stored::{Malformed, Parsed};
use kvant_base::Result;

impl Table {
    /// Checks all entries of data block `number`.
    pub(super) fn check_block(&self, index: &Index, number: usize, block: &Block) -> Result<()> {
        let checked = block.data().and_then(|data| {
            let mut cursor = DataBlockCursor::strict();
            let mut has_entered = true;
            cursor.seek_to_first(data)?;
            while cursor.valid() {
                self.check_position(index, number, data, &cursor, has_entered)?;
                has_entered = false;
                cursor.next(data)?;
            }
            Ok(())
        });
        self.at(index.span(number), checked)
    }

    /// Checks the entry of data block `number` at a strict cursor: whether a table can hold it, and
    /// whether it belongs to this table and block. Entries between the first and the last one do if
    /// these do. `has_entered`: this is the first position in the block.
    #[inline]
    pub(super) fn check_position(
        &self,
        index: &Index,
        number: usize,
        data: &DataBlock,
        cursor: &DataBlockCursor,
        has_entered: bool,
    ) -> Parsed<()> {
        let (key, properties) = (cursor.key(), self.properties());
        check_entry(key, data.bytes_at(cursor.value()))?;
        if key.seq() < properties.seq_min || key.seq() > properties.seq_max {
            return Err(Malformed("entry has a sequence number that its table does not have"));
        }
        let is_at_edge = has_entered || cursor.is_at_last(data);
        if is_at_edge && (index.find(key) != number || key < properties.smallest.as_ref()) {
            return Err(Malformed("index names another block than that of the entry"));
        }
        Ok(())
    }
}
