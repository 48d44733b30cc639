//! Collects operations in the order of the log, and inserts them in key order into a memtable.
//!
//! We sort 16-byte handles, not the operations. Half of a handle is a part of the key: the eight
//! bytes after the prefix that all keys in the buffer share.
//!
//! Invariants:
//! 1. an operation is in the buffer or in a memtable, never in both;
//! 2. the memory that a full buffer takes is counted to [`Consumer::Memtables`] from the start.

use crate::format::{InternalKeyRef, key_prefix};
use crate::memtable::MemtableWriter;
use kvant_base::tag::{self, Stage};
use kvant_base::{Consumer, MemoryBudget, Reservation};
use std::sync::Arc;

/// Trailer (8 bytes), length of the key (4), length of the value (4).
const HEADER_BYTES: usize = 16;

pub(super) struct SortBuffer {
    bytes_max: usize,
    /// One after the other: header, key, value.
    ops: Vec<u8>,
    op_count: usize,
    /// How many bytes all keys have in common with the first.
    shared_bytes: usize,
    /// Kept between uses for its memory.
    handles: Vec<Handle>,
    _reservation: Reservation,
}

/// Eight bytes of an operation's key above the complement of its offset, so that of two operations
/// on a key the newer one sorts first, as internal keys do. One integer compares without a branch.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Handle(u128);

impl Handle {
    fn new(prefix: u64, offset: usize) -> Handle {
        Handle(u128::from(prefix) << 64 | u128::from(!(offset as u64)))
    }

    fn prefix(self) -> u64 {
        (self.0 >> 64) as u64
    }

    fn offset(self) -> usize {
        !(self.0 as u64) as usize
    }
}

impl SortBuffer {
    pub(super) fn new(memory: &Arc<MemoryBudget>, bytes_max: usize) -> SortBuffer {
        SortBuffer {
            bytes_max,
            ops: Vec::new(),
            op_count: 0,
            shared_bytes: 0,
            handles: Vec::new(),
            _reservation: memory.reserve(Consumer::Memtables, bytes_max as u64),
        }
    }

    pub(super) fn push(&mut self, key: InternalKeyRef<'_>, stored_value: &[u8]) {
        let key_bytes = u32::try_from(key.user_key.len()).expect("keys are at most 16 KiB");
        let value_bytes = u32::try_from(stored_value.len()).expect("values are at most 1 GiB");
        let header =
            u128::from(key.trailer) | u128::from(key_bytes) << 64 | u128::from(value_bytes) << 96;
        self.ops.extend_from_slice(&header.to_le_bytes());
        self.ops.extend_from_slice(key.user_key);
        self.ops.extend_from_slice(stored_value);
        self.op_count += 1;
        if self.op_count == 1 {
            self.shared_bytes = key.user_key.len();
        }
        let shared = &self.ops[HEADER_BYTES..][..self.shared_bytes];
        if !key.user_key.starts_with(shared) {
            let same = shared.iter().zip(key.user_key).take_while(|(a, b)| a == b);
            self.shared_bytes = same.count();
        }
    }

    /// Whether operations and handles take `bytes_max`.
    pub(super) fn is_full(&self) -> bool {
        self.ops.len() + self.op_count * size_of::<Handle>() >= self.bytes_max
    }

    pub(super) fn insert_into(&mut self, memtable: &mut MemtableWriter) {
        let _tag = tag::stage(Stage::Memtable);
        let mut handles = std::mem::take(&mut self.handles);
        handles.reserve_exact(self.op_count);
        let mut offset = 0;
        while offset < self.ops.len() {
            let (key, value) = self.op(offset);
            let prefix = key_prefix(&key.user_key[self.shared_bytes..]);
            handles.push(Handle::new(prefix, offset));
            offset += HEADER_BYTES + key.user_key.len() + value.len();
        }
        handles.sort_unstable();
        for tied in handles.chunk_by_mut(|a, b| a.prefix() == b.prefix()) {
            if tied.len() > 1 {
                tied.sort_unstable_by_key(|handle| self.op(handle.offset()).0);
            }
        }
        memtable.insert(handles.iter().map(|handle| self.op(handle.offset())));
        handles.clear();
        self.handles = handles;
        self.ops.clear();
        self.op_count = 0;
    }

    /// The operation at `offset`: internal key and stored value.
    fn op(&self, offset: usize) -> (InternalKeyRef<'_>, &[u8]) {
        let (header, data) = self.ops[offset..]
            .split_first_chunk::<HEADER_BYTES>()
            .expect("an operation was pushed whole");
        let number = u128::from_le_bytes(*header);
        let (key_bytes, value_bytes) = ((number >> 64) as u32 as usize, (number >> 96) as usize);
        let (user_key, rest) = data.split_at(key_bytes);
        let trailer = number as u64;
        (InternalKeyRef { user_key, trailer }, &rest[..value_bytes])
    }
}

#[cfg(test)]
mod tests;
