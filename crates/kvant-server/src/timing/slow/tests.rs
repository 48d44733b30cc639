use super::*;
use crate::timing::{KeyStart, Operation, Stamps, Timings, slowest};
use std::sync::Arc;

fn trace(operation: Operation, written_ns: u64, total_ns: u64) -> Trace {
    Trace {
        operation,
        stamps: Stamps { arrival_ns: written_ns - total_ns, written_ns, ..Stamps::default() },
        ..Trace::default()
    }
}

fn totals(found: &[Trace]) -> Vec<u64> {
    let total = |trace: &Trace| trace.stamps.phase_ns(Phase::Total);
    found.iter().map(total).collect()
}

#[test]
fn a_window_keeps_the_slowest() {
    let timings = [Arc::new(Timings::default())];
    // Each time once, in no order: 7 and 1000 have no common factor.
    for index in 0..1000 {
        timings[0].record(&trace(Operation::Get, SECOND_NS + index, index * 7 % 1000));
    }
    let expected: Vec<u64> = (1000 - KEPT_COUNT as u64..1000).rev().collect();
    assert_eq!(totals(&slowest(&timings, 0, None, 1000)), expected);
    assert_eq!(totals(&slowest(&timings, 0, None, 3)), [999, 998, 997]);
}

#[test]
fn each_window_has_its_own_room_and_the_oldest_is_dropped() {
    let timings = [Arc::new(Timings::default())];
    let mut now_ns = SECOND_NS;
    for window in 0..20 {
        // Later windows are quicker, and none evicts the requests of an earlier one.
        for _ in 0..KEPT_COUNT {
            timings[0].record(&trace(Operation::Put, now_ns, 1000 - window));
        }
        now_ns += WINDOW_NS;
    }
    now_ns -= WINDOW_NS;
    let found = totals(&slowest(&timings, now_ns - SLOW_SPAN_NS, None, usize::MAX));
    let expected: Vec<u64> = (13..20).flat_map(|window| [1000 - window; KEPT_COUNT]).collect();
    assert_eq!(found, expected);
}

#[test]
fn after_a_pause_nothing_old_is_shown() {
    let timings = [Arc::new(Timings::default())];
    timings[0].record(&trace(Operation::Get, SECOND_NS, 900));
    timings[0].record(&trace(Operation::Get, 3600 * SECOND_NS, 1));
    let since_ns = 3600 * SECOND_NS - SLOW_SPAN_NS;
    assert_eq!(totals(&slowest(&timings, since_ns, None, 10)), [1]);
}

#[test]
fn a_request_that_is_recorded_late_is_kept_in_the_newest_window() {
    let timings = [Arc::new(Timings::default())];
    timings[0].record(&trace(Operation::Get, 10 * SECOND_NS, 5));
    timings[0].record(&trace(Operation::Get, 10 * SECOND_NS - 1, 6));
    assert_eq!(totals(&slowest(&timings, 0, None, 10)), [6, 5]);
}

#[test]
fn all_selectors_are_merged_and_operations_can_be_picked() {
    let timings: Vec<Arc<Timings>> = (0..3).map(|_| Arc::default()).collect();
    for (index, timings) in timings.iter().enumerate() {
        let slower = index as u64 * 10;
        timings.record(&trace(Operation::Get, SECOND_NS, 100 + slower));
        timings.record(&trace(Operation::Put, SECOND_NS, 105 + slower));
    }
    assert_eq!(totals(&slowest(&timings, 0, None, 10)), [125, 120, 115, 110, 105, 100]);
    assert_eq!(totals(&slowest(&timings, 0, Some(Operation::Put), 2)), [125, 115]);
    assert!(slowest(&timings, 0, Some(Operation::Range), 2).is_empty());
}

#[test]
fn slow_operations_do_not_evict_quick_ones() {
    let timings = [Arc::new(Timings::default())];
    for index in 0..1000 {
        timings[0].record(&trace(Operation::Range, SECOND_NS, 1_000_000 + index));
        timings[0].record(&trace(Operation::Get, SECOND_NS, index));
    }
    assert_eq!(totals(&slowest(&timings, 0, Some(Operation::Get), 2)), [999, 998]);
    assert_eq!(totals(&slowest(&timings, 0, None, 1)), [1_000_999]);
}

#[test]
fn readers_and_the_selector_do_not_disturb_each_other() {
    let timings = [Arc::new(Timings::default())];
    let recorder = Arc::clone(&timings[0]);
    let selector = std::thread::spawn(move || {
        for index in 0..50_000 {
            let mut request = trace(Operation::Get, SECOND_NS + index * 1_000_000, 1 + index % 977);
            request.key = KeyStart::of(&index.to_le_bytes());
            request.received_bytes = index;
            recorder.record(&request);
        }
    });
    while !selector.is_finished() {
        for request in slowest(&timings, 0, None, usize::MAX) {
            assert_eq!(request.key.bytes(), request.received_bytes.to_le_bytes());
        }
    }
    selector.join().unwrap();
    assert_eq!(totals(&slowest(&timings, 0, None, 5)), [977; 5]);
}

#[test]
fn the_slowest_of_each_second_are_taken_once() {
    let timings = [Arc::new(Timings::default())];
    for second in 1..4 {
        for index in 0..100 {
            timings[0].record(&trace(Operation::Get, second * SECOND_NS + index, index * 7 % 100));
        }
    }
    let last = |count| totals(&crate::timing::take_slow(&timings, count));
    assert_eq!(totals(&crate::timing::untaken_slow(&timings)).len(), 3 * SECOND_KEPT_COUNT);
    let mut taken = last(3);
    taken.sort_unstable();
    assert_eq!(taken, [96, 96, 97, 97, 98, 98, 99, 99]);
    assert!(last(3).is_empty(), "the third second has not ended");
    assert_eq!(last(4).len(), SECOND_KEPT_COUNT);
    // One that is recorded late is taken later.
    timings[0].record(&trace(Operation::Get, 3 * SECOND_NS + 1, 99));
    assert_eq!(last(4), [99]);
}

#[test]
fn seconds_that_nobody_takes_are_bounded() {
    let timings = [Arc::new(Timings::default())];
    for second in 0..1000 {
        for index in 0..10 {
            timings[0].record(&trace(Operation::Get, second * SECOND_NS + index, index));
        }
    }
    let untaken = crate::timing::untaken_slow(&timings);
    assert_eq!(untaken.len(), (UNTAKEN_COUNT_MAX + 1) * SECOND_KEPT_COUNT);
}
