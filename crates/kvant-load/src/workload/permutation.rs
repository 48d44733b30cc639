//! Spreads ranks over keys: a fixed permutation of `0..count`, computed instead of stored.
//!
//! Xor-shifts and multiplications by odd numbers are bijections of the numbers below a power of
//! two. A result that is not below `count` is mapped again until it is ("cycle walking", Black and
//! Rogaway, "Ciphers with arbitrary finite domains", 2002): less than twice on average.

#[derive(Clone, Copy, Debug)]
pub(super) struct Permutation {
    count: u64,
    mask: u64,
    shift: u32,
}

impl Permutation {
    /// The permutation of `0..count`, where `count` is within 1 and 2^62.
    pub(super) fn new(count: u64) -> Permutation {
        let bits = 64 - (count - 1).leading_zeros().min(62);
        Permutation { count, mask: (1 << bits) - 1, shift: bits.div_ceil(2) }
    }

    /// Maps `at`, which is below `count`.
    #[inline]
    pub(super) fn map(&self, at: u64) -> u64 {
        let mut x = at;
        loop {
            x = self.step(x);
            if x < self.count {
                return x;
            }
        }
    }

    fn step(&self, x: u64) -> u64 {
        let x = x ^ (x >> self.shift);
        let x = x.wrapping_mul(0x9e37_79b9_7f4a_7c15) & self.mask;
        let x = x ^ (x >> self.shift);
        let x =
            x.wrapping_add(0xd1b5_4a32_d192_ed03).wrapping_mul(0xbf58_476d_1ce4_e5b9) & self.mask;
        x ^ (x >> self.shift)
    }
}

#[cfg(test)]
mod tests;
