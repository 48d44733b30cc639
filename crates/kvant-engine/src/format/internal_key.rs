//! Internal keys: a user key with the sequence number and kind of its write.
//!
//! Order: user keys ascending by unsigned bytes, then trailers descending, so the newest version of
//! a key comes first. An encoded internal key is the user key followed by the trailer, eight bytes
//! little-endian.

use std::cmp::Ordering;

/// Sequence number of an operation, in commit order. At most [`SeqNum::MAX`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SeqNum(pub u64);

impl SeqNum {
    /// The largest sequence number: the other eight bits of a trailer hold the kind.
    pub const MAX: SeqNum = SeqNum((1 << 56) - 1);
}

/// Number of a file in the data directory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileNum(pub u64);

/// What an entry says about its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum ValueKind {
    /// A tombstone, with an empty value.
    Delete = 0,
    /// A value.
    Put = 1,
    /// A value that expires when the wall clock reaches its expiry. The stored value starts with
    /// the expiry: eight bytes little-endian, milliseconds since 1970.
    PutExpiring = 2,
}

impl ValueKind {
    pub(crate) fn from_byte(byte: u8) -> Option<ValueKind> {
        match byte {
            0 => Some(ValueKind::Delete),
            1 => Some(ValueKind::Put),
            2 => Some(ValueKind::PutExpiring),
            _ => None,
        }
    }
}

pub(crate) const TRAILER_BYTES: usize = 8;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct InternalKeyRef<'a> {
    pub(crate) user_key: &'a [u8],
    /// `sequence number << 8 | kind`.
    pub(crate) trailer: u64,
}

impl<'a> InternalKeyRef<'a> {
    pub(crate) fn new(user_key: &'a [u8], seq: SeqNum, kind: ValueKind) -> Self {
        debug_assert!(seq <= SeqNum::MAX);
        InternalKeyRef { user_key, trailer: seq.0 << 8 | kind as u64 }
    }

    /// The key that sorts before every version of `user_key` visible at `seq`, and after every
    /// newer version.
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

    /// The kind; `None` for an unknown byte (corruption).
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

/// An owned internal key. See [`InternalKeyRef`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct InternalKey {
    pub(crate) user_key: Vec<u8>,
    pub(crate) trailer: u64,
}

impl InternalKey {
    pub(crate) fn as_ref(&self) -> InternalKeyRef<'_> {
        InternalKeyRef { user_key: &self.user_key, trailer: self.trailer }
    }

    /// Copies `key`, reusing the allocation.
    #[inline]
    pub(crate) fn assign(&mut self, key: InternalKeyRef<'_>) {
        self.user_key.clear();
        self.user_key.extend_from_slice(key.user_key);
        self.trailer = key.trailer;
    }
}

/// Splits a stored value into its expiry (milliseconds since 1970) and the user's value; `None`
/// when an expiring value is shorter than its expiry (corruption).
#[inline]
pub(crate) fn split_expiry(kind: ValueKind, stored: &[u8]) -> Option<(Option<u64>, &[u8])> {
    if kind != ValueKind::PutExpiring {
        return Some((None, stored));
    }
    let (expiry, value) = stored.split_first_chunk::<8>()?;
    Some((Some(u64::from_le_bytes(*expiry)), value))
}
