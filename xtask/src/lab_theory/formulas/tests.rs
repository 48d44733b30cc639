use super::{constant, exponential, waits_at_most};

fn assert_near(value: f64, expected: f64) {
    assert!((value / expected - 1.0).abs() < 0.02, "{value}, expected {expected}");
}

/// Simulated queues of 1,250,000 requests arrive at the same, within 2 % where they are accurate.
#[test]
fn formulas_agree_with_simulated_queues() {
    let (mean, p99) = constant(0.5);
    assert_near(mean, 1.5003);
    assert_near(p99, 4.322);
    let (mean, p99) = constant(0.8);
    assert_near(mean, 2.987);
    assert_near(p99, 11.14);
    let (mean, p99) = exponential(0.5);
    assert_near(mean, 1.999);
    assert_near(p99, 9.183);
}

#[test]
fn a_request_finds_an_empty_queue_as_often_as_the_server_is_idle() {
    for load in [0.1, 0.5, 0.9] {
        assert!((waits_at_most(load, 0.0) - (1.0 - load)).abs() < 1e-12);
    }
    // The probability grows up to and beyond where the sum is continued.
    let steps: Vec<f64> = (0..60).map(|t| waits_at_most(0.9, f64::from(t))).collect();
    assert!(steps.is_sorted() && steps[59] < 1.0, "{steps:?}");
}
