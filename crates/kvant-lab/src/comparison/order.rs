//! The order of the attempts of a comparison.

use kvant_env::rng::Rng;

/// Repeats that make a block: each side is measured once in a repeat.
pub const REPEATS_OF_BLOCK: u32 = 2;

/// Whether B is measured before A in a repeat, counted from 1. The second repeat of a block has the
/// order opposite to that of the first: A B B A, or B A A B, as the seed says.
pub fn is_b_first(seed: u64, repeat: u32) -> bool {
    let index = repeat.saturating_sub(1);
    let block = u64::from(index / REPEATS_OF_BLOCK);
    let begins_with_b = Rng::new(seed.wrapping_add(block)).next_u64() & 1 == 1;
    begins_with_b != (index % REPEATS_OF_BLOCK == 1)
}

/// The repeats of each block.
pub fn blocks(repeats: u32) -> impl Iterator<Item = [u32; 2]> {
    (1..=repeats / REPEATS_OF_BLOCK).map(|block| [2 * block - 1, 2 * block])
}

#[cfg(test)]
mod tests;
