//! Intervals of ratios that hold all together, from few blocks.
//!
//! For each figure a block gives one number, the logarithm of B by A. The intervals are those of a
//! wild bootstrap over blocks (Liu, 1988; Cameron, Gelbach and Miller, 2008, for few clusters): a
//! draw multiplies the residuals of each block by +1 or -1, the same sign for all figures, so that
//! what figures have in common stays. Of each draw the greatest studentised deviation over all
//! figures counts; its 99th percentile is the common factor of all standard errors. So in 99 of 100
//! comparisons every interval holds the true ratio, and a comparison of equal sides claims any
//! difference at all in one of 100.
//!
//! Drawing blocks with replacement instead gives factors that are too great for eight blocks by a
//! factor of two, and for six by ten: some draws have hardly any distinct block.
//!
//! Invariants:
//! 1. The result is a function of the ratios and the seed.
//! 2. A figure with fewer than [`BLOCKS_MIN`] blocks has no interval.

use kvant_env::rng::Rng;

/// With fewer blocks there are so few patterns of signs that none is rare enough.
pub const BLOCKS_MIN: usize = 8;
/// Probability that all intervals hold.
pub const CONFIDENCE: f64 = 0.99;
/// Draws; with one more, the percentile is one of them.
const DRAWS: usize = 9_999;
/// Histograms have three digits, so that figures which agree in all of them are not known any
/// better: added to each side of an interval, and in quadrature to the deviation of a block.
const ROUNDING: f64 = 0.001;
/// Standard errors beyond the interval at which a difference is seen with a probability of 95 %:
/// Student's t of [`BLOCKS_MIN`] blocks, which more blocks do not exceed.
const POWER_DEVIATIONS: f64 = 1.895;

/// What the blocks say of a figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// B by A: the geometric mean of the blocks.
    pub ratio: f64,
    /// The ratio is at least this ...
    pub low: f64,
    /// ... and at most this.
    pub high: f64,
    /// The least difference, as a part of A, that blocks with this noise show with a probability of
    /// 95 %.
    pub detectable_part: f64,
    /// Blocks.
    pub block_count: usize,
}

impl Interval {
    /// Whether B has more, if the blocks show a difference.
    pub fn difference(&self) -> Option<bool> {
        match () {
            () if self.low > 1.0 => Some(true),
            () => (self.high < 1.0).then_some(false),
        }
    }
}

/// The logarithm of the ratio of a block. `None` if a value is not above 0.
pub fn log_ratio(a: [f64; 2], b: [f64; 2]) -> Option<f64> {
    let sum = |side: [f64; 2]| side[0].ln() + side[1].ln();
    let ratio = (sum(b) - sum(a)) / 2.0;
    ratio.is_finite().then_some(ratio)
}

/// The ratio that blocks have on average, whatever their number; `None` without any.
pub fn mean_ratio(log_ratios: &[Option<f64>]) -> Option<f64> {
    let known: Vec<f64> = log_ratios.iter().copied().flatten().collect();
    (!known.is_empty()).then(|| (known.iter().sum::<f64>() / known.len() as f64).exp())
}

/// The intervals of all figures. `figures` has the logarithm of each block's ratio, in the same
/// order of blocks; `None` where a block has not measured the figure.
pub fn simultaneous(figures: &[Vec<Option<f64>>], seed: u64) -> Vec<Option<Interval>> {
    let samples: Vec<Option<Sample>> = figures.iter().map(|blocks| Sample::of(blocks)).collect();
    let block_count = figures.iter().map(Vec::len).max().unwrap_or(0);
    let factor = factor(&samples, block_count, seed);
    samples.iter().map(|sample| sample.as_ref().map(|sample| sample.interval(factor))).collect()
}

/// The blocks of a figure.
struct Sample {
    mean: f64,
    /// Index of the block, and what it is off the mean.
    residuals: Vec<(usize, f64)>,
    square_sum: f64,
}

impl Sample {
    fn of(blocks: &[Option<f64>]) -> Option<Sample> {
        let known: Vec<(usize, f64)> = blocks
            .iter()
            .enumerate()
            .filter_map(|(index, value)| Some((index, (*value)?)))
            .collect();
        if known.len() < BLOCKS_MIN {
            return None;
        }
        let mean = known.iter().map(|(_, value)| value).sum::<f64>() / known.len() as f64;
        let residuals: Vec<(usize, f64)> =
            known.into_iter().map(|(index, value)| (index, value - mean)).collect();
        let square_sum = residuals.iter().map(|(_, residual)| residual * residual).sum();
        Some(Sample { mean, residuals, square_sum })
    }

    /// Standard error of a mean with these residuals, of which `mean` is what they are off in sum.
    fn error(&self, mean: f64) -> f64 {
        let count = self.residuals.len() as f64;
        let variance = (self.square_sum - count * mean * mean).max(0.0) / (count - 1.0);
        ((variance + ROUNDING * ROUNDING) / count).sqrt()
    }

    /// The studentised mean of the residuals with these signs of blocks.
    fn deviation(&self, is_negative: &[bool]) -> f64 {
        let signed = |(index, residual): &(usize, f64)| {
            if is_negative[*index] { -residual } else { *residual }
        };
        let sum: f64 = self.residuals.iter().map(signed).sum();
        let mean = sum / self.residuals.len() as f64;
        mean.abs() / self.error(mean)
    }

    fn interval(&self, factor: f64) -> Interval {
        let error = self.error(0.0);
        let half_width = factor * error + ROUNDING;
        Interval {
            ratio: self.mean.exp(),
            low: (self.mean - half_width).exp(),
            high: (self.mean + half_width).exp(),
            detectable_part: (half_width + POWER_DEVIATIONS * error).exp_m1(),
            block_count: self.residuals.len(),
        }
    }
}

/// How many standard errors all figures together are off, at most, in all but 1 of 100 draws.
fn factor(samples: &[Option<Sample>], block_count: usize, seed: u64) -> f64 {
    let mut rng = Rng::new(seed);
    let mut is_negative = vec![false; block_count];
    let draw = |_| {
        is_negative.iter_mut().for_each(|sign| *sign = rng.next_u64() & 1 == 1);
        let deviations = samples.iter().flatten().map(|sample| sample.deviation(&is_negative));
        deviations.fold(0.0, f64::max)
    };
    let mut greatest: Vec<f64> = (0..DRAWS).map(draw).collect();
    greatest.sort_by(f64::total_cmp);
    greatest[((DRAWS + 1) as f64 * CONFIDENCE) as usize - 1]
}

#[cfg(test)]
mod tests;
