//! The key of a cached block and its hash.

use crate::format::FileNum;
use std::hash::{BuildHasherDefault, Hasher};

/// Identifies a block. File numbers are never reused, so an entry is never stale.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct BlockKey {
    pub(crate) file_num: FileNum,
    pub(crate) offset_bytes: u64,
}

pub(super) type BuildBlockHasher = BuildHasherDefault<BlockHasher>;

/// Hashes the two numbers of a [`BlockKey`]. No client chooses them, so the hash needs no key.
#[derive(Default)]
pub(super) struct BlockHasher(u64);

impl Hasher for BlockHasher {
    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(u64::from(byte));
        }
    }

    #[inline]
    fn write_u64(&mut self, number: u64) {
        let product = u128::from(self.0 ^ number ^ 0x9e37_79b9_7f4a_7c15) * 0xd6e8_feb8_6659_fd93;
        self.0 = product as u64 ^ (product >> 64) as u64;
    }

    #[inline]
    fn finish(&self) -> u64 {
        self.0
    }
}
