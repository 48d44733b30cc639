use super::likely_rows;
use kvant_env::rng::Rng;

#[test]
fn a_page_has_no_more_rows_than_the_range_has_records() {
    assert_eq!(likely_rows(1, 16), 1);
    assert_eq!(likely_rows(3, 65_536), 2);
    // A single bucket has all of them.
    assert_eq!(likely_rows(100, 1), 100);
    assert!(likely_rows(u64::MAX, 256) > 1 << 40);
}

#[test]
fn most_ranges_need_one_page_of_each_bucket() {
    let mut rng = Rng::new(1);
    for (count, bucket_count) in [(10, 4), (100, 16), (1_000, 16), (100, 64)] {
        let rows = likely_rows(count, bucket_count);
        let mut enough = 0;
        for _ in 0..1_000 {
            let mut counts = vec![0; bucket_count];
            for _ in 0..count {
                counts[rng.below(bucket_count as u64) as usize] += 1;
            }
            enough += u32::from(counts.iter().all(|&count| count < rows));
        }
        assert!(enough >= 650, "{enough} of 1,000 ranges of {count} from {bucket_count}");
        // Not by reading everything.
        let read = rows * bucket_count;
        assert!(read <= 4 * count as usize, "{read} rows of {bucket_count} for {count}");
    }
}
