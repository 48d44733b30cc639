//! How often a comparison claims a difference, on data with known ones. The counts are of fixed
//! seeds: they are the same in each run. `examples/compare_synthetic` counts further seeds.

use crate::synthetic::{self, Made};

fn made(count: u64, factor: f64) -> impl Iterator<Item = Made> {
    // Far apart: a comparison uses the seeds after its own.
    (1..=count).map(move |index| synthetic::compare(index << 32, factor))
}

#[test]
fn equal_sides_differ_in_at_most_5_of_100_comparisons() {
    let mut claimed = 0;
    for one in made(100, 1.0) {
        let mut intervals = one.intervals.iter().flatten();
        claimed += usize::from(intervals.any(|interval| interval.difference().is_some()));
    }
    println!("{claimed} of 100 comparisons of equal sides claim a difference");
    assert!(claimed <= 5, "{claimed}");
}

#[test]
fn five_per_cent_more_time_is_found_with_its_sign() {
    let mut found = 0;
    for one in made(50, 1.05) {
        let medians = one.intervals[0].expect("there are enough blocks");
        assert_ne!(medians.difference(), Some(false), "{medians:?}");
        found += usize::from(medians.difference() == Some(true));
    }
    println!("5 % more time is found in {found} of 50 comparisons");
    // Ten blocks of this noise find it in two of three; none may find the opposite.
    assert!(found >= 30, "{found}");
}
