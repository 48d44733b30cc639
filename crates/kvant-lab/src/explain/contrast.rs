//! Whether slow requests coincide with an event more than by chance, and how much of their excess
//! is attributable to it.
//!
//! An event that is present half of the time is present in half of all slow moments: presence is no
//! evidence. So the observed coincidence is compared with that of the same event at random times:
//! its occurrences, in a random order and with random gaps between them, so that it is present for
//! exactly the same time. If the excess that it covers is `C` of a total `E`, and `C0` at random
//! times, then the part that is attributable to it is `(C - C0) / (E - C0)` of `E`: the
//! attributable fraction `(p1 - p0) / p1` of what it covers, where `p1` is the excess during the
//! event and `p0` that without it. An event that is always present has `C0 = E` and explains
//! nothing.
//!
//! Invariants:
//! 1. Windows are compared with windows of a similar rate: an occurrence only moves to windows of
//!    the same stratum of rates.
//! 2. An event covers the windows during it, those in which requests end that began during it, and
//!    the following ones as long as the backlog that it left is visible. Random occurrences cover
//!    by the same rule.

use super::evidence::{self, Window};
use kvant_env::rng::Rng;

/// Random arrangements of an event.
const ARRANGEMENTS: usize = 400;
/// An event is named if so few of the arrangements cover as much.
const CHANCE_MAX: f64 = 0.01;
/// Strata of rates, if rates differ ...
const STRATA: usize = 3;
/// ... by this factor between a tenth of the windows and nine tenths.
const RATE_FACTOR_MIN: f64 = 1.5;
/// Time over which the rate of a window is averaged, to either side: shorter changes of the rate of
/// responses are effects of a stall rather than its circumstances.
const RATE_REACH_NS: u64 = 1_000_000_000;
/// Part of the excess that an event at random times may cover at most: beyond that there is nothing
/// left to compare with.
const ALWAYS_PART: f64 = 0.9;

/// A stratum for each window.
pub(super) fn strata(windows: &[Window]) -> Vec<usize> {
    let counts: Vec<f64> = windows
        .iter()
        .map(|window| window.operations.values().map(|of| of.count).sum::<u64>() as f64)
        .collect();
    let reach = (RATE_REACH_NS / evidence::window_ns(windows)) as usize;
    let rates: Vec<f64> = (0..counts.len())
        .map(|at| {
            let near = &counts[at.saturating_sub(reach)..(at + reach + 1).min(counts.len())];
            near.iter().sum::<f64>() / near.len() as f64
        })
        .collect();
    let mut sorted = rates.clone();
    sorted.sort_by(f64::total_cmp);
    let at = |part: f64| sorted.get((sorted.len() as f64 * part) as usize).copied().unwrap_or(0.0);
    if at(0.9) < at(0.1) * RATE_FACTOR_MIN {
        return vec![0; windows.len()];
    }
    let bounds: Vec<f64> = (1..STRATA).map(|bound| at(bound as f64 / STRATA as f64)).collect();
    rates.iter().map(|rate| bounds.iter().filter(|bound| *rate >= **bound).count()).collect()
}

/// What an event covers of the excess.
#[derive(Clone, Debug)]
pub(super) struct Contrast {
    /// Which windows it covers.
    pub(super) covers: Vec<bool>,
    /// In which part of the arrangements a window is covered.
    pub(super) by_chance: Vec<f64>,
    /// Part of the arrangements that cover as much of the excess.
    pub(super) chance: f64,
    /// Excess that it covers.
    pub(super) covered: f64,
    /// Excess that is attributable to it.
    pub(super) attributable: f64,
}

impl Contrast {
    /// Whether it covers more than by chance.
    pub(super) fn is_beyond_chance(&self) -> bool {
        self.chance <= CHANCE_MAX && self.attributable > 0.0
    }
}

/// What is compared: the excess of each window, in which of them a backlog is visible, and their
/// strata.
pub(super) struct Outcome<'a> {
    pub(super) excess: &'a [f64],
    pub(super) is_elevated: &'a [bool],
    pub(super) strata: &'a [usize],
}

/// The contrast of an event that is present in the windows `is_present`.
pub(super) fn contrast(is_present: &[bool], outcome: &Outcome<'_>, rng: &mut Rng) -> Contrast {
    let covers = with_backlog(is_present, outcome.is_elevated);
    let amount = |covers: &[bool]| -> f64 {
        covers.iter().zip(outcome.excess).filter(|(is, _)| **is).map(|(_, excess)| excess).sum()
    };
    let covered = amount(&covers);
    let arranger = Arranger::new(is_present, outcome.strata);
    let mut counts = vec![0u32; is_present.len()];
    let mut as_much = 0;
    for _ in 0..ARRANGEMENTS {
        let random = with_backlog(&arranger.arrange(rng), outcome.is_elevated);
        for (count, is_covered) in counts.iter_mut().zip(&random) {
            *count += u32::from(*is_covered);
        }
        as_much += usize::from(amount(&random) >= covered);
    }
    let by_chance: Vec<f64> =
        counts.iter().map(|count| f64::from(*count) / ARRANGEMENTS as f64).collect();
    let all: f64 = outcome.excess.iter().sum();
    let random: f64 =
        by_chance.iter().zip(outcome.excess).map(|(part, excess)| part * excess).sum();
    Contrast {
        covers,
        by_chance,
        chance: (as_much + 1) as f64 / (ARRANGEMENTS + 1) as f64,
        covered,
        attributable: attributable(covered, random, all),
    }
}

/// The attributable part of `all`, of which an event covers `covered`, and `random` by chance.
pub(super) fn attributable(covered: f64, random: f64, all: f64) -> f64 {
    if all <= 0.0 || random > all * ALWAYS_PART {
        return 0.0;
    }
    ((covered - random) * all / (all - random)).clamp(0.0, covered)
}

/// The windows in which an event is present, and those after them while a backlog is visible.
fn with_backlog(is_present: &[bool], is_elevated: &[bool]) -> Vec<bool> {
    let mut before = false;
    is_present
        .iter()
        .zip(is_elevated)
        .map(|(is_present, is_elevated)| {
            before = *is_present || before && *is_elevated;
            before
        })
        .collect()
}

/// Puts the occurrences of an event at random times.
struct Arranger {
    count: usize,
    /// Of each stratum: its windows in order of time, the lengths of occurrences, free windows.
    strata: Vec<(Vec<usize>, Vec<usize>, usize)>,
}

impl Arranger {
    fn new(is_present: &[bool], strata: &[usize]) -> Arranger {
        let of_stratum = |stratum: usize| {
            let windows: Vec<usize> =
                (0..strata.len()).filter(|at| strata[*at] == stratum).collect();
            let mut lengths: Vec<usize> = Vec::new();
            let mut is_within = false;
            for &at in &windows {
                match lengths.last_mut() {
                    Some(last) if is_present[at] && is_within => *last += 1,
                    _ if is_present[at] => lengths.push(1),
                    _ => {}
                }
                is_within = is_present[at];
            }
            let free = windows.len() - lengths.iter().sum::<usize>();
            (windows, lengths, free)
        };
        let stratum_count = strata.iter().max().map_or(0, |most| most + 1);
        Arranger { count: strata.len(), strata: (0..stratum_count).map(of_stratum).collect() }
    }

    fn arrange(&self, rng: &mut Rng) -> Vec<bool> {
        let mut is_present = vec![false; self.count];
        for (windows, lengths, free) in &self.strata {
            if windows.is_empty() {
                continue;
            }
            let mut lengths = lengths.clone();
            rng.shuffle(&mut lengths);
            // Cuts of the free time; the rotation makes both ends of the stratum equal to its
            // middle.
            let mut cuts: Vec<usize> =
                lengths.iter().map(|_| rng.below(*free as u64 + 1) as usize).collect();
            cuts.sort_unstable();
            let rotation = rng.below(windows.len() as u64) as usize;
            let mut occupied = 0;
            for (cut, length) in cuts.into_iter().zip(lengths) {
                for at in 0..length {
                    is_present[windows[(cut + occupied + at + rotation) % windows.len()]] = true;
                }
                occupied += length;
            }
        }
        is_present
    }
}

#[cfg(test)]
mod tests;
