//! Decoded blocks as the cache holds them, and values pinned in them.

use super::data_block::DataBlock;
use super::filter::Filter;
use super::index::Index;
use super::stored::{Malformed, Parsed};
use crate::cache::Pinned;
use crate::format::value::ValueTaker;
use crate::format::{SeqNum, ValueKind};
use bytes::Bytes;
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
            Block::Filter(filter) => filter.memory_bytes(),
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

/// A block of the cache, as a point read holds it.
pub(super) enum HeldBlock<'a> {
    Pinned(Pinned<'a, Block>),
    Shared(Arc<Block>),
}

impl Deref for HeldBlock<'_> {
    type Target = Block;

    #[inline]
    fn deref(&self) -> &Block {
        match self {
            HeldBlock::Pinned(block) => block,
            HeldBlock::Shared(block) => block,
        }
    }
}

/// An entry that a point read found. Derefs to the stored value, which it pins without copying.
pub(crate) struct FoundEntry<'a> {
    pub(crate) seq: SeqNum,
    pub(crate) kind: ValueKind,
    pub(super) block: HeldBlock<'a>,
    pub(super) value: Range<usize>,
}

impl FoundEntry<'_> {
    /// Gives the stored value without its first `skipped_bytes`: a short one to copy; a long one
    /// pins its block, which holds little else.
    pub(crate) fn give_behind<T: ValueTaker>(&self, skipped_bytes: usize, to: &mut T) -> T::Value {
        let value = &self[skipped_bytes..];
        if value.len() <= VALUE_BYTES_COPIED_MAX {
            return to.copy(value);
        }
        let block = match &self.block {
            HeldBlock::Pinned(block) => block.to_arc(),
            HeldBlock::Shared(block) => Arc::clone(block),
        };
        let stored = Bytes::from_owner(LongValue { block, value: self.value.clone() });
        to.share(stored.slice(skipped_bytes..))
    }
}

impl Deref for FoundEntry<'_> {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        value_in(&self.block, &self.value)
    }
}

struct LongValue {
    block: Arc<Block>,
    value: Range<usize>,
}

impl AsRef<[u8]> for LongValue {
    fn as_ref(&self) -> &[u8] {
        value_in(&self.block, &self.value)
    }
}

#[inline]
fn value_in<'a>(block: &'a Block, value: &Range<usize>) -> &'a [u8] {
    block.data().expect("entries are found in data blocks").bytes_at(value.clone())
}

impl fmt::Debug for FoundEntry<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} at {} with {} bytes", self.kind, self.seq.0, self.value.len())
    }
}
