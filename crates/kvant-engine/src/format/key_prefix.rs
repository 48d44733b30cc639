//! The first bytes of a key as one integer: a comparison that needs no memory access.

/// The first eight bytes of `user_key` as a big-endian integer, shorter keys padded with zeros.
///
/// Where two prefixes differ, the keys differ in the same direction; where they are equal, the keys
/// must be compared.
#[inline]
pub(crate) fn key_prefix(user_key: &[u8]) -> u64 {
    if let Some(head) = user_key.first_chunk::<8>() {
        return u64::from_be_bytes(*head);
    }
    // Short keys from pieces that overlap: a copy of any number of bytes would be a call.
    let count = user_key.len();
    match (user_key.first_chunk::<4>(), user_key.last_chunk::<4>()) {
        (Some(head), Some(tail)) => {
            let (head, tail) = (u32::from_be_bytes(*head), u32::from_be_bytes(*tail));
            u64::from(head) << 32 | u64::from(tail) << (8 * (8 - count))
        }
        _ if count == 0 => 0,
        _ => [0, count / 2, count - 1]
            .into_iter()
            .fold(0, |prefix, at| prefix | u64::from(user_key[at]) << (56 - 8 * at)),
    }
}

#[cfg(test)]
mod tests;
