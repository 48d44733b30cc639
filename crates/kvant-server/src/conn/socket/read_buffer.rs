//! The read buffer of a selector: bytes pass through it, so that no connection needs one of its
//! own.
//!
//! The value of a put on the fast path stays where the kernel wrote it: the front of the buffer is
//! cut off and lives as long as the value. A request that is mostly head is copied instead, and
//! reads that are longer than a request of the fast path have memory of their own, so that at least
//! a third of the memory that values keep alive is values.

use crate::http::plain_request::REQUEST_BYTES_MAX;
use bytes::{Bytes, BytesMut};

/// Bytes taken from the kernel at once.
pub(in crate::conn) const READ_BYTES_MAX: usize = 64 << 10;

#[derive(Default)]
pub(crate) struct ReadBuffer {
    /// Its front is free.
    requests: BytesMut,
    /// For longer reads.
    bulk: Vec<u8>,
    /// The last read was one of these.
    is_bulk: bool,
}

impl ReadBuffer {
    /// Room for `bytes`, at most [`READ_BYTES_MAX`]. Overwrites what was received before.
    pub(crate) fn room(&mut self, bytes: usize) -> &mut [u8] {
        self.is_bulk = bytes > REQUEST_BYTES_MAX;
        if self.is_bulk {
            self.bulk.resize(READ_BYTES_MAX, 0);
            return &mut self.bulk[..bytes];
        }
        if self.requests.len() < bytes {
            self.requests = BytesMut::zeroed(READ_BYTES_MAX);
        }
        &mut self.requests[..bytes]
    }

    pub(crate) fn received(&self, bytes: usize) -> &[u8] {
        if self.is_bulk { &self.bulk[..bytes] } else { &self.requests[..bytes] }
    }

    /// The last `bytes` of the `received_bytes` that were received last, which are not there any
    /// more afterwards.
    pub(crate) fn take_end(&mut self, received_bytes: usize, bytes: usize) -> Bytes {
        let is_mostly_head = 2 * bytes < received_bytes;
        if self.is_bulk || is_mostly_head {
            return Bytes::copy_from_slice(
                &self.received(received_bytes)[received_bytes - bytes..],
            );
        }
        self.requests.split_to(received_bytes).freeze().split_off(received_bytes - bytes)
    }
}

#[cfg(test)]
mod tests;
