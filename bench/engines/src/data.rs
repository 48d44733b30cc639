//! Keys, values and the orders in which workloads visit them: functions of a number and the seed,
//! so that every engine receives the same operations.

use kvant_env::rng::Rng;
use std::ops::RangeInclusive;

pub(crate) const KEY_BYTES: usize = 16;

pub(crate) type Key = [u8; KEY_BYTES];

/// The key of record `number`: decimal digits, which sort as the number. Records have even digits
/// at the end.
pub(crate) fn key(number: u64) -> Key {
    digits(number * 2)
}

/// A key that no record has, right after that of record `number`.
pub(crate) fn absent_key(number: u64) -> Key {
    digits(number * 2 + 1)
}

fn digits(mut number: u64) -> Key {
    let mut key = [b'0'; KEY_BYTES];
    for digit in key.iter_mut().rev() {
        *digit += (number % 10) as u8;
        number /= 10;
    }
    key
}

/// Bytes of the pool that values are slices of.
const POOL_BYTES: usize = 1 << 20;
/// Each piece of the pool is random in its first half, and repeats it in its second: compressors
/// that find repetitions halve it.
const PIECE_BYTES: usize = 100;

/// Values of a range of lengths, slices of one pool.
pub(crate) struct Values {
    pool: Vec<u8>,
    bytes: RangeInclusive<u64>,
}

impl Values {
    pub(crate) fn new(seed: u64, bytes: RangeInclusive<u64>) -> Values {
        let mut rng = Rng::new(seed);
        let mut pool = Vec::new();
        while pool.len() < POOL_BYTES + *bytes.end() as usize {
            let half = rng.bytes(PIECE_BYTES / 2);
            pool.extend_from_slice(&half);
            pool.extend_from_slice(&half);
        }
        Values { pool, bytes }
    }

    /// The value of record `number` after `version` writes.
    pub(crate) fn get(&self, number: u64, version: u64) -> &[u8] {
        let mut rng = Rng::new(number ^ version.rotate_left(40));
        let start = rng.below(POOL_BYTES as u64) as usize;
        let bytes = self.bytes.start() + rng.below(self.bytes.end() - self.bytes.start() + 1);
        &self.pool[start..start + bytes as usize]
    }
}

/// A permutation of `0..count` in pseudorandom order.
pub(crate) struct Permutation {
    count: u64,
    mask: u64,
    shift: u32,
    keys: [u64; 3],
}

impl Permutation {
    pub(crate) fn new(seed: u64, count: u64) -> Permutation {
        let bits = (64 - count.saturating_sub(1).leading_zeros()).max(2);
        let mut rng = Rng::new(seed);
        let keys = std::array::from_fn(|_| rng.next_u64());
        Permutation { count, mask: (1 << bits) - 1, shift: bits / 2, keys }
    }

    /// The number at `index`. Each step is a bijection of the next power of two; numbers beyond the
    /// count are mapped again.
    pub(crate) fn get(&self, index: u64) -> u64 {
        let mut number = index;
        loop {
            for key in self.keys {
                number = number.wrapping_mul(key | 1).wrapping_add(key >> 32) & self.mask;
                number ^= number >> self.shift;
            }
            if number < self.count {
                return number;
            }
        }
    }
}

/// Zipfian ranks (Gray and others, "Quickly generating billion-record synthetic databases", SIGMOD
/// 1994), each at a fixed pseudorandom place.
pub(crate) struct Zipfian {
    places: Permutation,
    zeta: f64,
    eta: f64,
}

const THETA: f64 = 0.99;

impl Zipfian {
    pub(crate) fn new(seed: u64, count: u64) -> Zipfian {
        let zeta = |count: u64| (1..=count).map(|rank| (rank as f64).powf(-THETA)).sum::<f64>();
        let (zeta_all, zeta_two) = (zeta(count), zeta(2));
        let eta = (1.0 - (2.0 / count as f64).powf(1.0 - THETA)) / (1.0 - zeta_two / zeta_all);
        Zipfian { places: Permutation::new(seed, count), zeta: zeta_all, eta }
    }

    pub(crate) fn next(&self, rng: &mut Rng) -> u64 {
        let uniform = (rng.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
        let scaled = uniform * self.zeta;
        let count = self.places.count;
        let rank = if scaled < 1.0 {
            0
        } else if scaled < 1.0 + 0.5f64.powf(THETA) {
            1
        } else {
            let share = (self.eta * uniform - self.eta + 1.0).powf(1.0 / (1.0 - THETA));
            (count as f64 * share) as u64
        };
        self.places.get(rank.min(count - 1))
    }
}

#[cfg(test)]
mod tests;
