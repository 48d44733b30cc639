//! What the server used CPU time for while requests were slow, and otherwise.
//!
//! It is no share of an excess: that work was done meanwhile is no evidence that requests waited
//! for it. It says what a queue was behind.

use super::evidence::{CpuSecond, Evidence};
use super::level;
use super::model::{CpuUse, Row};
use std::collections::BTreeMap;

/// Uses below this part of a CPU are not told.
const PART_MIN: f64 = 0.01;
/// Seconds of either kind without which nothing is told.
const SECONDS_MIN: u64 = 3;
const SECOND_NS: u64 = 1_000_000_000;

/// The uses of CPU time, the largest growth first. A second is slow if a window of it is not calm,
/// for the operation whose row has the greatest excess.
pub(super) fn uses(evidence: &Evidence, rows: &[Row]) -> Vec<CpuUse> {
    let Some(worst) = rows.iter().max_by_key(|row| row.excess_ns).filter(|row| row.excess_ns > 0)
    else {
        return Vec::new();
    };
    let windows = level::windows_of(evidence, &worst.operation);
    let calm = level::calm(&windows);
    let is_slow = |second: &CpuSecond| {
        let first = evidence.windows.partition_point(|window| window.end_ns() <= second.start_ns);
        let within = evidence.windows[first..]
            .iter()
            .take_while(|window| window.start_ns < second.start_ns + second.length_ns);
        (first..).zip(within).any(|(at, _)| windows[at].is_some() && !calm[at])
    };
    // Nanoseconds of calm and of slow seconds.
    let mut length_ns = [0; 2];
    let mut used_ns: BTreeMap<&str, [u64; 2]> = BTreeMap::new();
    for second in &evidence.cpu {
        let kind = usize::from(is_slow(second));
        length_ns[kind] += second.length_ns;
        for (purpose, cpu_ns) in &second.cpu_ns {
            used_ns.entry(purpose).or_default()[kind] += cpu_ns;
        }
    }
    if length_ns.iter().any(|length_ns| *length_ns < SECONDS_MIN * SECOND_NS) {
        return Vec::new();
    }
    let mut uses: Vec<CpuUse> = used_ns
        .into_iter()
        .map(|(purpose, [calm_ns, slow_ns])| CpuUse {
            purpose: purpose.to_owned(),
            calm: calm_ns as f64 / length_ns[0] as f64,
            slow: slow_ns as f64 / length_ns[1] as f64,
        })
        .filter(|one| one.calm >= PART_MIN || one.slow >= PART_MIN)
        .collect();
    uses.sort_by(|a, b| (b.slow - b.calm).total_cmp(&(a.slow - a.calm)));
    uses
}
