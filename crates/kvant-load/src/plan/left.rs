//! What is left of a plan at the end: the moments that were not taken.
//!
//! Somebody who asks for more than any server can do leaves more of them than can be gone through
//! one by one. Where they are many, they are counted in stretches of time, each so short that a
//! histogram has one place for all the ages in it.
//!
//! Threads: none of its own.

/// So many moments are shown one by one.
const SINGLE_MAX: u64 = 100_000;
/// A stretch is this part of the age at its start: less than three significant digits tell apart.
const PARTS_OF_AGE: u64 = 2_048;

/// Shows the moments number `taken` and following that lie within `from_ns..to_ns`, with how many
/// there are. `count_before` says how many moments lie before a time, `time_of_ns` when a number is
/// due.
pub(super) fn each(
    taken: u64,
    from_ns: u64,
    to_ns: u64,
    count_before: impl Fn(u64) -> u64,
    time_of_ns: impl Fn(u64) -> Option<u64>,
    mut show: impl FnMut(u64, u64),
) {
    let mut number = taken.max(count_before(from_ns));
    let end = count_before(to_ns);
    if end.saturating_sub(number) <= SINGLE_MAX {
        (number..end).filter_map(time_of_ns).for_each(|at_ns| show(at_ns, 1));
        return;
    }
    while number < end {
        let Some(at_ns) = time_of_ns(number) else {
            return;
        };
        let stretch_ns = (to_ns.saturating_sub(at_ns) / PARTS_OF_AGE).max(1);
        // A stretch has one moment at least, whatever rounding says.
        let next = count_before(at_ns.saturating_add(stretch_ns).min(to_ns)).max(number + 1);
        show(at_ns, next - number);
        number = next;
    }
}

#[cfg(test)]
mod tests;
