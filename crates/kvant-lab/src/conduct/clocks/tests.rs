use super::{matched, ours};
use crate::record::{EventFacts, StatsSample};
use serde_json::json;

const AHEAD_NS: i64 = -7_000_000_000;
const WALL_ORIGIN_NS: i64 = 1_700_000_000_000_000_000;

/// Exchanges of (begin, time there, time back) in microseconds, with a clock that gains
/// `drift_ns_per_s`.
fn exchanges(times_us: &[(i64, i64, i64)], drift_ns_per_s: i64) -> Vec<StatsSample> {
    let sample = |&(begin_us, there_us, back_us): &(i64, i64, i64)| {
        let asked_ns = 20_000_000_000 + begin_us * 1_000;
        let read_ns = asked_ns + there_us * 1_000;
        let its_ns = read_ns + AHEAD_NS + begin_us * drift_ns_per_s / 1_000_000;
        let wall_ms = (WALL_ORIGIN_NS + its_ns) / 1_000_000;
        StatsSample {
            asked_ns: asked_ns as u64,
            at_ns: (read_ns + back_us * 1_000) as u64,
            stats: json!({ "server": { "monotonic_ns": its_ns, "wall_ms": wall_ms } }),
        }
    };
    times_us.iter().map(sample).collect()
}

#[test]
fn the_true_difference_lies_within_the_stated_error() {
    // The delays there and back differ: no exchange alone is exact.
    let one = matched(&exchanges(&[(0, 900, 100)], 0)).unwrap();
    assert_eq!((one.ahead_ns, one.error_ns), (AHEAD_NS + 400_000, 500_000));
    let many = matched(&exchanges(&[(0, 900, 100), (500_000, 80, 700), (1_000_000, 400, 60)], 0));
    let many = many.unwrap();
    assert_eq!(many.error_ns, 70_000, "the overlap of the bounds");
    assert!((many.ahead_ns - AHEAD_NS).unsigned_abs() <= many.error_ns, "{many:?}");
    assert!((many.wall_origin_ns - WALL_ORIGIN_NS).abs() < 1_000_000, "{many:?}");
}

#[test]
fn clocks_that_drift_apart_are_matched_in_the_middle() {
    // 0.1 ms/s over 60 s, exchanges of 0.2 ms.
    let times_us: Vec<_> = (0..=120).map(|half| (half * 500_000, 100, 100)).collect();
    let drifting = matched(&exchanges(&times_us, 100_000)).unwrap();
    assert_eq!(drifting.ahead_ns, AHEAD_NS + 3_000_000);
    for drifted_ns in [0, 6_000_000] {
        let off_ns = (drifting.ahead_ns - AHEAD_NS - drifted_ns).unsigned_abs();
        assert!(off_ns <= drifting.error_ns, "{drifting:?}");
    }
    assert!(drifting.error_ns <= 3_100_000, "{drifting:?}");
}

#[test]
fn a_subject_that_does_not_tell_its_time_is_not_matched() {
    assert_eq!(matched(&[]), None);
    let silent = StatsSample { asked_ns: 1, at_ns: 2, stats: json!({ "server": {} }) };
    assert_eq!(matched(&[silent]), None);
}

#[test]
fn events_are_moved_to_our_clock() {
    let clock = matched(&exchanges(&[(0, 5, 5)], 0)).unwrap();
    let event = EventFacts { start_ns: 1_000, end_ns: Some(3_000), ..EventFacts::default() };
    let moved = ours(vec![event], &clock).remove(0);
    assert_eq!((moved.start_ns, moved.end_ns), (7_000_001_000, Some(7_000_003_000)));
}
