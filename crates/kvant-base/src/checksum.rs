//! CRC-32C with LevelDB's mask. The mask keeps the checksum useful over data that itself contains
//! checksums.

const MASK_DELTA: u32 = 0xa282_ead8;

/// Masked CRC-32C of the concatenation of `parts`.
#[inline]
pub fn crc32c_masked(parts: &[&[u8]]) -> u32 {
    let crc = parts.iter().fold(0, |crc, part| crc32c::crc32c_append(crc, part));
    crc.rotate_right(15).wrapping_add(MASK_DELTA)
}
