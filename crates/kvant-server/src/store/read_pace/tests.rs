use super::*;
use kvant_env::testing::MockClock;
use std::thread;
use std::time::Duration;

#[test]
fn after_a_read_that_waited_others_belong_elsewhere_for_a_second() {
    let (pace, clock) = (ReadPace::default(), MockClock::new(5));
    assert!(pace.is_quick(&clock));
    let found = pace.observe(&clock, || {
        thread::sleep(Duration::from_micros(1));
        clock.advance(Duration::from_micros(200));
        "value"
    });
    assert_eq!(found, "value");
    assert!(!pace.is_quick(&clock));
    clock.advance(Duration::from_millis(999));
    assert!(!pace.is_quick(&clock));
    clock.advance(Duration::from_millis(1));
    assert!(pace.is_quick(&clock));
}

#[test]
fn a_read_does_not_count_if_another_thread_had_the_processor() {
    let switches = |sleep_count, preempted_count| ThreadSwitches { sleep_count, preempted_count };
    let before = switches(3, 5);
    assert!(is_own_time(before, before), "it had much to do");
    assert!(is_own_time(before, switches(4, 5)), "it waited");
    assert!(is_own_time(before, switches(4, 6)), "it waited, and then for the processor");
    assert!(!is_own_time(before, switches(3, 6)));
}

#[test]
fn a_short_wait_does_not_count() {
    let (pace, clock) = (ReadPace::default(), MockClock::new(5));
    pace.observe(&clock, || {
        thread::sleep(Duration::from_micros(1));
        clock.advance(Duration::from_micros(199));
    });
    assert!(pace.is_quick(&clock));
}
