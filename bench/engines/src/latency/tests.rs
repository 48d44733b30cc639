use super::*;

fn histogram(times: &[(u64, u64)]) -> Histogram<u64> {
    let mut histogram = Histogram::new(3).expect("valid");
    for &(time, count) in times {
        histogram.record_n(time, count).expect("in range");
    }
    histogram
}

#[track_caller]
fn assert_near(measured: u64, expected: u64) {
    let error = (measured as f64 - expected as f64).abs() / expected as f64;
    assert!(error < 0.01, "{measured} is not about {expected}");
}

#[test]
fn an_arrival_during_equal_operations_waits_for_the_rest_of_one() {
    let times = histogram(&[(1_000, 500)]);
    assert_near(wait_of_arrivals(&times, 0.5), 500);
    assert_near(wait_of_arrivals(&times, 0.99), 990);
}

/// 100,000 operations of 1 us and one stall of 100 ms: half of the time. No percentile of the
/// operations shows it.
#[test]
fn half_of_the_arrivals_wait_for_a_stall_that_takes_half_of_the_time() {
    let times = histogram(&[(1_000, 100_000), (100_000_000, 1)]);
    let latency = Latency::from(&times);
    assert_near(latency.p999, 1_000);
    assert_near(wait_of_arrivals(&times, 0.75), 50_000_000);
    assert_near(latency.arrival_p99, 98_000_000);
    assert_near(latency.arrival_p999, 99_800_000);
}

#[test]
fn arrivals_at_an_empty_loop_do_not_wait() {
    assert_eq!(wait_of_arrivals(&histogram(&[]), 0.999), 0);
}
