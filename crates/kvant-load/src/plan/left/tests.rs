use super::{SINGLE_MAX, each};

const S: u64 = 1_000_000_000;

#[test]
fn a_backlog_of_any_size_takes_a_bounded_number_of_steps() {
    // A planned time every 10^-2 ns: 10^11 per second.
    let mut steps = 0_u64;
    let mut sum = 0;
    let mut last_ns = 0;
    each(
        7,
        0,
        S,
        |at_ns| at_ns * 100,
        |number| Some(number / 100),
        |at_ns, count| {
            assert!(at_ns >= last_ns && at_ns < S, "{last_ns}, {at_ns}");
            (last_ns, steps, sum) = (at_ns, steps + 1, sum + count);
        },
    );
    assert_eq!(sum, 100 * S - 7);
    assert!(steps < SINGLE_MAX, "{steps} steps");
}

#[test]
fn a_small_backlog_is_enumerated() {
    let mut shown = Vec::new();
    each(
        2,
        35,
        80,
        |at_ns| at_ns.div_ceil(10),
        |number| Some(number * 10),
        |at_ns, count| shown.push((at_ns, count)),
    );
    assert_eq!(shown, [(40, 1), (50, 1), (60, 1), (70, 1)]);
}
