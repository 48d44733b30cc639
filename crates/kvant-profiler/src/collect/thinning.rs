//! Makes room when more is sampled than can be kept: small samples are left out by chance, and
//! those that stay stand for them too.
//!
//! Below a threshold `t`, a sample of weight `w` stays with probability `w / t` and then weighs
//! `t`; from `t` on it stays as it is. So sums are right on average, what is large is never lost,
//! and it is as if one sample had been taken in `t` from the beginning (threshold sampling: N.
//! Duffield, C. Lund, M. Thorup, "Learn more, sample less: control of volume and variance in
//! network measurement", 2005).
//!
//! Invariant: no sample that was kept weighs less than the threshold of its kind.
//!
//! Threads: one, the drain.

use super::chance;
use crate::recording::{Kind, Sample};

/// A kind with less than this part of all that can be kept is left alone: the few waits for a lock
/// must not go because threads idle. Even if all others are, at least a quarter of the room is
/// made.
const FEW_PART: usize = 16;
/// More are of no use where a few samples weigh far more than all others.
const ROUNDS: usize = 8;

#[derive(Default)]
pub(super) struct Thinning {
    /// By [`Kind::code`]; 0: all are kept.
    thresholds: [u64; Kind::ALL.len()],
}

impl Thinning {
    /// What a sample of this weight weighs if it stays.
    #[inline]
    pub(super) fn keep(&self, kind: Kind, weight: u64) -> Option<u64> {
        let threshold = self.threshold(kind);
        let stays = weight >= threshold || chance::fraction() * (threshold as f64) < weight as f64;
        stays.then_some(weight.max(threshold))
    }

    /// One sample is kept in so much of what `kind` weighs; 0 where none was left out.
    pub(super) fn threshold(&self, kind: Kind) -> u64 {
        self.thresholds[usize::from(kind.code())]
    }

    /// Leaves out about half of `samples`; where each of them is now, if it is.
    pub(super) fn thin(&mut self, samples: &mut Vec<Sample>) -> Vec<Option<usize>> {
        self.raise(samples);
        let mut places = Vec::with_capacity(samples.len());
        let mut kept_count = 0;
        samples.retain_mut(|sample| {
            let kept = self.keep(sample.kind, sample.weight);
            places.push(kept.map(|_| kept_count));
            if let Some(weight) = kept {
                sample.weight = weight;
                kept_count += 1;
            }
            kept.is_some()
        });
        places
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

/// The threshold with which `room` of `weights` stay, on average, or a few less: what is large, and
/// of all that is small in proportion.
fn threshold_for(room: usize, weights: impl Iterator<Item = u64> + Clone) -> u64 {
    let mut threshold = u64::MAX;
    // Each round knows more of what is large, and comes nearer to the threshold, from above.
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
    // What weighs nothing goes.
    threshold.max(1)
}

#[cfg(test)]
mod tests;
