//! Records that are functions of their number, so that readers can verify them.

use kvant_env::rng::Rng;

const POOL_BYTES: usize = 1 << 20;

/// Values are slices of one pool of random bytes: incompressible and without cost.
pub(crate) struct Records {
    pool: Vec<u8>,
    value_bytes_max: u64,
    value_bytes_min: u64,
    seed: u64,
}

impl Records {
    /// Records with values of `value_bytes_min..=value_bytes_max` bytes.
    pub(crate) fn new(seed: u64, value_bytes_min: u64, value_bytes_max: u64) -> Records {
        let pool = Rng::new(seed).bytes(POOL_BYTES + value_bytes_max as usize);
        Records { pool, value_bytes_max, value_bytes_min, seed }
    }

    /// The value of record `number` after `version` writes.
    pub(crate) fn value(&self, number: u64, version: u64) -> &[u8] {
        let mut rng =
            Rng::new(self.seed ^ number.wrapping_mul(0x9e37_79b9) ^ version.rotate_left(40));
        let start = rng.below(POOL_BYTES as u64) as usize;
        let len = self.value_bytes_min + rng.below(self.value_bytes_max - self.value_bytes_min + 1);
        &self.pool[start..start + len as usize]
    }
}

/// The key of record `number`; keys sort as their numbers.
pub(crate) fn key(number: u64) -> [u8; KEY_BYTES] {
    let mut digits = *b"key000000000000";
    let mut rest = number;
    for digit in digits[3..].iter_mut().rev() {
        *digit += (rest % 10) as u8;
        rest /= 10;
    }
    digits
}

/// An absent key between those of `number` and the next.
pub(crate) fn absent_key(number: u64) -> [u8; KEY_BYTES + 1] {
    let mut bytes = [b'x'; KEY_BYTES + 1];
    bytes[..KEY_BYTES].copy_from_slice(&key(number));
    bytes
}

/// The number of the record with this key.
pub(crate) fn number_of(key: &[u8]) -> Option<u64> {
    std::str::from_utf8(key.strip_prefix(b"key")?).ok()?.parse().ok()
}

/// Length of every key.
pub(crate) const KEY_BYTES: usize = 15;

/// The numbers `0..count`, each once, in an order that separates neighbours.
pub(crate) fn shuffled(count: u64) -> impl Iterator<Item = u64> {
    // A stride near the golden ratio spreads well; coprime to the count, it visits every number.
    let golden = (count as f64 * 0.618_034) as u64;
    let stride = (golden..)
        .find(|&stride| common_factor(stride, count) == 1)
        .expect("count + 1 shares no factor with count");
    (0..count).map(move |index| index * stride % count)
}

fn common_factor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { common_factor(b, a % b) }
}
