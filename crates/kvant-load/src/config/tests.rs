use super::*;

#[test]
fn polling_takes_at_most_a_tenth_of_the_time() {
    let config =
        LoadConfig { thread_count: 2, spin: Duration::from_micros(20), ..LoadConfig::default() };
    for (rate, spin_ns) in [
        (Rate::Closed, 0),
        // Two threads, 2 ms between the requests of each.
        (Rate::Constant(1_000.0), 20_000),
        // 50 us between them.
        (Rate::Constant(40_000.0), 5_000),
        (Rate::Ramp { from: 40_000.0, to: 0.0 }, 5_000),
        (Rate::Constant(0.001), 20_000),
    ] {
        let spin = config.spin_in(&rate);
        assert!(spin.as_nanos().abs_diff(spin_ns) <= 1, "{rate:?}: {spin:?}");
        let always = LoadConfig { spin: SPIN_ALWAYS, ..config.clone() };
        assert_eq!(always.spin_in(&rate), SPIN_ALWAYS);
    }
}
