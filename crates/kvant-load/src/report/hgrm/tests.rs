use super::*;

fn text(histogram: &Histogram) -> String {
    let mut out = Vec::new();
    write(&mut out, histogram, "response time, GET").unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn a_distribution_has_comment_header_rows_and_footer() {
    let mut histogram = Histogram::new();
    (1..=10).for_each(|ms| histogram.record_ns(ms * 1_000_000));
    let text = text(&histogram);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "# response time, GET");
    assert_eq!(lines[1], "       Value     Percentile TotalCount 1/(1-Percentile)");
    assert_eq!(lines[2], "");
    assert_eq!(lines[3], "       1.000 0.000000000000          1           1.00");
    assert_eq!(lines[8], "       5.001 0.500000000000          5           2.00");
    let last_row = lines.iter().rposition(|line| !line.starts_with('#')).unwrap();
    assert_eq!(lines[last_row], "      10.002 1.000000000000         10");
    assert_eq!(lines[last_row + 1], "#[Mean    =        5.500, StdDeviation   =        2.872]");
    assert_eq!(lines[last_row + 2], "#[Max     =        9.994, Total count    =           10]");
    assert_eq!(lines[last_row + 3], "#[Buckets =           29, SubBuckets     =         2048]");
}

#[test]
fn plotters_find_four_numbers_in_every_row_but_the_last() {
    let mut histogram = Histogram::new();
    (0..100_000_u64).for_each(|i| histogram.record_ns(i * i % 1_000_003 * 1_000));
    let text = text(&histogram);
    let rows: Vec<Vec<f64>> = text
        .lines()
        .filter(|line| !line.starts_with('#') && !line.contains("Value") && !line.is_empty())
        .map(|line| line.split_whitespace().map(|word| word.parse().unwrap()).collect())
        .collect();
    assert!(rows.len() > 50);
    let (last, others) = rows.split_last().unwrap();
    assert!(others.iter().all(|row| row.len() == 4));
    assert_eq!((last.len(), last[2]), (3, 100_000.0));
}

#[test]
fn an_empty_histogram_has_no_rows_and_a_count_of_zero() {
    let text = text(&Histogram::new());
    assert!(text.contains("Total count    =            0]"), "{text}");
}
