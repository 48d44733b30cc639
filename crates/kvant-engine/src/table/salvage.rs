//! Reads what is readable of a damaged table.

use super::block_reader::BlockReader;
use super::data_block::DataBlockCursor;
use super::reader::Table;
use crate::format::{InternalKey, InternalKeyRef};
use kvant_base::{Consumer, ErrorKind, Result};

impl Table {
    /// Calls `visit` with the entries of every readable data block, in order, and returns the
    /// number of unreadable blocks.
    ///
    /// # Errors
    /// `Corruption` when the index is damaged; `Io`; errors of `visit`.
    pub(crate) fn salvage(
        &self,
        visit: &mut dyn FnMut(InternalKeyRef<'_>, &[u8]) -> Result<()>,
    ) -> Result<u64> {
        let index = self.reader().read_index(&self.footer, self.properties())?;
        let mut lost_count = 0;
        let mut last: Option<InternalKey> = None;
        for block in 0..index.len() {
            // A new reader per block, with the cache: it reads this block alone. What is beside it
            // may be damaged.
            let mut reader = BlockReader::new(self, true, Consumer::Compaction);
            let read = match reader.read(self, &index, block) {
                Err(error) if error.kind() == ErrorKind::Corruption => {
                    lost_count += 1;
                    continue;
                }
                read => read?,
            };
            let data = self.at(index.span(block), read.data())?;
            let mut cursor = DataBlockCursor::default();
            let mut position = cursor.seek_to_first(data);
            while position.is_ok() && cursor.valid() {
                let key = cursor.key();
                if last.as_ref().is_none_or(|last| last.as_ref() < key) {
                    visit(key, data.bytes_at(cursor.value()))?;
                    last = Some(key.to_owned());
                }
                position = cursor.next(data);
            }
            lost_count += u64::from(position.is_err());
        }
        Ok(lost_count)
    }
}
