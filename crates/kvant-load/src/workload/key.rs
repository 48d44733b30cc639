//! The bytes of keys, the same for fills, workloads and scripts.
//!
//! Key number `i` begins with `i` in decimal, padded with zeros to [`DIGITS`] digits:
//! `000000000042`. Keys therefore sort as numbers, and a workload with fewer keys than a fill reads
//! keys that the fill stored. In longer keys pseudorandom letters and digits follow, which depend
//! on the number alone.
//!
//! A key that is never stored has the digits of a stored one, then a hyphen: `000000000042-`. It
//! sorts between the keys 42 and 43, so that the key bounds of files and blocks do not reveal that
//! it is absent.
//!
//! No byte needs percent-encoding in a URL.

use super::lengths;
use super::value::letters;
use kvant_env::rng::Rng;

/// Digits of a key.
pub const DIGITS: usize = 12;
/// The highest number of a key.
pub const INDEX_MAX: u64 = 999_999_999_999;
/// The longest key, in bytes.
pub const BYTES_MAX: u64 = 16_384;

/// Offsets in the table at which the bytes after the digits may begin: a power of two.
const WINDOW_BYTES: u64 = 1 << 16;
/// Follows the digits in a key that is never stored.
const ABSENT: u8 = b'-';

/// The length of keys; within the bounds it depends on the key's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyBytes {
    /// The shortest.
    pub min: u64,
    /// The longest.
    pub max: u64,
}

impl Default for KeyBytes {
    fn default() -> KeyBytes {
        KeyBytes { min: DIGITS as u64, max: DIGITS as u64 }
    }
}

impl KeyBytes {
    /// Parses `N` or `A..B`.
    pub fn parse(text: &str) -> Result<KeyBytes, String> {
        let (min, max) = lengths::parse(text)?;
        Ok(KeyBytes { min, max })
    }

    pub(super) fn problems(self) -> Vec<String> {
        lengths::problems("keys", self.min, self.max, DIGITS as u64..=BYTES_MAX)
    }
}

/// Keys of certain lengths, by their numbers.
#[derive(Debug)]
pub struct Keys {
    /// Bytes after the digits in the shortest key.
    padding_min: u64,
    length_count: u64,
    padding: Vec<u8>,
}

impl Keys {
    /// Writes keys of these lengths, which are within the bounds of a
    /// [`WorkloadConfig`](super::WorkloadConfig).
    pub fn new(lengths: KeyBytes) -> Keys {
        let padding_max = lengths.max - DIGITS as u64;
        let table_bytes = if padding_max == 0 { 0 } else { WINDOW_BYTES + padding_max };
        // A constant seed: keys are the same in all runs.
        let padding = letters(&mut Rng::new(0x6b65_7973), table_bytes as usize);
        Keys {
            padding_min: lengths.min - DIGITS as u64,
            length_count: lengths.max - lengths.min + 1,
            padding,
        }
    }

    /// Appends key number `index`.
    #[inline]
    pub fn append(&self, index: u64, out: &mut Vec<u8>) {
        append_digits(index, out);
        out.extend_from_slice(self.padding(index));
    }

    /// Appends the key that is never stored and sorts between number `index` and the next.
    #[inline]
    pub(super) fn append_absent(&self, index: u64, out: &mut Vec<u8>) {
        append_digits(index, out);
        out.push(ABSENT);
        out.extend_from_slice(self.padding(index).get(1..).unwrap_or_default());
    }

    /// The length of key number `index`, in bytes.
    pub(super) fn length(&self, index: u64) -> u64 {
        (DIGITS + self.padding(index).len()) as u64
    }

    #[inline]
    fn padding(&self, index: u64) -> &[u8] {
        if self.padding.is_empty() {
            return &[];
        }
        let mut hash = Rng::new(index);
        let start = hash.next_u64() & (WINDOW_BYTES - 1);
        let length = self.padding_min + hash.below(self.length_count);
        &self.padding[start as usize..(start + length) as usize]
    }
}

/// Appends exactly [`DIGITS`] digits.
#[inline]
fn append_digits(index: u64, out: &mut Vec<u8>) {
    let mut digits = [b'0'; DIGITS];
    let mut rest = index;
    for pair in digits.rchunks_exact_mut(2) {
        let two = (rest % 100) as u8;
        rest /= 100;
        pair[0] = b'0' + two / 10;
        pair[1] = b'0' + two % 10;
    }
    out.extend_from_slice(&digits);
}

#[cfg(test)]
mod tests;
