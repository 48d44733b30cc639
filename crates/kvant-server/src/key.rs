//! Keys of requests. Short keys, which are the most common, need no allocation.

use std::fmt;
use std::ops::Deref;

/// Keys up to this length are stored inline.
const INLINE_BYTES: usize = 46;

/// An owned key.
#[derive(Clone)]
pub struct Key(Storage);

#[derive(Clone)]
enum Storage {
    Inline { len: u8, bytes: [u8; INLINE_BYTES] },
    Heap(Vec<u8>),
}

impl Key {
    /// Appends one byte.
    #[inline]
    pub(crate) fn push(&mut self, byte: u8) {
        match &mut self.0 {
            Storage::Inline { len, bytes } if usize::from(*len) < INLINE_BYTES => {
                bytes[usize::from(*len)] = byte;
                *len += 1;
            }
            Storage::Inline { bytes, .. } => {
                let mut heap = Vec::with_capacity(4 * INLINE_BYTES);
                heap.extend_from_slice(bytes);
                heap.push(byte);
                self.0 = Storage::Heap(heap);
            }
            Storage::Heap(heap) => heap.push(byte),
        }
    }
}

impl From<&[u8]> for Key {
    fn from(source: &[u8]) -> Key {
        if source.len() > INLINE_BYTES {
            return Key(Storage::Heap(source.to_vec()));
        }
        let mut bytes = [0; INLINE_BYTES];
        bytes[..source.len()].copy_from_slice(source);
        Key(Storage::Inline { len: source.len() as u8, bytes })
    }
}

impl Deref for Key {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match &self.0 {
            Storage::Inline { len, bytes } => &bytes[..usize::from(*len)],
            Storage::Heap(heap) => heap,
        }
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"", self.escape_ascii())
    }
}
