//! Reads what can be read of a damaged table.

use super::block_reader::BlockReader;
use super::data_block::DataBlockCursor;
use super::reader::Table;
use crate::format::{InternalKey, InternalKeyRef};
use kvant_base::{Consumer, ErrorKind, Result};

impl Table {
    /// Calls `visit` with the entries of every readable data block, in order, and returns how many
    /// blocks were not readable.
    ///
    /// # Errors
    /// What `visit` returns; `Io`. Damage is counted, not returned.
    pub(crate) fn salvage(
        &self,
        visit: &mut dyn FnMut(InternalKeyRef<'_>, &[u8]) -> Result<()>,
    ) -> Result<u64> {
        let index = self.reader().read_index(&self.footer, self.properties())?;
        let mut lost = 0;
        let mut last: Option<InternalKey> = None;
        for block in 0..index.len() {
            // A reader of its own for each block: one that has failed may hold a part of the
            // damage.
            match BlockReader::new(self, false, Consumer::Compaction).read(self, &index, block) {
                Ok(read) => {
                    let Ok(data) = read.data() else {
                        lost += 1;
                        continue;
                    };
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
                    lost += u64::from(position.is_err());
                }
                Err(error) if error.kind() == ErrorKind::Corruption => lost += 1,
                Err(error) => return Err(error),
            }
        }
        Ok(lost)
    }
}
