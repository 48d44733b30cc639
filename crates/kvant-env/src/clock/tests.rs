use super::*;

#[test]
fn the_system_clock_never_decreases_and_shows_the_current_year() {
    let clock = SystemClock::new();
    let first = clock.monotonic_ns();
    assert!(clock.monotonic_ns() >= first);
    // 2024-01-01T00:00:00Z.
    assert!(clock.wall_ms() > 1_704_067_200_000);
}

#[test]
fn system_clocks_of_different_processes_have_the_same_origin() {
    let up_s = || -> f64 {
        let text = std::fs::read_to_string("/proc/uptime").unwrap();
        text.split_whitespace().next().unwrap().parse().unwrap()
    };
    // Time in suspension counts for the uptime only.
    let (now_s, up_s) = (SystemClock::new().monotonic_ns() as f64 / 1e9, up_s());
    assert!(now_s <= up_s + 0.02 && now_s > up_s / 1e3, "{now_s} s, up for {up_s} s");
}
