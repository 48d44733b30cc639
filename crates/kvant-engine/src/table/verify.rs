//! Checks that all parts of a table agree.

use super::block::Block;
use super::block_reader::BlockReader;
use super::data_block::{DataBlock, DataBlockCursor};
use super::filter::Filter;
use super::index::Index;
use super::properties::TableProperties;
use super::reader::Table;
use super::stored::{Malformed, Parsed};
use crate::format::{InternalKey, InternalKeyRef, key_hash};
use kvant_base::{Consumer, Result};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct VerifyReport {
    pub(crate) file_bytes: u64,
    pub(crate) data_block_count: u64,
    pub(crate) entry_count: u64,
}

impl Table {
    /// Reads the whole file again and checks all checksums, the order of entries, that index, hash
    /// indexes and filter find every entry, and that the properties are correct.
    pub(crate) fn verify(&self) -> Result<VerifyReport> {
        let file = self.reader();
        let footer = file.read_footer(self.file_bytes)?;
        let stored_properties = file.read_properties(&footer)?;
        if footer != self.footer || stored_properties != *self.properties() {
            return self
                .at(footer.properties, Err(Malformed("table has changed since it was opened")));
        }
        let index = file.read_index(&footer, &stored_properties)?;
        let filter = match footer.filter.stored_bytes {
            0 => None,
            _ => Some(file.read_filter(&footer)?),
        };
        let empty = TableProperties::new(
            stored_properties.compression,
            &stored_properties.created_by,
            stored_properties.file_num,
        );
        let last = InternalKey::default();
        let mut verifier =
            Verifier { index: &index, filter: filter.as_ref(), counted: empty, last };
        let mut reader = BlockReader::new(self, false, Consumer::Compaction);
        for block in 0..index.len() {
            let read = reader.read(self, &index, block)?;
            verifier.check_block(self, block, &read)?;
        }
        let mut counted = verifier.counted;
        counted.largest = verifier.last;
        counted.data_block_count = index.len() as u64;
        counted.index_key_bytes = index.key_bytes();
        if counted != stored_properties {
            return self
                .at(footer.properties, Err(Malformed("properties do not agree with the entries")));
        }
        Ok(VerifyReport {
            file_bytes: self.file_bytes,
            data_block_count: counted.data_block_count,
            entry_count: counted.entry_count,
        })
    }
}

struct Verifier<'a> {
    index: &'a Index,
    filter: Option<&'a Filter>,
    counted: TableProperties,
    last: InternalKey,
}

impl Verifier<'_> {
    fn check_block(&mut self, table: &Table, block_index: usize, block: &Block) -> Result<()> {
        table.check_block(self.index, block_index, block)?;
        let span = self.index.span(block_index);
        let data = table.at(span, block.data())?;
        self.counted.raw_data_bytes += data.raw_bytes() as u64;
        let mut cursor = DataBlockCursor::default();
        table.at(span, cursor.seek_to_first(data))?;
        while cursor.valid() {
            let (key, value) = (cursor.key(), data.bytes_at(cursor.value()));
            let distinct = self.counted.entry_count == 0 || self.last.user_key != key.user_key;
            table.at(span, self.check_found(data, key, cursor.value().start))?;
            table.at(span, self.counted.count(key, value, distinct))?;
            self.last.assign(key);
            table.at(span, cursor.next(data))?;
        }
        Ok(())
    }

    fn check_found(
        &self,
        data: &DataBlock,
        key: InternalKeyRef<'_>,
        value_at: usize,
    ) -> Parsed<()> {
        let hash = key_hash(key.user_key);
        if self.filter.is_some_and(|filter| !filter.may_contain(hash)) {
            return Err(Malformed("filter does not contain a key of the table"));
        }
        match data.get(key, hash)? {
            Some(found) if found.trailer == key.trailer && found.value.start == value_at => Ok(()),
            _ => Err(Malformed("entry is not found by a point read")),
        }
    }
}
