use super::*;
use kvant_env::rng::Rng;

fn snapshot(values: &[u64]) -> Snapshot {
    let histogram = Histogram::new();
    values.iter().for_each(|&ns| histogram.record(ns));
    let mut snapshot = Snapshot::new();
    snapshot.add(&histogram);
    snapshot
}

/// Durations of all magnitudes, sorted.
fn durations(seed: u64, count: usize) -> Vec<u64> {
    let mut rng = Rng::new(seed);
    let mut values: Vec<u64> = (0..count)
        .map(|_| {
            let bits = rng.next_u64() % 36;
            rng.next_u64() & ((1 << bits) - 1)
        })
        .collect();
    values.sort_unstable();
    values
}

#[test]
fn buckets_follow_each_other_and_are_narrow() {
    let mut lowest_ns = 0;
    for bucket in 0..BUCKET_COUNT {
        assert_eq!(bucket_of(lowest_ns), bucket);
        let highest_ns = highest_ns(bucket);
        assert_eq!(bucket_of(highest_ns), bucket);
        assert!((highest_ns - lowest_ns) * 32 <= lowest_ns, "{lowest_ns}..={highest_ns}");
        lowest_ns = highest_ns + 1;
    }
    assert_eq!(lowest_ns, LIMIT_NS);
    for ns in [LIMIT_NS, LIMIT_NS + 1, u64::MAX] {
        assert_eq!(bucket_of(ns), BUCKET_COUNT - 1);
    }
}

#[test]
fn percentiles_are_those_of_the_sorted_values_or_slightly_more() {
    for seed in 0..20 {
        let values = durations(seed, 1 + 500 * seed as usize);
        let snapshot = snapshot(&values);
        for per_cent in [0.0, 1.0, 50.0, 90.0, 99.0, 99.9, 100.0] {
            let rank = (values.len() as f64 * per_cent / 100.0).ceil().max(1.0) as usize;
            let exact_ns = values[rank - 1];
            let found_ns = snapshot.percentile_ns(per_cent);
            assert!(
                (exact_ns..=exact_ns + exact_ns / 32).contains(&found_ns),
                "seed {seed}, {per_cent} %: {found_ns} for {exact_ns}"
            );
        }
    }
}

#[test]
fn sums_maxima_and_numbers_are_exact() {
    let values = durations(7, 10_000);
    let snapshot = snapshot(&values);
    assert_eq!(snapshot.count(), 10_000);
    assert_eq!(snapshot.sum_ns, values.iter().sum::<u64>());
    assert_eq!(snapshot.max_ns, *values.last().unwrap());
    assert_eq!(snapshot.percentile_ns(100.0), snapshot.max_ns);
}

#[test]
fn values_at_most_a_bound_are_counted() {
    let values = durations(8, 10_000);
    let snapshot = snapshot(&values);
    for bound_ns in [0, 31, 63, 64, 50_000, 1_000_000, 2_500_000_000, LIMIT_NS, u64::MAX] {
        let at_most = |bound_ns| values.partition_point(|&ns| ns <= bound_ns) as u64;
        let count = snapshot.count_at_most(bound_ns);
        let highest_ns = bound_ns.saturating_add(bound_ns / 32);
        assert!((at_most(bound_ns)..=at_most(highest_ns)).contains(&count), "{bound_ns}");
    }
    assert_eq!(snapshot.count_at_most(u64::MAX), 10_000);
}

#[test]
fn merged_histograms_are_the_histogram_of_all_values() {
    let (some, others) = (durations(1, 3000), durations(2, 500));
    let [one, other] = [&some, &others].map(|values| {
        let histogram = Histogram::new();
        values.iter().for_each(|&ns| histogram.record(ns));
        histogram
    });
    let mut merged = Snapshot::new();
    merged.add(&one);
    merged.add(&other);
    let all = snapshot(&[some, others].concat());
    assert_eq!(merged.counts, all.counts);
    assert_eq!((merged.sum_ns, merged.max_ns), (all.sum_ns, all.max_ns));
}

#[test]
fn values_beyond_the_limit_are_bounded_by_the_maximum() {
    let snapshot = snapshot(&[5, LIMIT_NS + 3, 1 << 40]);
    assert_eq!(snapshot.percentile_ns(99.0), 1 << 40);
    assert_eq!(snapshot.percentile_ns(10.0), 5);
    assert_eq!(snapshot.count(), 3);
}

#[test]
fn an_empty_histogram_is_all_zeros() {
    let empty = snapshot(&[]);
    let figures = [
        empty.count(),
        empty.sum_ns,
        empty.max_ns,
        empty.percentile_ns(50.0),
        empty.count_at_most(u64::MAX),
    ];
    assert_eq!(figures, [0; 5]);
}
