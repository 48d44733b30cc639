//! Write batches: operations that are committed together, in the encoding of the write-ahead log.
//!
//! The encoding is the `payload` of `docs/formats/wal.md`. Operations are encoded when they are
//! added, so that a commit only copies bytes. A thread keeps the memory of a long batch for its
//! next one: the system would have to find and clear it anew.
//!
//! Invariants:
//! 1. encodings concatenate: the encodings of two batches, one after the other, are the encoding of
//!    both together;
//! 2. the value of an operation is in stored form: an expiring one starts with its expiry, as
//!    `format::split_expiry` reads it.

use crate::format::{SeqNum, ValueKind};
use kvant_base::{Error, Result, limits, varint};
use std::cell::Cell;
use std::ops::RangeInclusive;
use std::path::Path;

/// Bytes of the expiry in front of a stored value.
const EXPIRY_BYTES: usize = 8;
/// Kind and two lengths: the most that the encoding of an operation adds to its key and value.
const OP_OVERHEAD_BYTES_MAX: usize = 1 + 2 * varint::VARINT64_BYTES_MAX;
/// Memory of a batch that its thread keeps: as the allocator would return it to the system, and
/// not so much that it counts.
const KEPT_BYTES: RangeInclusive<usize> = 64 << 10..=512 << 10;

thread_local! {
    /// The memory of a batch that has ended on this thread.
    static KEPT: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// Operations that are committed together: all of them survive, or none.
#[derive(Clone, Debug, Default)]
pub struct WriteBatch {
    encoded: Encoded,
    op_count: usize,
    put_count: usize,
    user_bytes: u64,
    /// Whether a key is empty or over the limit.
    key_bad: bool,
    value_bytes_longest: usize,
}

/// Encoded operations.
#[derive(Clone, Debug, Default)]
struct Encoded(Vec<u8>);

impl Encoded {
    fn reserve(&mut self, bytes: usize) {
        if self.0.capacity() == 0 && KEPT_BYTES.contains(&bytes) {
            self.0 = Some(KEPT.take()).filter(|kept| kept.capacity() >= bytes).unwrap_or_default();
        }
        self.0.reserve(bytes);
    }
}

impl Drop for Encoded {
    fn drop(&mut self) {
        if KEPT_BYTES.contains(&self.0.capacity()) {
            let mut memory = std::mem::take(&mut self.0);
            memory.clear();
            // A thread that ends keeps nothing.
            let _ended = KEPT.try_with(|kept| kept.set(memory));
        }
    }
}

impl WriteBatch {
    /// An empty batch.
    pub fn new() -> WriteBatch {
        WriteBatch::default()
    }

    /// Gives `key` a value; `expires_at_ms` is wall time in milliseconds since 1970.
    pub fn put(&mut self, key: &[u8], value: &[u8], expires_at_ms: Option<u64>) {
        match expires_at_ms {
            None => self.put_stored(ValueKind::Put, key, &[], value),
            Some(at_ms) => {
                self.put_stored(ValueKind::PutExpiring, key, &at_ms.to_le_bytes(), value)
            }
        }
    }

    /// Removes `key`, whether it is there or not.
    pub fn delete(&mut self, key: &[u8]) {
        self.encoded.reserve(key.len() + OP_OVERHEAD_BYTES_MAX);
        self.put_kind_and_key(ValueKind::Delete, key);
    }

    /// Operations in the batch.
    pub fn len(&self) -> usize {
        self.op_count
    }

    /// Operations that give a key a value. Only batches without any pass when space runs out.
    pub(crate) fn put_count(&self) -> usize {
        self.put_count
    }

    /// Whether the batch has no operations.
    pub fn is_empty(&self) -> bool {
        self.op_count == 0
    }

    /// Encoded size.
    pub fn bytes(&self) -> usize {
        self.encoded.0.len()
    }

    /// Key and value bytes, as given by the user.
    pub(crate) fn user_bytes(&self) -> u64 {
        self.user_bytes
    }

    /// The operations, as the log stores them.
    pub(crate) fn encoded(&self) -> &[u8] {
        &self.encoded.0
    }

    /// The operations, in the order in which they were added.
    pub(crate) fn ops(&self) -> Ops<'_> {
        Ops::new(&self.encoded.0)
    }

    /// Checks that the batch can be committed: keys and values are within their limits, and the
    /// whole fits into one log record.
    pub(crate) fn check(&self, value_bytes_max: u64) -> Result<()> {
        if self.key_bad {
            let message = format!("a key must have 1 to {} bytes", limits::KEY_BYTES_MAX);
            return Err(Error::invalid(message));
        }
        if self.value_bytes_longest as u64 > value_bytes_max {
            let longest = self.value_bytes_longest;
            let message =
                format!("a value of {longest} bytes is over the limit of {value_bytes_max}");
            return Err(Error::invalid(message));
        }
        if self.encoded.0.len() as u64 > limits::WAL_RECORD_BYTES_MAX {
            let (bytes, max) = (self.encoded.0.len(), limits::WAL_RECORD_BYTES_MAX);
            let message = format!("a batch of {bytes} bytes is over the limit of {max}");
            return Err(Error::invalid(message));
        }
        Ok(())
    }

    fn put_stored(&mut self, kind: ValueKind, key: &[u8], expiry: &[u8], value: &[u8]) {
        self.encoded.reserve(key.len() + expiry.len() + value.len() + OP_OVERHEAD_BYTES_MAX);
        self.put_kind_and_key(kind, key);
        self.put_count += 1;
        varint::put_u64(&mut self.encoded.0, (expiry.len() + value.len()) as u64);
        self.encoded.0.extend_from_slice(expiry);
        self.encoded.0.extend_from_slice(value);
        self.user_bytes += value.len() as u64;
        self.value_bytes_longest = self.value_bytes_longest.max(value.len());
    }

    fn put_kind_and_key(&mut self, kind: ValueKind, key: &[u8]) {
        self.encoded.0.push(kind as u8);
        varint::put_u64(&mut self.encoded.0, key.len() as u64);
        self.encoded.0.extend_from_slice(key);
        self.op_count += 1;
        self.user_bytes += key.len() as u64;
        self.key_bad |= !key_is_valid(key);
    }
}

fn key_is_valid(key: &[u8]) -> bool {
    (1..=limits::KEY_BYTES_MAX).contains(&key.len())
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Op<'a> {
    pub(crate) kind: ValueKind,
    pub(crate) key: &'a [u8],
    /// The value in stored form: empty for a delete, starting with the expiry for an expiring put.
    pub(crate) stored: &'a [u8],
}

/// Bytes that are no operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BadOp {
    /// Start of the operation in the payload.
    pub(crate) offset: usize,
    pub(crate) what: &'static str,
}

impl BadOp {
    /// The error of a payload that was read from `file` at `payload_offset_bytes`.
    pub(crate) fn in_file(self, file: &Path, payload_offset_bytes: u64) -> Error {
        Error::corruption(file, payload_offset_bytes + self.offset as u64, self.what)
    }
}

/// Decodes a payload, operation by operation. Ends after the first error.
#[derive(Clone, Debug)]
pub(crate) struct Ops<'a> {
    rest: &'a [u8],
    payload_bytes: usize,
}

impl<'a> Ops<'a> {
    pub(crate) fn new(payload: &'a [u8]) -> Ops<'a> {
        Ops { rest: payload, payload_bytes: payload.len() }
    }
}

impl<'a> Iterator for Ops<'a> {
    type Item = std::result::Result<Op<'a>, BadOp>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let offset = self.payload_bytes - self.rest.len();
        let op = take_op(&mut self.rest).map_err(|what| BadOp { offset, what });
        if op.is_err() {
            self.rest = &[];
        }
        Some(op)
    }
}

#[inline]
fn take_op<'a>(rest: &mut &'a [u8]) -> std::result::Result<Op<'a>, &'static str> {
    let (&kind, after_kind) = rest.split_first().ok_or("an operation is cut short")?;
    let kind = ValueKind::from_byte(kind).ok_or("an operation of unknown kind")?;
    *rest = after_kind;
    let key = take_framed(rest).ok_or("the key of an operation is cut short")?;
    if !key_is_valid(key) {
        return Err("the key of an operation is empty or over its limit");
    }
    let stored = match kind {
        ValueKind::Delete => &[],
        ValueKind::Put | ValueKind::PutExpiring => {
            take_framed(rest).ok_or("the value of an operation is cut short")?
        }
    };
    if kind == ValueKind::PutExpiring && stored.len() < EXPIRY_BYTES {
        return Err("an expiring value is shorter than its expiry");
    }
    Ok(Op { kind, key, stored })
}

#[inline]
fn take_framed<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let count = varint::take_u32(rest)?;
    varint::take_bytes(rest, count as usize)
}

/// Calls `visit` with every operation of a stored payload and its sequence number.
///
/// # Errors
/// `Corruption` in `file` when the payload does not decode, or does not hold exactly `op_count`
/// operations; what `visit` returns.
pub(crate) fn replay(
    payload: &[u8],
    first_seq: SeqNum,
    op_count: u32,
    file: &Path,
    payload_offset_bytes: u64,
    mut visit: impl FnMut(SeqNum, Op<'_>) -> Result<()>,
) -> Result<()> {
    let mut found_count = 0u64;
    for op in Ops::new(payload) {
        let op = op.map_err(|bad| bad.in_file(file, payload_offset_bytes))?;
        visit(SeqNum(first_seq.0 + found_count), op)?;
        found_count += 1;
    }
    if found_count != u64::from(op_count) {
        let what = format!("a record of {op_count} operations holds {found_count}");
        return Err(Error::corruption(file, payload_offset_bytes, what));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
