//! Values: slices of one table of random letters and digits, so that making a value costs one copy.
//!
//! Slices overlap, but repetitions are at least `WINDOW_BYTES` of other values apart on average:
//! blocks of them compress as badly as random text.

use super::lengths;
use kvant_env::rng::Rng;

/// The longest value, in bytes.
pub const BYTES_MAX: u64 = 1 << 30;

/// Offsets in the table at which a value may begin: a power of two.
const WINDOW_BYTES: u64 = 1 << 18;

/// The length of values, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueBytes {
    /// Always the same.
    Fixed(u64),
    /// Each length from `min` to `max` with the same probability.
    Random {
        /// The shortest.
        min: u64,
        /// The longest.
        max: u64,
    },
    /// `min` for the first put over all threads, one more for each following one, and `min` again
    /// after `max`.
    Growing {
        /// The shortest.
        min: u64,
        /// The longest.
        max: u64,
    },
}

impl Default for ValueBytes {
    fn default() -> ValueBytes {
        ValueBytes::Fixed(12)
    }
}

impl ValueBytes {
    /// Parses `N`, `A..B` (random), or `grow:A..B`.
    pub fn parse(text: &str) -> Result<ValueBytes, String> {
        if let Some(range) = text.strip_prefix("grow:") {
            let (min, max) = lengths::parse(range)?;
            return Ok(ValueBytes::Growing { min, max });
        }
        let (min, max) = lengths::parse(text)?;
        Ok(if text.contains("..") {
            ValueBytes::Random { min, max }
        } else {
            ValueBytes::Fixed(min)
        })
    }

    /// The longest.
    pub fn max(self) -> u64 {
        match self {
            ValueBytes::Fixed(length) => length,
            ValueBytes::Random { max, .. } | ValueBytes::Growing { max, .. } => max,
        }
    }

    pub(super) fn problems(self) -> Vec<String> {
        let (min, max) = match self {
            ValueBytes::Fixed(length) => (length, length),
            ValueBytes::Random { min, max } | ValueBytes::Growing { min, max } => (min, max),
        };
        lengths::problems("values", min, max, 0..=BYTES_MAX)
    }
}

#[derive(Debug)]
pub(super) struct Values {
    lengths: ValueBytes,
    table: Vec<u8>,
}

impl Values {
    /// Values of these lengths, which have no [`ValueBytes::problems`].
    pub(super) fn new(lengths: ValueBytes, seed: u64) -> Values {
        let table_bytes = WINDOW_BYTES + lengths.max();
        Values { lengths, table: letters(&mut Rng::new(seed), table_bytes as usize) }
    }

    /// A value for the `number`th put over all threads.
    #[inline]
    pub(super) fn next(&self, number: u64, rng: &mut Rng) -> &[u8] {
        let start = (rng.next_u64() & (WINDOW_BYTES - 1)) as usize;
        let length = match self.lengths {
            ValueBytes::Fixed(length) => length,
            ValueBytes::Random { min, max } => min + rng.below(max - min + 1),
            ValueBytes::Growing { min, max } => min + number % (max - min + 1),
        };
        &self.table[start..start + length as usize]
    }
}

/// `count` random letters and digits.
pub(super) fn letters(rng: &mut Rng, count: usize) -> Vec<u8> {
    const ALPHABET: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    (0..count).map(|_| ALPHABET[rng.below(62) as usize]).collect()
}

#[cfg(test)]
mod tests;
