use super::*;

#[test]
fn a_mock_clock_moves_only_when_advanced() {
    let clock = MockClock::new(1_000);
    assert_eq!((clock.monotonic_ns(), clock.wall_ms()), (0, 1_000));
    clock.advance(Duration::from_micros(600));
    clock.advance(Duration::from_micros(600));
    assert_eq!((clock.monotonic_ns(), clock.wall_ms()), (1_200_000, 1_001));
}

#[test]
fn a_mock_clock_never_decreases() {
    let clock = MockClock::new(0);
    clock.advance_to(5);
    clock.advance_to(3);
    assert_eq!(clock.monotonic_ns(), 5);
}
