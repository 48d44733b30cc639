//! Intervals of shifts that hold all together, from blocks whose sides chance has chosen.
//!
//! For each figure a block gives one number, treated less control. If nothing differed, each number
//! could as well have the other sign: chance decided which side was treated. So signed ranks
//! (Wilcoxon, 1945) have a distribution that is known whatever the numbers are. A draw flips what
//! blocks are off their estimate, the same blocks for all figures, so that what figures have in
//! common stays, and takes the greatest standardised rank sum of all figures; its 99th percentile
//! bounds all of them. The shifts that a bound does not reject are an interval, whose ends are
//! means of two numbers of the figure (Hodges and Lehmann, 1963).
//!
//! Ranks and not means: what a suspect adds varies by an order of magnitude from block to block,
//! and a mean is then known too badly to tell it from 0 although every block has the same sign.
//!
//! Invariants:
//! 1. The result is a function of the numbers and the seed.
//! 2. A figure has no interval if no pattern of signs would be rare enough, as with few blocks.

use kvant_env::rng::Rng;

/// Probability that all intervals hold.
pub const CONFIDENCE: f64 = 0.99;
/// Draws; with one more, the percentile is one of them.
const DRAWS: usize = 9_999;
/// Standard errors beyond the interval at which a shift is seen with a probability of 95 %.
const POWER_DEVIATIONS: f64 = 1.645;

/// What the blocks say of a figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shift {
    /// The median of the means of any two numbers.
    pub estimate: f64,
    /// The shift is at least this ...
    pub low: f64,
    /// ... and at most this.
    pub high: f64,
    /// The least shift that blocks with this noise show with a probability of 95 %.
    pub detectable: f64,
}

/// The median of the means of any two numbers, whatever their count; `None` without any.
pub fn estimate(numbers: &[Option<f64>]) -> Option<f64> {
    Sample::of(numbers).estimate()
}

/// The intervals of all figures. `figures` has the number of each block, in the same order of
/// blocks; `None` where a block has not measured the figure.
pub fn simultaneous(figures: &[Vec<Option<f64>>], seed: u64) -> Vec<Option<Shift>> {
    let samples: Vec<Sample> = figures.iter().map(|numbers| Sample::of(numbers)).collect();
    let block_count = figures.iter().map(Vec::len).max().unwrap_or(0);
    let bound = bound(&samples, block_count, seed);
    let shift = |sample: &Sample| {
        let (low, high) = sample.interval(bound)?;
        let half_width = (high - low) / 2.0;
        Some(Shift {
            estimate: sample.estimate()?,
            low,
            high,
            detectable: half_width * (1.0 + POWER_DEVIATIONS / bound),
        })
    };
    samples.iter().map(shift).collect()
}

/// The blocks of a figure.
struct Sample {
    /// Index of the block, and the rank of what it is off the estimate, with its sign. Of equal
    /// ones the first has the lower rank.
    ranks: Vec<(usize, f64)>,
    /// Means of any two numbers, and of each with itself, ascending.
    means: Vec<f64>,
}

impl Sample {
    fn of(numbers: &[Option<f64>]) -> Sample {
        let mut known: Vec<(usize, f64)> =
            numbers.iter().enumerate().filter_map(|(at, number)| Some((at, (*number)?))).collect();
        let of_pairs = known.iter().enumerate().flat_map(|(at, (_, number))| {
            known[at..].iter().map(move |(_, other)| (number + other) / 2.0)
        });
        let mut means: Vec<f64> = of_pairs.collect();
        means.sort_by(f64::total_cmp);
        let mut sample = Sample { ranks: Vec::new(), means };
        let estimate = sample.estimate().unwrap_or_default();
        known.iter_mut().for_each(|(_, number)| *number -= estimate);
        known.sort_by(|(_, a), (_, b)| a.abs().total_cmp(&b.abs()));
        let rank = |(index, (block, off)): (usize, &(usize, f64))| {
            (*block, (index as f64 + 1.0).copysign(*off))
        };
        sample.ranks = known.iter().enumerate().map(rank).collect();
        sample
    }

    fn estimate(&self) -> Option<f64> {
        let middle = self.means.len() / 2;
        let upper = *self.means.get(middle)?;
        let is_odd = self.means.len() % 2 == 1;
        Some(if is_odd { upper } else { (self.means[middle - 1] + upper) / 2.0 })
    }

    /// The standard deviation of the rank sum.
    fn spread(&self) -> f64 {
        let count = self.ranks.len() as f64;
        (count * (count + 1.0) * (2.0 * count + 1.0) / 6.0).sqrt()
    }

    /// The rank sum after these blocks were flipped, by its standard deviation.
    fn deviation(&self, is_flipped: &[bool]) -> f64 {
        let signed = |(block, rank): &(usize, f64)| if is_flipped[*block] { -rank } else { *rank };
        self.ranks.iter().map(signed).sum::<f64>().abs() / self.spread().max(1.0)
    }

    /// The shifts that a bound of the rank sum does not reject: the number of means above a shift
    /// is the sum of the positive ranks of what is left of the numbers.
    fn interval(&self, bound: f64) -> Option<(f64, f64)> {
        let least = (self.means.len() as f64 - bound * self.spread()) / 2.0;
        let rank = (least - 1e-9).ceil().max(0.0) as usize;
        let low = self.means.get(rank.checked_sub(1)?)?;
        let high = self.means.get(self.means.len() - rank)?;
        Some((*low, *high))
    }
}

/// What the greatest rank sum of all figures does not exceed in all but 1 of 100 draws.
fn bound(samples: &[Sample], block_count: usize, seed: u64) -> f64 {
    let mut rng = Rng::new(seed);
    let mut is_flipped = vec![false; block_count];
    let draw = |_| {
        is_flipped.iter_mut().for_each(|flip| *flip = rng.next_u64() & 1 == 1);
        samples.iter().map(|sample| sample.deviation(&is_flipped)).fold(0.0, f64::max)
    };
    let mut greatest: Vec<f64> = (0..DRAWS).map(draw).collect();
    greatest.sort_by(f64::total_cmp);
    greatest[((DRAWS + 1) as f64 * CONFIDENCE) as usize - 1]
}

#[cfg(test)]
mod tests;
