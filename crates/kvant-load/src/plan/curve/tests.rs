use super::*;

#[test]
fn counts_are_rounded_up_but_ignore_rounding_errors() {
    let count = |rate: f64, ms: u64| Curve::new(7, 7 + ms * 1_000_000, rate, rate).count();
    assert_eq!(count(0.1, 30_000), 3);
    assert_eq!(count(0.1, 30_001), 4);
    assert_eq!(count(1.0 / 3.0, 3_000), 1);
    assert_eq!(count(1e6, 86_400_000), 86_400_000_000);
    assert_eq!(count(1e-3, 1_000), 1);
    assert_eq!(count(0.0, 1_000), 0);
    assert_eq!(count(-1.0, 1_000), 0);
    assert_eq!(count(f64::NAN, 1_000), 0);
    assert_eq!(count(1_000.0, 0), 0);
}

#[test]
fn a_ramp_plans_the_area_under_its_rate() {
    // 0 to 100 per second over 10 s: 500 requests, a quarter of them in the first half.
    let up = Curve::new(0, 10_000_000_000, 0.0, 100.0);
    assert_eq!(up.count(), 500);
    assert_eq!(up.time_of_ns(125.0), 5_000_000_000);
    assert_eq!(up.positions_before(5_000_000_000), 125);
    assert_eq!(up.positions_before(5_000_000_001), 126);
    // A falling ramp is its mirror image.
    let down = Curve::new(0, 10_000_000_000, 100.0, 0.0);
    assert_eq!(down.count(), 500);
    assert_eq!(down.time_of_ns(375.0), 5_000_000_000);
    assert_eq!(down.time_of_ns(500.0), 9_999_999_999);
    for n in 0..=500 {
        let mirrored_ns = 10_000_000_000 - up.time_of_ns(f64::from(500 - n));
        assert!(down.time_of_ns(f64::from(n)).abs_diff(mirrored_ns) <= 1_000, "{n}");
    }
}

#[test]
fn intervals_do_not_drift_within_a_day() {
    let rate = 30_000.0;
    let day = Curve::new(0, 86_400_000_000_000, rate, rate);
    for second in [1u64, 3_600, 43_200, 86_399] {
        assert_eq!(day.time_of_ns(rate * second as f64), second * 1_000_000_000);
    }
    // 100 us / 3 is not a whole number of nanoseconds: the error stays within half of one.
    let last: u64 = 86_400 * 30_000 - 1;
    let exact_ns = u128::from(last) * 1_000_000_000 / 30_000;
    assert!(u128::from(day.time_of_ns(last as f64)).abs_diff(exact_ns) <= 1);
}
