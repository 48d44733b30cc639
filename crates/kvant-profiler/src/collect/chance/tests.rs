use super::*;

#[test]
fn gaps_have_the_mean_and_variance_of_an_exponential_distribution() {
    let count = 200_000;
    let gaps: Vec<f64> = (0..count).map(|_| exponential()).collect();
    let mean = gaps.iter().sum::<f64>() / f64::from(count);
    let beyond_mean = gaps.iter().filter(|gap| **gap > 1.0).count() as f64 / f64::from(count);
    // Seven standard deviations.
    assert!((mean - 1.0).abs() < 0.016, "mean {mean}");
    assert!((beyond_mean - (-1_f64).exp()).abs() < 0.008, "share beyond the mean {beyond_mean}");
}

#[test]
fn weights_are_unbiased_for_all_sizes() {
    for size in [16, 1_000, 40_000, 1 << 20] {
        let (mean, count) = (64 << 10, 100_000);
        let total = size * count;
        let points = SamplePoints::new();
        let sampled = (0..count).filter(|_| points.pass(size, mean)).count() as u64;
        let weighed = sampled * unbiased(size, mean);
        let probability = probability(size, mean);
        let deviation =
            ((1.0 - probability) * probability * count as f64).sqrt() * unbiased(size, mean) as f64;
        assert!(
            (weighed as f64 - total as f64).abs() <= 7.0 * deviation + total as f64 / 1_000.0,
            "size {size}: {weighed} of {total}"
        );
    }
}

#[test]
fn an_item_without_size_has_no_weight() {
    assert_eq!(unbiased(0, 1_000), 0);
    let points = SamplePoints::new();
    assert!((0..1_000).all(|_| !points.pass(0, 1_000)));
}

#[test]
fn a_new_mean_takes_effect_immediately() {
    let points = SamplePoints::new();
    assert!(!points.pass(1, u64::MAX));
    let sampled = (0..10_000).filter(|_| points.pass(1_000, 1)).count();
    assert_eq!(sampled, 10_000);
}

#[test]
fn is_one_in_has_its_probability() {
    let count = (0..160_000).filter(|_| is_one_in(16)).count();
    // Seven standard deviations.
    assert!((9_320..=10_680).contains(&count), "{count}");
}
