//! The order of the phases of an attempt that asks what a faster stage would bring: drawn, so that
//! a trend of the machine or of the store meets all of them alike.

use kvant_env::rng::Rng;

/// Per cent by which the stage is sped up, phase by phase: each of `percents` once, and 0. Blocks
/// are counted from 1.
pub fn order(seed: u64, block: u32, case: usize, percents: &[u32]) -> Vec<u32> {
    let of_block = Rng::new(seed.wrapping_add(u64::from(block))).next_u64();
    let mut rng = Rng::new(of_block.wrapping_add(case as u64));
    let mut order: Vec<u32> = percents.iter().copied().chain([0]).collect();
    rng.shuffle(&mut order);
    order
}

#[cfg(test)]
mod tests;
