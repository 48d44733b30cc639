//! Lengths of keys and values: one length, or a range.

use kvant_base::size;
use std::ops::RangeInclusive;

/// Parses `N` or `A..B` (both ends included); each number may have a unit of sizes.
pub(super) fn parse(text: &str) -> Result<(u64, u64), String> {
    match text.split_once("..") {
        Some((min, max)) => Ok((size::parse(min)?, size::parse(max)?)),
        None => size::parse(text).map(|length| (length, length)),
    }
}

/// The problems of lengths `min..=max` of `what`, which must lie within `bounds`.
pub(super) fn problems(what: &str, min: u64, max: u64, bounds: RangeInclusive<u64>) -> Vec<String> {
    let mut problems = Vec::new();
    if min > max {
        problems.push(format!("{what} of {min} to {max} bytes: the first exceeds the second"));
    }
    if !bounds.contains(&min) || !bounds.contains(&max) {
        let (least, most) = bounds.into_inner();
        problems.push(format!("{what} of {min} to {max} bytes are not within {least} and {most}"));
    }
    problems
}
