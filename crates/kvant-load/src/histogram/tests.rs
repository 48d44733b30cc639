use super::*;

#[test]
fn a_percentile_is_the_value_at_its_rank() {
    // Values 1 ms apart fall into different buckets up to 1 s.
    for (count, percent, rank) in
        [(1_000, 99.9, 999), (1_000, 99.0, 990), (10, 90.0, 9), (100, 55.0, 55), (7, 100.0, 7)]
    {
        let mut histogram = Histogram::new();
        (1..=count).for_each(|value| histogram.record_ns(value * 1_000_000));
        let found_ns = histogram.percentile_ns(percent);
        let apart_ns = found_ns.abs_diff(rank * 1_000_000);
        assert!(
            apart_ns < 1_000_000 / 2 || apart_ns <= rank * 1_000,
            "p{percent} of {count} values is {found_ns} ns, not that of rank {rank}"
        );
    }
}

#[test]
fn recording_nothing_leaves_a_histogram_empty() {
    let mut histogram = Histogram::new();
    histogram.record_many_ns(5_000, 0);
    assert!(histogram.is_empty());
    assert_eq!((histogram.min_ns(), histogram.max_ns(), histogram.percentile_ns(50.0)), (0, 0, 0));
    histogram.record_many_ns(5_000, 3);
    assert_eq!(histogram.count(), 3);
}
