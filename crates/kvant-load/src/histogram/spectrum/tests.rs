use super::*;

fn histogram(values_ns: impl IntoIterator<Item = u64>) -> Histogram {
    let mut histogram = Histogram::new();
    values_ns.into_iter().for_each(|ns| histogram.record_ns(ns));
    histogram
}

#[test]
fn an_empty_histogram_has_no_rows() {
    assert_eq!(Histogram::new().spectrum().count(), 0);
}

#[test]
fn a_single_value_has_a_first_and_a_last_row() {
    let rows: Vec<SpectrumRow> = histogram([1_000_000]).spectrum().collect();
    let quantiles: Vec<f64> = rows.iter().map(|row| row.quantile).collect();
    assert_eq!(quantiles, [0.0, 1.0]);
    assert!(rows.iter().all(|row| row.count == 1 && row.value_ns >= 1_000_000));
    assert!(rows[1].inverse().is_infinite());
}

#[test]
fn steps_are_a_fifth_of_each_halving() {
    let histogram = histogram((1..=1_000).map(|us| us * 1_000));
    let rows: Vec<SpectrumRow> = histogram.spectrum().collect();
    let quantiles: Vec<f64> = rows.iter().map(|row| row.quantile).take(12).collect();
    let expected = [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.775];
    for (quantile, expected) in quantiles.iter().zip(expected) {
        assert!((quantile - expected).abs() < 1e-12, "{quantile} is not {expected}");
    }
    // A row's value is the first that covers its quantile.
    let median = rows.iter().find(|row| row.quantile == 0.5).unwrap();
    assert_eq!(median.count, 500);
    assert!((500_000..=500_300).contains(&median.value_ns));
    assert_eq!(median.inverse(), 2.0);
    let [.., before, last] = rows[..] else { panic!("{rows:?}") };
    assert_eq!((last.quantile, last.count), (1.0, 1_000));
    // The largest value has a row below the quantile 1 too.
    assert_eq!((before.count, before.value_ns), (1_000, last.value_ns));
    // A row has the highest value of its bucket, the maximum the lowest.
    assert!(last.value_ns > histogram.max_ns());
}

#[test]
fn rows_repeat_a_value_that_covers_several_steps_except_the_last() {
    let mut values = vec![1_000_000; 80];
    values.extend(vec![2_000_000; 20]);
    let rows: Vec<SpectrumRow> = histogram(values).spectrum().collect();
    let counts: Vec<u64> = rows.iter().map(|row| row.count).collect();
    // 0 to 50 in tens, 55 to 75 in fives, 77.5, 80; then one row of the last value, and the end.
    assert_eq!(counts.iter().filter(|&&count| count == 80).count(), 6 + 5 + 2);
    assert_eq!(counts.iter().filter(|&&count| count == 100).count(), 2);
}

#[test]
fn quantiles_rise_and_values_and_counts_never_fall() {
    let values = (0..5_000_u64).map(|i| i * i % 7_919 * 10_000);
    let rows: Vec<SpectrumRow> = histogram(values).spectrum().collect();
    for pair in rows.windows(2) {
        assert!(pair[0].quantile < pair[1].quantile);
        assert!(pair[0].value_ns <= pair[1].value_ns && pair[0].count <= pair[1].count);
    }
}
