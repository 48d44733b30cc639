use super::*;
use kvant_env::testing::MockClock;

const MS: u64 = 1_000_000;

fn stretch(start_ms: u64, end_ms: u64) -> Stretch {
    Stretch { start_ns: start_ms * MS, end_ns: end_ms * MS }
}

#[test]
fn slow_readings_near_each_other_are_one_stretch() {
    let mut probe = MemoryProbe::new(Arc::new(MockClock::new(0)));
    for (start_ms, end_ms, used_us) in [
        (0, 1, 20),
        (20, 30, 9_000),
        (50, 53, 900),
        (70, 73, 2_000),
        (200, 202, 1_500),
        (220, 221, 30),
    ] {
        probe.note(stretch(start_ms, end_ms), used_us * 1_000);
    }
    assert_eq!(probe.finish(), [stretch(20, 73), stretch(200, 202)]);
}

#[test]
fn only_the_time_of_the_load_is_told() {
    let slow = [stretch(0, 50), stretch(90, 110), stretch(300, 400)];
    assert!(note(&slow, 40 * MS, 100 * MS).unwrap().starts_with("memory was slow for 20 ms"));
    assert_eq!(note(&slow, 110 * MS, 300 * MS), None);
}
