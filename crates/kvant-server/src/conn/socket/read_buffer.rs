//! The read buffer of a selector: bytes pass through it, so that no connection needs one of its
//! own.
//!
//! The value of a put on the fast path stays where the kernel wrote it: the front of the buffer is
//! cut off and lives as long as the value. Values are short and cut off one behind the other, so
//! that a buffer that is kept alive is full of values that are.

use bytes::{Bytes, BytesMut};

/// Bytes taken from the kernel at once.
pub(in crate::conn) const READ_BYTES_MAX: usize = 64 << 10;

/// A buffer whose front is free.
#[derive(Default)]
pub(crate) struct ReadBuffer(BytesMut);

impl ReadBuffer {
    /// Room for `bytes`, at most [`READ_BYTES_MAX`]. Overwrites what was received before.
    pub(crate) fn room(&mut self, bytes: usize) -> &mut [u8] {
        if self.0.len() < bytes {
            self.0 = BytesMut::zeroed(READ_BYTES_MAX);
        }
        &mut self.0[..bytes]
    }

    /// The `bytes` that were received last.
    pub(crate) fn received(&self, bytes: usize) -> &[u8] {
        &self.0[..bytes]
    }

    /// Cuts off the `received_bytes` that were received last, and returns the last `bytes` of them.
    pub(crate) fn take_end(&mut self, received_bytes: usize, bytes: usize) -> Bytes {
        if bytes == 0 {
            return Bytes::new();
        }
        self.0.split_to(received_bytes).freeze().split_off(received_bytes - bytes)
    }
}
