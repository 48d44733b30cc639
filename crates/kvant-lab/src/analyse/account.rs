//! The kernel's account of the subject over a part of an attempt.

use crate::record::{Watch, WatchSample};

/// A cumulative counter between two times, interpolated linearly between samples; `None` if the
/// system does not report it or there are no samples around both times.
pub(super) fn spent(
    watch: &Watch,
    from_ns: u64,
    to_ns: u64,
    counter: fn(&WatchSample) -> Option<u64>,
) -> Option<f64> {
    Some(at(watch, to_ns, counter)? - at(watch, from_ns, counter)?)
}

/// The greatest value of a level between two times.
pub(super) fn greatest(
    watch: &Watch,
    from_ns: u64,
    to_ns: u64,
    level: fn(&WatchSample) -> Option<u64>,
) -> Option<u64> {
    let within = watch.samples.iter().filter(|sample| (from_ns..=to_ns).contains(&sample.at_ns));
    within.filter_map(level).max()
}

/// Both kinds of context switches.
pub(super) fn switches(sample: &WatchSample) -> Option<u64> {
    Some(sample.server_voluntary_switches? + sample.server_involuntary_switches?)
}

/// The value of a counter at a time, on a straight line between samples; `None` beyond them.
pub(super) fn at(
    watch: &Watch,
    at_ns: u64,
    counter: fn(&WatchSample) -> Option<u64>,
) -> Option<f64> {
    let after = watch.samples.iter().position(|sample| sample.at_ns >= at_ns)?;
    let next = &watch.samples[after];
    let next_value = counter(next)? as f64;
    if next.at_ns == at_ns {
        return Some(next_value);
    }
    let before = &watch.samples[after.checked_sub(1)?];
    let before_value = counter(before)? as f64;
    let part = (at_ns - before.at_ns) as f64 / (next.at_ns - before.at_ns) as f64;
    Some(before_value + part * (next_value - before_value))
}

#[cfg(test)]
mod tests;
