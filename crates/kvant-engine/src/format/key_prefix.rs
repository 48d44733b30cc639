//! The first bytes of a key as an integer, for comparisons without a memory access; what two keys
//! have in common.

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

/// How many bytes at the beginning of `a` and `b` are the same.
#[inline]
pub(crate) fn common_prefix_bytes(a: &[u8], b: &[u8]) -> usize {
    let (a_words, _) = a.as_chunks::<8>();
    let (b_words, _) = b.as_chunks::<8>();
    let mut common = 0;
    for (a_word, b_word) in a_words.iter().zip(b_words) {
        let difference = u64::from_le_bytes(*a_word) ^ u64::from_le_bytes(*b_word);
        if difference != 0 {
            return common + (difference.trailing_zeros() / 8) as usize;
        }
        common += 8;
    }
    common + a[common..].iter().zip(&b[common..]).take_while(|(x, y)| x == y).count()
}

#[cfg(test)]
mod tests;
