//! The planned times that were not taken at the end of a phase.
//!
//! A plan far above the server's capacity leaves too many of them to enumerate. They are then
//! counted in spans of time, each so short that all ages in it fall into one histogram bucket.

/// The largest number of times that is enumerated.
const SINGLE_MAX: u64 = 100_000;
/// A span is the age at its start divided by this: less than three significant digits resolve.
const PARTS_OF_AGE: u64 = 2_048;

/// Calls `show` with the planned times number `taken` and following within `from_ns..to_ns`, each
/// with a count. `count_before` returns how many times lie before a given one, `time_of_ns` the
/// time with a given number.
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
        let span_ns = (to_ns.saturating_sub(at_ns) / PARTS_OF_AGE).max(1);
        // A span has at least one time, in spite of rounding.
        let next = count_before(at_ns.saturating_add(span_ns).min(to_ns)).max(number + 1);
        show(at_ns, next - number);
        number = next;
    }
}

#[cfg(test)]
mod tests;
