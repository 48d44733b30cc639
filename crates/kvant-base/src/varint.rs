//! LEB128 variable-length unsigned integers as in LevelDB: seven bits per byte, low bits first; the
//! high bit means that another byte follows.

/// The longest encoding of a `u64`.
pub const VARINT64_BYTES_MAX: usize = 10;

/// Appends `value` to `out`.
#[inline]
pub fn put_u64(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends `value` to `out`.
#[inline]
pub fn put_u32(out: &mut Vec<u8>, value: u32) {
    put_u64(out, u64::from(value));
}

/// Length of the encoding of `value`.
#[inline]
pub fn encoded_bytes(value: u64) -> usize {
    (64 - (value | 1).leading_zeros() as usize).div_ceil(7)
}

/// Reads a `u64` from the front of `input` and advances it; `None` if it is truncated or overlong.
#[inline]
pub fn take_u64(input: &mut &[u8]) -> Option<u64> {
    let first = *input.first()?;
    if first < 0x80 {
        *input = &input[1..];
        return Some(u64::from(first));
    }
    let mut value = 0u64;
    for (index, &byte) in input.iter().take(VARINT64_BYTES_MAX).enumerate() {
        let shift = 7 * index as u32;
        let bits = u64::from(byte & 0x7f);
        if shift == 63 && bits > 1 {
            return None;
        }
        value |= bits << shift;
        if byte < 0x80 {
            *input = &input[index + 1..];
            return Some(value);
        }
    }
    None
}

/// Reads a `u32` from the front of `input` and advances it; `None` if it is truncated or too large.
#[inline]
pub fn take_u32(input: &mut &[u8]) -> Option<u32> {
    let mut rest = *input;
    let value = u32::try_from(take_u64(&mut rest)?).ok()?;
    *input = rest;
    Some(value)
}

/// Takes `count` bytes from the front of `input`; `None` if there are fewer.
#[inline]
pub fn take_bytes<'a>(input: &mut &'a [u8], count: usize) -> Option<&'a [u8]> {
    let (head, rest) = input.split_at_checked(count)?;
    *input = rest;
    Some(head)
}

#[cfg(test)]
mod tests;
