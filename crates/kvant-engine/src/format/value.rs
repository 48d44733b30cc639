//! What a point read does with the value that it found, before it lets go of the block or memtable
//! that holds it: a copy of its own, or one into the caller's buffer. Long values are shared.

use bytes::Bytes;

/// Takes the value that a point read found.
pub(crate) trait ValueTaker {
    type Value;

    /// Takes a value of at most `limits::VALUE_BYTES_COPIED_MAX`, which has to be copied. One that
    /// was taken before is not wanted any more.
    fn copy(&mut self, value: &[u8]) -> Self::Value;

    /// Takes a long value.
    fn share(&mut self, value: Bytes) -> Self::Value;
}

/// A value that was to be read into a buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// It was appended to the buffer.
    Appended,
    /// It is too long for that.
    Bytes(Bytes),
}

/// Takes values as bytes of their own.
pub(crate) struct Owned;

impl ValueTaker for Owned {
    type Value = Bytes;

    #[inline]
    fn copy(&mut self, value: &[u8]) -> Bytes {
        Bytes::copy_from_slice(value)
    }

    fn share(&mut self, value: Bytes) -> Bytes {
        value
    }
}

/// Appends values of at most `value_bytes_max` to a buffer.
pub(crate) struct Appending<'a> {
    buffer: &'a mut Vec<u8>,
    before_bytes: usize,
    value_bytes_max: usize,
}

impl Appending<'_> {
    #[inline]
    pub(crate) fn to(buffer: &mut Vec<u8>, value_bytes_max: usize) -> Appending<'_> {
        let before_bytes = buffer.len();
        Appending { buffer, before_bytes, value_bytes_max }
    }
}

impl ValueTaker for Appending<'_> {
    type Value = Value;

    #[inline]
    fn copy(&mut self, value: &[u8]) -> Value {
        if value.len() > self.value_bytes_max {
            return Value::Bytes(Bytes::copy_from_slice(value));
        }
        self.buffer.truncate(self.before_bytes);
        self.buffer.extend_from_slice(value);
        Value::Appended
    }

    fn share(&mut self, value: Bytes) -> Value {
        Value::Bytes(value)
    }
}

#[cfg(test)]
mod tests;
