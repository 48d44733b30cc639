//! How often a comparison claims a difference, on data with known ones. The counts are of fixed
//! seeds: they are the same in each run. `examples/compare_synthetic` counts further seeds.

use crate::synthetic;
use kvant_lab::comparison::intervals::Interval;

fn made(count: u64, blocks: u32, factor: f64) -> impl Iterator<Item = Vec<Option<Interval>>> {
    // Far apart: a comparison uses the seeds after its own.
    (1..=count).map(move |index| synthetic::compare(index << 32, blocks, factor))
}

#[test]
fn equal_sides_differ_in_at_most_5_of_100_comparisons() {
    let differs = |intervals: &Vec<Option<Interval>>| {
        intervals.iter().flatten().any(|interval| interval.difference().is_some())
    };
    let count = made(100, 10, 1.0).filter(differs).count();
    println!("{count} of 100 comparisons of equal sides claim a difference");
    assert!(count <= 5, "{count}");
}

#[test]
fn five_per_cent_more_time_is_found_with_its_sign() {
    let mut found = 0;
    for intervals in made(50, 16, 1.05) {
        let median = intervals[0].expect("there are enough blocks");
        assert_ne!(median.difference(), Some(false), "{median:?}");
        found += usize::from(median.difference() == Some(true));
    }
    println!("5 % more time is found in the median of {found} of 50 comparisons");
    assert!(found >= 45, "{found}");
}
