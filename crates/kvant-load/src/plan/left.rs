//! What is left of a plan at the end: the moments that were not taken.
//!
//! Threads: none of its own.

/// Shows the moments number `taken` and following that lie within `from_ns..to_ns`, with how many there are. `count_before` says how many
/// moments lie before a time, `time_of_ns` when a number is due.
pub(super) fn each(
    taken: u64,
    from_ns: u64,
    to_ns: u64,
    count_before: impl Fn(u64) -> u64,
    time_of_ns: impl Fn(u64) -> Option<u64>,
    mut show: impl FnMut(u64, u64),
) {
    (taken.max(count_before(from_ns))..count_before(to_ns))
        .filter_map(time_of_ns)
        .for_each(|at_ns| show(at_ns, 1));
}

#[cfg(test)]
mod tests;
