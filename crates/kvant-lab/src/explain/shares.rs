//! The excess of a percentile, shared out.
//!
//! 1. The undisturbed level is the percentile of the calm windows ([`super::level`]), less what
//!    their requests evidently waited for ([`super::direct`]).
//! 2. The excess of a window is the time above the level of all its requests at or above the
//!    percentile.
//! 3. Of each window, the part that its requests evidently waited for is given to that: to phases,
//!    stall reasons, fsyncs, block reads, locks.
//! 4. What is left is compared with the suspects ([`super::contrast`]), the one that explains most
//!    first. The next one is compared in windows that the first does not cover, so that one that
//!    only accompanies it gets nothing. Those that cover the same windows cannot be told apart:
//!    they share equally, and the row says so.
//! 5. What no suspect explains was spent behind other requests, as far as phases say so, and is
//!    unexplained otherwise.
//!
//! Invariants:
//! 1. The shares of a row add up to 1, in every sample of the bootstrap too.
//! 2. A function of the evidence alone: the random numbers have a fixed seed.

use super::contrast::{self, Contrast, Outcome};
use super::direct::{Direct, Waited};
use super::evidence::Evidence;
use super::level::{self, Merged};
use super::model::{Cause, Ground, Row, Share};
use super::suspects::Suspect;
use kvant_env::rng::Rng;
use std::collections::BTreeMap;

/// The percentiles that are explained.
pub(super) const PERCENTS: [f64; 4] = [50.0, 90.0, 99.0, 99.9];
/// Requests at or above a percentile that it needs.
const TAIL_COUNT_MIN: f64 = 5.0;
/// An excess below this part of the percentile is within the resolution of buckets and no excess.
const EXCESS_PART_MIN: f64 = 0.05;
/// A window shows a backlog if so many times the expected part of its requests is in the tail ...
const BACKLOG_FACTOR: f64 = 3.0;
/// ... and at least so many requests.
const BACKLOG_COUNT_MIN: u64 = 2;
/// A suspect that covers so much of what another one covers cannot be told apart from it.
const SAME_PART: f64 = 0.9;
/// Resamplings of the bootstrap.
const RESAMPLINGS: usize = 400;
/// Blocks of the bootstrap, at most; a block is at least [`BLOCK_NS_MIN`] long, so that what
/// belongs to one disturbance stays together.
const BLOCKS_MAX: usize = 60;
const BLOCK_NS_MIN: u64 = 2_000_000_000;
const SEED: u64 = 0x6b76_616e_7421;

/// The rows of an operation. `strata` are those of the windows.
pub(super) fn rows(
    evidence: &Evidence,
    operation: &str,
    suspects: &[Suspect],
    strata: &[usize],
) -> Vec<Row> {
    let windows = level::windows_of(evidence, operation);
    let all = Merged::of(windows.iter().copied().flatten());
    let calm = level::calm(&windows);
    let quiet =
        Merged::of(windows.iter().zip(&calm).filter(|(_, is)| **is).filter_map(|(w, _)| *w));
    let mut rows: Vec<Row> = Vec::new();
    for percent in PERCENTS {
        if all.count() as f64 * (1.0 - percent / 100.0) < TAIL_COUNT_MIN {
            continue;
        }
        let value_ns = all.percentile_ns(percent);
        let quiet_ns = quiet.percentile_ns(percent).min(value_ns);
        let (work_ns, waits) = Direct::new(evidence, operation, percent, quiet_ns).work_ns(&calm);
        let level_ns = (quiet_ns as f64 * (1.0 - waits.all()).max(0.0)) as u64;
        // What is left of a slow request without its waits may be less than a quicker one took.
        let below_ns = rows.last().map_or(0, |row| row.level_ns);
        let level_ns = level_ns.max(below_ns).min(value_ns);
        let mut row = Row {
            operation: operation.to_owned(),
            percent,
            count: all.count(),
            tail_count: all.count_from(value_ns),
            value_ns,
            level_ns,
            excess_ns: value_ns - level_ns,
            shares: Vec::new(),
        };
        if (row.excess_ns as f64) < EXCESS_PART_MIN * value_ns as f64 {
            row.level_ns = value_ns;
            row.excess_ns = 0;
        } else {
            let direct = Direct::new(evidence, operation, percent, value_ns);
            let waited: Vec<Waited> =
                (0..windows.len()).map(|at| direct.of_window(at, &work_ns)).collect();
            let tail = Tail::new(evidence, operation, &row, waited, strata);
            row.shares = tail.shares(evidence, suspects);
        }
        rows.push(row);
    }
    rows
}

/// The excess of a percentile by window.
struct Tail<'a> {
    /// Excess of each window.
    excess: Vec<f64>,
    waited: Vec<Waited>,
    is_elevated: Vec<bool>,
    strata: &'a [usize],
    /// How long after a suspect the requests end that began during it.
    reach_ns: u64,
}

/// Suspects that cover the same windows, with the excess that was left when they were chosen.
struct Named {
    causes: Vec<Cause>,
    contrast: Contrast,
    excess: Vec<f64>,
}

impl<'a> Tail<'a> {
    fn new(
        evidence: &Evidence,
        operation: &str,
        row: &Row,
        waited: Vec<Waited>,
        strata: &'a [usize],
    ) -> Tail<'a> {
        let windows = level::windows_of(evidence, operation);
        let (mut excess, mut is_elevated) = (Vec::new(), Vec::new());
        let expected = BACKLOG_FACTOR * (1.0 - row.percent / 100.0);
        let (mut time_ns, mut count) = (0.0, 0);
        for window in windows {
            let (mut sum, mut beyond, mut responses) = (0.0, 0, 1);
            if let Some(window) = window {
                responses = window.count.max(1);
                let tail = window.values.iter().filter(|(value, _)| *value >= row.value_ns);
                for (value, number) in tail {
                    sum += (value - row.level_ns) as f64 * *number as f64;
                    time_ns += *value as f64 * *number as f64;
                    beyond += number;
                }
            }
            count += beyond;
            excess.push(sum);
            let part = beyond as f64 / responses as f64;
            is_elevated.push(beyond >= BACKLOG_COUNT_MIN && part >= expected);
        }
        let reach_ns = (time_ns / count.max(1) as f64) as u64;
        Tail { excess, waited, is_elevated, strata, reach_ns }
    }

    fn shares(&self, evidence: &Evidence, suspects: &[Suspect]) -> Vec<Share> {
        let named = self.named(evidence, suspects);
        let sums = self.blocks(evidence, &named);
        let whole = Sums::total(&sums, &(0..sums.len()).collect::<Vec<_>>());
        let parts = whole.parts(&named);
        let mut rng = Rng::new(SEED);
        let mut sampled: BTreeMap<Key, Vec<f64>> = BTreeMap::new();
        for _ in 0..RESAMPLINGS {
            let chosen: Vec<usize> =
                sums.iter().map(|_| rng.below(sums.len() as u64) as usize).collect();
            for (key, part) in Sums::total(&sums, &chosen).parts(&named) {
                sampled.entry(key).or_default().push(part);
            }
        }
        let mut shares: Vec<Share> = parts
            .into_iter()
            .filter(|(_, part)| *part > 0.0)
            .map(|((cause, ground), part)| {
                let mut values = sampled.remove(&(cause.clone(), ground)).unwrap_or_default();
                // A sample without the cause has none of it.
                values.resize(RESAMPLINGS, 0.0);
                values.sort_by(f64::total_cmp);
                let at = |part: f64| values[(part * (RESAMPLINGS - 1) as f64).round() as usize];
                let group = named
                    .iter()
                    .find(|one| ground == Ground::Coincidence && one.causes.contains(&cause));
                let or = group.map_or_else(Vec::new, |group| {
                    group.causes.iter().filter(|other| **other != cause).cloned().collect()
                });
                let (low, high) = (at(0.025).min(part), at(0.975).max(part));
                Share { cause, part, low, high, ground, or }
            })
            .collect();
        shares.sort_by(|a, b| b.part.total_cmp(&a.part));
        shares
    }

    /// The suspects that explain something of what is left after direct evidence.
    fn named(&self, evidence: &Evidence, suspects: &[Suspect]) -> Vec<Named> {
        let mut excess: Vec<f64> = self
            .excess
            .iter()
            .zip(&self.waited)
            .map(|(excess, waited)| excess * waited.left())
            .collect();
        let mut rng = Rng::new(SEED);
        let presences: Vec<Vec<bool>> = suspects
            .iter()
            .map(|suspect| suspect.presence(&evidence.windows, self.reach_ns))
            .collect();
        let mut left: Vec<usize> = (0..suspects.len())
            .filter(|at| presences[*at].iter().any(|is_present| *is_present))
            .collect();
        let mut named = Vec::new();
        while !left.is_empty() && excess.iter().sum::<f64>() > 0.0 {
            let outcome =
                Outcome { excess: &excess, is_elevated: &self.is_elevated, strata: self.strata };
            let contrasts: Vec<(usize, Contrast)> = left
                .iter()
                .map(|&at| (at, contrast::contrast(&presences[at], &outcome, &mut rng)))
                .filter(|(_, contrast)| contrast.is_beyond_chance())
                .collect();
            let most =
                contrasts.iter().max_by(|a, b| a.1.attributable.total_cmp(&b.1.attributable));
            let Some((best, contrast)) = most else { break };
            // The excess that both cover, as a part of what the best one covers.
            let shared = |other: &Contrast| -> f64 {
                let both = other.covers.iter().zip(&contrast.covers).zip(&excess);
                both.filter(|((a, b), _)| **a && **b).map(|(_, excess)| excess).sum::<f64>()
                    / contrast.covered
            };
            let same: Vec<usize> = contrasts
                .iter()
                .filter(|(at, other)| {
                    at == best
                        || shared(other) >= SAME_PART
                            && other.attributable >= SAME_PART * contrast.attributable
                })
                .map(|(at, _)| *at)
                .collect();
            let causes = same.iter().map(|at| suspects[*at].cause.clone()).collect();
            left.retain(|at| !same.contains(at));
            let contrast = contrast.clone();
            let rest = excess
                .iter()
                .zip(&contrast.covers)
                .map(|(excess, covers)| if *covers { 0.0 } else { *excess })
                .collect();
            named.push(Named { causes, contrast, excess: std::mem::replace(&mut excess, rest) });
        }
        named
    }

    /// The sums of each block of the bootstrap.
    fn blocks(&self, evidence: &Evidence, named: &[Named]) -> Vec<Sums> {
        let windows_min = (BLOCK_NS_MIN / evidence.window_ns()).max(1) as usize;
        let block = windows_min.max(self.excess.len().div_ceil(BLOCKS_MAX));
        let starts = (0..self.excess.len()).step_by(block);
        starts
            .map(|start| {
                let mut sums = Sums::default();
                for at in start..(start + block).min(self.excess.len()) {
                    sums.add_window(self, named, at);
                }
                sums
            })
            .collect()
    }
}

type Key = (Cause, Ground);

/// What the shares of some windows follow from. Sums of sums are those of all their windows.
#[derive(Clone, Debug, Default)]
struct Sums {
    excess: f64,
    direct: BTreeMap<Cause, f64>,
    /// Left after direct evidence, and the part of it that was spent behind others.
    left: f64,
    behind_others: f64,
    /// For each named: excess, covered, by chance, and of the covered that behind others.
    named: Vec<[f64; 4]>,
}

impl Sums {
    fn add_window(&mut self, tail: &Tail<'_>, named: &[Named], at: usize) {
        let (excess, waited) = (tail.excess[at], &tail.waited[at]);
        self.named.resize(named.len(), [0.0; 4]);
        if excess <= 0.0 {
            return;
        }
        self.excess += excess;
        for (cause, part) in &waited.parts {
            *self.direct.entry(cause.clone()).or_default() += part * excess;
        }
        let left = excess * waited.left();
        let behind = if left > 0.0 { waited.behind_others * excess / left } else { 0.0 };
        self.left += left;
        self.behind_others += left * behind;
        for (sums, Named { contrast, excess, .. }) in self.named.iter_mut().zip(named) {
            let covered = if contrast.covers[at] { excess[at] } else { 0.0 };
            let all = [excess[at], covered, excess[at] * contrast.by_chance[at], covered * behind];
            for (sum, value) in sums.iter_mut().zip(all) {
                *sum += value;
            }
        }
    }

    fn total(blocks: &[Sums], chosen: &[usize]) -> Sums {
        let mut total = Sums::default();
        for block in chosen.iter().map(|at| &blocks[*at]) {
            total.excess += block.excess;
            total.left += block.left;
            total.behind_others += block.behind_others;
            total.named.resize(block.named.len(), [0.0; 4]);
            for (cause, part) in &block.direct {
                *total.direct.entry(cause.clone()).or_default() += part;
            }
            for (sums, others) in total.named.iter_mut().zip(&block.named) {
                for (sum, other) in sums.iter_mut().zip(others) {
                    *sum += other;
                }
            }
        }
        total
    }

    /// The share of each cause.
    fn parts(&self, named: &[Named]) -> Vec<(Key, f64)> {
        if self.excess <= 0.0 {
            return Vec::new();
        }
        let mut parts: Vec<(Key, f64)> = self
            .direct
            .iter()
            .map(|(cause, sum)| ((cause.clone(), Ground::Direct), *sum))
            .collect();
        let (mut left, mut behind_others) = (self.left, self.behind_others);
        for (Named { causes, .. }, [all, covered, random, behind]) in named.iter().zip(&self.named)
        {
            let given = contrast::attributable(*covered, *random, *all);
            for cause in causes {
                let key = (cause.clone(), Ground::Coincidence);
                parts.push((key, given / causes.len() as f64));
            }
            left -= given;
            if *covered > 0.0 {
                behind_others -= given / covered * behind;
            }
        }
        let behind_others = behind_others.clamp(0.0, left.max(0.0));
        parts.push(((Cause::Queueing, Ground::Rest), behind_others));
        parts.push(((Cause::Unexplained, Ground::Rest), (left - behind_others).max(0.0)));
        let sum: f64 = parts.iter().map(|(_, part)| part).sum();
        parts.into_iter().map(|(key, part)| (key, part / sum)).collect()
    }
}
