use super::*;

const MS: u64 = 1_000_000;

fn sample(at_ms: u64, server_ms: u64, all_ms: u64) -> WatchSample {
    WatchSample {
        at_ns: at_ms * MS,
        server_cpu_ns: Some(server_ms * MS),
        all_cpu_ns: Some(all_ms * MS),
        ..WatchSample::default()
    }
}

#[test]
fn counters_grow_on_straight_lines_between_samples() {
    let samples = vec![sample(0, 0, 0), sample(100, 50, 100), sample(200, 50, 300)];
    let watch = Watch { samples };
    let window = machine(&watch, 50 * MS, 150 * MS);
    assert_eq!(window.server_cpu_ns, Some(25 * MS));
    assert_eq!(window.all_cpu_ns, Some(150 * MS));
    assert_eq!(window.stolen_ns, None);
    assert!(!window.is_generator_paused);
    // Beyond the samples nothing is known.
    assert_eq!(machine(&watch, 150 * MS, 250 * MS).server_cpu_ns, None);
}

#[test]
fn a_gap_in_the_samples_is_a_pause_of_the_generator() {
    let samples = vec![sample(0, 0, 0), sample(100, 1, 1), sample(500, 2, 2), sample(600, 3, 3)];
    let watch = Watch { samples };
    let is_paused = |from_ms: u64| machine(&watch, from_ms * MS, (from_ms + 100) * MS);
    assert!(!is_paused(0).is_generator_paused);
    assert!(is_paused(100).is_generator_paused && is_paused(400).is_generator_paused);
    assert!(!is_paused(500).is_generator_paused);
}
