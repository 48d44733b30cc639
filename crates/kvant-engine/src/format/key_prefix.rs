//! The first bytes of a key as one integer: a comparison that needs no memory access.

/// The first eight bytes of `user_key` as a big-endian integer, shorter keys padded with zeros.
///
/// Where two prefixes differ, the keys differ in the same direction; where they are equal, the keys must be compared.
#[inline]
pub(crate) fn key_prefix(user_key: &[u8]) -> u64 {
    if let Some(head) = user_key.first_chunk::<8>() {
        return u64::from_be_bytes(*head);
    }
    let mut padded = [0; 8];
    padded[..user_key.len()].copy_from_slice(user_key);
    u64::from_be_bytes(padded)
}
