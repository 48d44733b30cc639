//! Reads what is readable of a damaged table.

use super::block_reader::BlockReader;
use super::data_block::DataBlockCursor;
use super::reader::Table;
use crate::format::InternalKeyRef;
use kvant_base::{Consumer, ErrorKind, Result};

impl Table {
    /// Calls `visit` with the entries of every undamaged data block, in order, and returns the
    /// number of damaged blocks.
    ///
    /// # Errors
    /// `Corruption` when the index is damaged; `Io`; errors of `visit`.
    pub(crate) fn salvage(
        &self,
        visit: &mut dyn FnMut(InternalKeyRef<'_>, &[u8]) -> Result<()>,
    ) -> Result<u64> {
        let index = self.reader().read_index(&self.footer, self.properties())?;
        let mut lost_count = 0;
        for block in 0..index.len() {
            let span = index.span(block);
            // A new reader per block, with the cache: it reads this block alone. What is beside it
            // may be damaged.
            let mut reader = BlockReader::new(self, true, Consumer::Compaction);
            let read = reader.read(self, &index, block);
            let read = read.and_then(|read| self.check_block(&index, block, &read).map(|()| read));
            let read = match read {
                Err(error) if error.kind() == ErrorKind::Corruption => {
                    lost_count += 1;
                    continue;
                }
                read => read?,
            };
            let data = self.at(span, read.data())?;
            let mut cursor = DataBlockCursor::default();
            self.at(span, cursor.seek_to_first(data))?;
            while cursor.valid() {
                visit(cursor.key(), data.bytes_at(cursor.value()))?;
                self.at(span, cursor.next(data))?;
            }
        }
        Ok(lost_count)
    }
}
