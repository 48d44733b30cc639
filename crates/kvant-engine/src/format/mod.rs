//! The vocabulary of everything stored: sequence numbers, file numbers, value kinds, internal keys,
//! file names, values.

mod filename;
mod internal_key;
mod key_prefix;
pub(crate) mod value;

pub(crate) use filename::{FileKind, file_name, file_path, parse_file_name};
pub(crate) use internal_key::ValueKind;
pub use internal_key::{FileNum, SeqNum};
pub(crate) use internal_key::{InternalKey, InternalKeyRef, TRAILER_BYTES, split_expiry};
pub(crate) use key_prefix::{common_prefix_bytes, key_prefix};

/// The hash of a user key in filters, hash indexes of data blocks and memtables. Part of the table
/// format.
#[inline]
pub(crate) fn key_hash(user_key: &[u8]) -> u64 {
    twox_hash::XxHash3_64::oneshot(user_key)
}

/// The little-endian integer at `offset` of a header, whose length the caller has checked.
pub(crate) fn u32_at(bytes: &[u8], offset: usize) -> u32 {
    u32::from_le_bytes(bytes[offset..offset + 4].try_into().expect("the range has four bytes"))
}

/// As [`u32_at`], of eight bytes.
pub(crate) fn u64_at(bytes: &[u8], offset: usize) -> u64 {
    u64::from_le_bytes(bytes[offset..offset + 8].try_into().expect("the range has eight bytes"))
}
