//! The first bytes of a key as an integer, for comparisons without a memory access.

/// The first eight bytes of `key` as a big-endian integer, padded with zeros.
///
/// Keys with different prefixes are ordered as their prefixes are; keys with equal prefixes must be
/// compared.
#[inline]
pub(crate) fn key_prefix(key: &[u8]) -> u64 {
    if let Some(head) = key.first_chunk::<8>() {
        return u64::from_be_bytes(*head);
    }
    // Short keys are composed of overlapping loads: a copy of variable length would be a call.
    let count = key.len();
    match (key.first_chunk::<4>(), key.last_chunk::<4>()) {
        (Some(head), Some(tail)) => {
            let (head, tail) = (u32::from_be_bytes(*head), u32::from_be_bytes(*tail));
            u64::from(head) << 32 | u64::from(tail) << (8 * (8 - count))
        }
        _ if count == 0 => 0,
        _ => [0, count / 2, count - 1]
            .into_iter()
            .fold(0, |prefix, at| prefix | u64::from(key[at]) << (56 - 8 * at)),
    }
}

#[cfg(test)]
mod tests;
