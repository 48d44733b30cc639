//! Decoded blocks as the cache holds them, and values pinned in them.

use super::data_block::DataBlock;
use super::filter::Filter;
use super::index::Index;
use super::stored::{Malformed, Parsed};
use crate::format::{SeqNum, ValueKind};
use bytes::{Buf, Bytes};
use kvant_base::limits::VALUE_BYTES_COPIED_MAX;
use std::fmt;
use std::ops::{Deref, Range};
use std::sync::Arc;

pub(crate) type BlockCache = crate::cache::Cache<Block>;

pub(crate) enum Block {
    Data(DataBlock),
    Index(Index),
    Filter(Filter),
}

const OTHER_KIND: Malformed = Malformed("block is of another kind than its place in the table");

impl Block {
    pub(super) fn heap_bytes(&self) -> usize {
        match self {
            Block::Data(data) => data.heap_bytes(),
            Block::Index(index) => index.heap_bytes(),
            Block::Filter(filter) => filter.heap_bytes(),
        }
    }

    #[inline]
    pub(super) fn data(&self) -> Parsed<&DataBlock> {
        if let Block::Data(data) = self { Ok(data) } else { Err(OTHER_KIND) }
    }

    pub(super) fn index(&self) -> Parsed<&Index> {
        if let Block::Index(index) = self { Ok(index) } else { Err(OTHER_KIND) }
    }

    pub(super) fn filter(&self) -> Parsed<&Filter> {
        if let Block::Filter(filter) = self { Ok(filter) } else { Err(OTHER_KIND) }
    }
}

/// An entry that a point read found. Derefs to the stored value, which it pins without copying.
#[derive(Clone)]
pub(crate) struct FoundEntry {
    pub(crate) seq: SeqNum,
    pub(crate) kind: ValueKind,
    pub(super) block: Arc<Block>,
    pub(super) value: Range<usize>,
}

impl FoundEntry {
    /// The stored value without its first `skipped_bytes`. Copies a short value; a long one pins
    /// its block, which holds little else.
    pub(crate) fn value_behind(&self, skipped_bytes: usize) -> Bytes {
        let value = &self[skipped_bytes..];
        if value.len() <= VALUE_BYTES_COPIED_MAX {
            return Bytes::copy_from_slice(value);
        }
        let mut stored = Bytes::from_owner(self.clone());
        stored.advance(skipped_bytes);
        stored
    }
}

impl AsRef<[u8]> for FoundEntry {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl Deref for FoundEntry {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        let data = self.block.data().expect("entries are found in data blocks");
        data.bytes_at(self.value.clone())
    }
}

impl fmt::Debug for FoundEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} at {} with {} bytes", self.kind, self.seq.0, self.value.len())
    }
}
