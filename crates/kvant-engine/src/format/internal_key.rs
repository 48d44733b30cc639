//! Internal keys: a user key with the sequence number and kind of the write that made it.
//!
//! Order: user keys ascending by unsigned bytes, then trailers descending, so that the newest
//! version of a key comes first. Encoded, an internal key is the user key followed by the trailer
//! as eight bytes, little end first.

use std::cmp::Ordering;

/// Number of a write; every operation has its own, in commit order. At most [`SeqNum::MAX`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SeqNum(pub u64);

impl SeqNum {
    /// The largest sequence number: eight bits of the trailer are the kind's.
    pub const MAX: SeqNum = SeqNum((1 << 56) - 1);
}

/// Number of a file in the data directory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileNum(pub u64);

/// What a write did to its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum ValueKind {
    /// Removed it: a tombstone, with an empty value.
    Delete = 0,
    /// Gave it a value.
    Put = 1,
    /// Gave it a value that expires: the stored value starts with the expiry, eight bytes, little
    /// end first, in milliseconds since 1970 by wall clock. It is gone once the clock reaches it.
    PutExpiring = 2,
}

impl ValueKind {
    /// The kind that `byte` stands for.
    pub(crate) fn from_byte(byte: u8) -> Option<ValueKind> {
        match byte {
            0 => Some(ValueKind::Delete),
            1 => Some(ValueKind::Put),
            2 => Some(ValueKind::PutExpiring),
            _ => None,
        }
    }
}

/// Bytes of an encoded trailer.
pub(crate) const TRAILER_BYTES: usize = 8;

/// A borrowed internal key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct InternalKeyRef<'a> {
    /// The key as the user gave it.
    pub(crate) user_key: &'a [u8],
    /// `sequence number << 8 | kind`.
    pub(crate) trailer: u64,
}

impl<'a> InternalKeyRef<'a> {
    pub(crate) fn new(user_key: &'a [u8], seq: SeqNum, kind: ValueKind) -> Self {
        debug_assert!(seq <= SeqNum::MAX);
        InternalKeyRef { user_key, trailer: seq.0 << 8 | kind as u64 }
    }

    /// The key that sorts before every version of `user_key` that is visible at `seq`, and after
    /// every newer one.
    pub(crate) fn seek(user_key: &'a [u8], seq: SeqNum) -> Self {
        InternalKeyRef { user_key, trailer: seq.0 << 8 | 0xff }
    }

    /// Splits an encoded internal key; `None` when it is too short.
    pub(crate) fn decode(encoded: &'a [u8]) -> Option<Self> {
        let (user_key, trailer) = encoded.split_last_chunk::<TRAILER_BYTES>()?;
        Some(InternalKeyRef { user_key, trailer: u64::from_le_bytes(*trailer) })
    }

    pub(crate) fn seq(self) -> SeqNum {
        SeqNum(self.trailer >> 8)
    }

    /// The kind; `None` when the stored byte is none of ours (corruption).
    pub(crate) fn kind(self) -> Option<ValueKind> {
        ValueKind::from_byte(self.trailer as u8)
    }

    pub(crate) fn encode_to(self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.user_key);
        out.extend_from_slice(&self.trailer.to_le_bytes());
    }

    pub(crate) fn to_owned(self) -> InternalKey {
        InternalKey { user_key: self.user_key.to_vec(), trailer: self.trailer }
    }
}

impl Ord for InternalKeyRef<'_> {
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        self.user_key.cmp(other.user_key).then(other.trailer.cmp(&self.trailer))
    }
}

impl PartialOrd for InternalKeyRef<'_> {
    #[inline]
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// An owned internal key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct InternalKey {
    pub(crate) user_key: Vec<u8>,
    pub(crate) trailer: u64,
}

impl InternalKey {
    pub(crate) fn as_ref(&self) -> InternalKeyRef<'_> {
        InternalKeyRef { user_key: &self.user_key, trailer: self.trailer }
    }
}

/// Splits a stored value into its expiry (milliseconds since 1970) and what the user gave; `None`
/// when an expiring value is shorter than its expiry (corruption).
#[inline]
pub(crate) fn split_expiry(kind: ValueKind, stored: &[u8]) -> Option<(Option<u64>, &[u8])> {
    if kind != ValueKind::PutExpiring {
        return Some((None, stored));
    }
    let (expiry, value) = stored.split_first_chunk::<8>()?;
    Some((Some(u64::from_le_bytes(*expiry)), value))
}
