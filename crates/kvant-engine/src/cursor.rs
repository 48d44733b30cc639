//! The cursor trait, which everything with entries in order implements: memtables, tables and the
//! iterators that merge them.

use crate::format::InternalKeyRef;
use crate::options::Compression;
use kvant_base::Result;

/// A data block as a table stores it, verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StoredBlock<'a> {
    pub(crate) payload: &'a [u8],
    pub(crate) compression: Compression,
    /// Length before compression.
    pub(crate) raw_bytes: usize,
}

/// A cursor over internal keys in their order. A new one is not positioned: seek first.
///
/// After an error the cursor is not valid and stays so until it is positioned again.
pub(crate) trait InternalIterator: Send {
    /// Whether the cursor stands on an entry.
    fn valid(&self) -> bool;
    fn seek_to_first(&mut self) -> Result<()>;
    /// Positions at the first entry at or after `target`.
    fn seek(&mut self, target: InternalKeyRef<'_>) -> Result<()>;
    /// Moves to the next entry. The cursor must be valid.
    fn next(&mut self) -> Result<()>;
    /// The entry's key. The cursor must be valid.
    fn key(&self) -> InternalKeyRef<'_>;
    /// The entry's value as stored (with the expiry in front where the kind says so). The cursor
    /// must be valid.
    fn value(&self) -> &[u8];
    /// The block that holds this entry alone, if it is in a table that is read without the cache.
    /// The cursor must be valid.
    fn own_block(&self) -> Option<StoredBlock<'_>> {
        None
    }
}

impl InternalIterator for Box<dyn InternalIterator> {
    fn valid(&self) -> bool {
        (**self).valid()
    }

    fn seek_to_first(&mut self) -> Result<()> {
        (**self).seek_to_first()
    }

    fn seek(&mut self, target: InternalKeyRef<'_>) -> Result<()> {
        (**self).seek(target)
    }

    fn next(&mut self) -> Result<()> {
        (**self).next()
    }

    fn key(&self) -> InternalKeyRef<'_> {
        (**self).key()
    }

    fn value(&self) -> &[u8] {
        (**self).value()
    }

    fn own_block(&self) -> Option<StoredBlock<'_>> {
        (**self).own_block()
    }
}
