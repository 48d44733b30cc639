//! Makes room when there are more samples than fit: drops small ones at random and raises the
//! weights of those that remain.
//!
//! Below a threshold `t`, a sample of weight `w` is kept with probability `w / t` and then weighs
//! `t`; larger samples are unchanged. So sums are unbiased, large samples are never lost, and the
//! result is as if the mean per sample had been `t` from the start (threshold sampling: N.
//! Duffield, C. Lund, M. Thorup, "Learn more, sample less: control of volume and variance in
//! network measurement", 2005).
//!
//! Invariant: no kept sample weighs less than the threshold of its kind.
//!
//! Threads: one, the drain.

use super::chance;
use crate::recording::{Kind, Sample};

/// A kind with less than one in this many of all samples is not thinned: idle threads must not
/// displace the few waits for a lock. Even if all other kinds are spared, a quarter of the samples
/// go.
const FEW_PART: usize = 16;
/// More rounds do not help where a few samples weigh far more than all others.
const ROUNDS: usize = 8;

#[derive(Default)]
pub(super) struct Thinning {
    /// By [`Kind::code`]; 0 keeps all.
    thresholds: [u64; Kind::ALL.len()],
}

impl Thinning {
    /// The new weight of a sample; `None` if it is dropped.
    #[inline]
    pub(super) fn keep(&self, kind: Kind, weight: u64) -> Option<u64> {
        let threshold = self.threshold(kind);
        let stays = weight >= threshold || chance::fraction() * (threshold as f64) < weight as f64;
        stays.then_some(weight.max(threshold))
    }

    /// The smallest weight of samples of this kind; 0 if none was dropped.
    pub(super) fn threshold(&self, kind: Kind) -> u64 {
        self.thresholds[usize::from(kind.code())]
    }

    /// Drops about half of `samples`; returns the new index of each that is kept.
    pub(super) fn thin(&mut self, samples: &mut Vec<Sample>) -> Vec<Option<usize>> {
        self.raise(samples);
        let mut indices = Vec::with_capacity(samples.len());
        let mut kept_count = 0;
        samples.retain_mut(|sample| {
            let kept = self.keep(sample.kind, sample.weight);
            indices.push(kept.map(|_| kept_count));
            if let Some(weight) = kept {
                sample.weight = weight;
                kept_count += 1;
            }
            kept.is_some()
        });
        indices
    }

    fn raise(&mut self, samples: &[Sample]) {
        for kind in Kind::ALL {
            let weights = samples.iter().filter(|sample| sample.kind == kind);
            let weights = weights.map(|sample| sample.weight);
            let count = weights.clone().count();
            if count > (samples.len() / FEW_PART).max(1) {
                self.thresholds[usize::from(kind.code())] = threshold_for(count / 2, weights);
            }
        }
    }
}

/// The threshold that keeps `room` of `weights` on average, or a few less: all large ones, and
/// small ones in proportion to their weight.
fn threshold_for(room: usize, weights: impl Iterator<Item = u64> + Clone) -> u64 {
    let mut threshold = u64::MAX;
    // Each round finds more large weights and approaches the threshold from above.
    for _ in 0..ROUNDS {
        let small = weights.clone().filter(|&weight| weight < threshold);
        let (small_count, small_sum) =
            small.fold((0, 0_u128), |(count, sum), weight| (count + 1, sum + u128::from(weight)));
        let large_count = weights.clone().count() - small_count;
        let Some(small_room) = room.checked_sub(large_count).filter(|&room| room > 0) else {
            break;
        };
        threshold = u64::try_from(small_sum / small_room as u128).unwrap_or(u64::MAX);
    }
    // Samples without weight are dropped.
    threshold.max(1)
}

#[cfg(test)]
mod tests;
