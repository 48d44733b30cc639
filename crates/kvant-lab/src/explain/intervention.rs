//! What making suspects happen changed: the experiment that tells causes from companions.
//!
//! In each block a suspect happens at a moment of the lab's choice, and at a neighbouring moment,
//! its control, nothing is done; chance decides which is first
//! ([`crate::comparison::moments`]). Requests that were due in a window after a moment are its
//! sample. Of a block, an operation and a percentile there is one number, treated less control.
//! Intervals of all suspects, operations and percentiles hold together in 99 of 100
//! experiments ([`crate::comparison::shifts`]).
//!
//! Invariants:
//! 1. A suspect is called a cause only if the whole interval of its effect is above 0.
//! 2. There is one call of [`shifts::simultaneous`] for everything that is claimed.

use super::evidence::Window;
use super::level::percentile_ns;
pub use super::model::{Effect, Finding};
use super::words::time;
use crate::comparison::shifts::{self, Shift};
use crate::record::Suspect;
use std::collections::{BTreeMap, BTreeSet};

/// Percentiles of which effects are measured.
const PERCENTS: [f64; 4] = [50.0, 90.0, 99.0, 99.9];

/// Requests that were due in the window after a moment.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// [`crate::record::Case::id`].
    pub case: usize,
    /// From 1.
    pub block: u32,
    /// Which suspect the moment is of.
    pub suspect: Suspect,
    /// Whether it was made to happen.
    pub is_treated: bool,
    /// By operation: nanoseconds and requests with this response time, ascending.
    pub latencies: BTreeMap<String, Vec<(u64, u64)>>,
}

impl Effect {
    /// The finding in a clause that follows the suspect's name.
    pub fn words(&self) -> String {
        let [change, low, high, detectable] = self.times();
        match self.finding() {
            Finding::Cause => {
                format!("cause, adds {change} ({low} to {high})")
            }
            Finding::Relief => {
                format!("relief, changes it by {change} ({low} to {high})")
            }
            Finding::Correlation => format!(
                "correlation, no effect is shown; {detectable} or more would have been seen"
            ),
            Finding::NoEffect => {
                format!("no effect is shown; {detectable} or more would have been seen")
            }
            Finding::Unknown => "too few blocks or requests: nothing is claimed".to_owned(),
        }
    }

    /// The percentile when nothing was done, in words.
    pub fn control_text(&self) -> String {
        self.control_ns.map_or("-".to_owned(), signed)
    }

    /// The change, both ends of its interval, and what would have been seen, in words.
    pub fn times(&self) -> [String; 4] {
        let (low, high) = self.interval_ns.unwrap_or_default();
        let [change, detectable] =
            [self.change_ns, self.detectable_ns].map(Option::unwrap_or_default);
        [change, low, high, detectable].map(signed)
    }
}

/// A time with its sign, if that is negative.
fn signed(ns: f64) -> String {
    let sign = if ns < 0.0 { "-" } else { "" };
    format!("{sign}{}", time(ns.abs().round() as u64))
}

/// Response times of the requests that were due between two times, by operation. Windows know when
/// requests ended: they count as due their response time before the middle of their window.
pub fn due(windows: &[Window], from_ns: u64, to_ns: u64) -> BTreeMap<String, Vec<(u64, u64)>> {
    let mut found: BTreeMap<String, BTreeMap<u64, u64>> = BTreeMap::new();
    for window in windows.iter().filter(|window| window.end_ns() > from_ns) {
        let middle_ns = window.start_ns + window.length_ns / 2;
        for (operation, of) in &window.operations {
            for (latency_ns, count) in &of.values {
                let due_ns = middle_ns.saturating_sub(*latency_ns);
                if (from_ns..to_ns).contains(&due_ns) {
                    let of_operation = found.entry(operation.clone()).or_default();
                    *of_operation.entry(*latency_ns).or_default() += count;
                }
            }
        }
    }
    found.into_iter().map(|(operation, values)| (operation, values.into_iter().collect())).collect()
}

/// Case, suspect, operation, index of the percentile.
type Key = (usize, Suspect, String, usize);

/// The effects of all suspects, by case, suspect, operation and percentile. Blocks are counted
/// from 1 to `block_count`.
pub fn effects(samples: &[Sample], block_count: u32, seed: u64) -> Vec<Effect> {
    // Treated and control of each block.
    let mut values: BTreeMap<(Key, u32), [Option<f64>; 2]> = BTreeMap::new();
    let mut keys = BTreeSet::new();
    for sample in samples {
        for (operation, latencies) in &sample.latencies {
            for (index, percent) in PERCENTS.into_iter().enumerate() {
                let key = (sample.case, sample.suspect, operation.clone(), index);
                if let Some(value) = percentile(latencies, percent) {
                    let of_block = values.entry((key.clone(), sample.block)).or_default();
                    of_block[usize::from(!sample.is_treated)] = Some(value);
                }
                keys.insert(key);
            }
        }
    }
    let blocks_of = |key: &Key| -> Vec<Option<(f64, f64)>> {
        let of_block = |block| match values.get(&(key.clone(), block)) {
            Some([Some(treated), Some(control)]) => Some((*treated, *control)),
            _ => None,
        };
        (1..=block_count).map(of_block).collect()
    };
    let keys: Vec<Key> = keys.into_iter().collect();
    let blocks: Vec<Vec<Option<(f64, f64)>>> = keys.iter().map(blocks_of).collect();
    let change = |block: &Option<(f64, f64)>| block.map(|(treated, control)| treated - control);
    let changes: Vec<Vec<Option<f64>>> =
        blocks.iter().map(|blocks| blocks.iter().map(change).collect()).collect();
    let found = shifts::simultaneous(&changes, seed);
    let effect = |at: usize, (case, suspect, operation, index): Key| {
        let mut controls_ns: Vec<f64> = blocks[at].iter().flatten().map(|block| block.1).collect();
        controls_ns.sort_by(f64::total_cmp);
        let found: Option<Shift> = found[at];
        Effect {
            case,
            suspect,
            operation,
            percent: PERCENTS[index],
            block_count: controls_ns.len(),
            control_ns: controls_ns.get(controls_ns.len() / 2).copied(),
            change_ns: shifts::estimate(&changes[at]),
            interval_ns: found.map(|shift| (shift.low, shift.high)),
            detectable_ns: found.map(|shift| shift.detectable),
            coinciding_part: 0.0,
        }
    };
    keys.into_iter().enumerate().map(|(at, key)| effect(at, key)).collect()
}

/// A percentile in nanoseconds; `None` if not even one request is expected beyond it.
fn percentile(latencies: &[(u64, u64)], percent: f64) -> Option<f64> {
    let count: u64 = latencies.iter().map(|(_, count)| count).sum();
    let beyond = count as f64 * (100.0 - percent) / 100.0;
    (beyond >= 1.0 - 1e-9).then(|| percentile_ns(latencies, percent).max(1) as f64)
}

#[cfg(test)]
mod tests;
