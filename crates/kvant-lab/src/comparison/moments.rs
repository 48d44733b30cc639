//! The moments of an experiment: when which suspect is made to happen, and when nothing is.
//!
//! A block has each suspect in two neighbouring moments. Which of both is the control, the order of
//! the suspects, and the time before each moment are drawn. So whatever else the server and the
//! machine do has the same chance to meet the suspect and its control.

use kvant_env::rng::Rng;

/// A moment to come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// Index of the suspect.
    pub suspect: usize,
    /// Whether it is made to happen.
    pub is_treated: bool,
    /// Time to wait before it.
    pub gap_ns: u64,
}

/// The moments of a block, with gaps in `gap_ns`. Blocks are counted from 1.
pub fn moments(
    seed: u64,
    block: u32,
    suspect_count: usize,
    gap_ns: std::ops::Range<u64>,
) -> Vec<Moment> {
    let mut rng = Rng::new(seed.wrapping_add(u64::from(block)));
    let mut suspects: Vec<usize> = (0..suspect_count).collect();
    rng.shuffle(&mut suspects);
    let spread_ns = (gap_ns.end - gap_ns.start).max(1);
    let mut moments = Vec::new();
    for suspect in suspects {
        let is_first_treated = rng.next_u64() & 1 == 1;
        for is_treated in [is_first_treated, !is_first_treated] {
            let gap_ns = gap_ns.start + rng.below(spread_ns);
            moments.push(Moment { suspect, is_treated, gap_ns });
        }
    }
    moments
}

#[cfg(test)]
mod tests;
