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

#[test]
fn the_system_clock_never_decreases_and_shows_the_current_year() {
    let clock = SystemClock::new();
    let first = clock.monotonic_ns();
    assert!(clock.monotonic_ns() >= first);
    // 2024-01-01T00:00:00Z.
    assert!(clock.wall_ms() > 1_704_067_200_000);
}
