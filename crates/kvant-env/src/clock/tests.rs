use super::*;

#[test]
fn the_system_clock_never_decreases_and_shows_the_current_year() {
    let clock = SystemClock::new();
    let first = clock.monotonic_ns();
    assert!(clock.monotonic_ns() >= first);
    // 2024-01-01T00:00:00Z.
    assert!(clock.wall_ms() > 1_704_067_200_000);
}
