use super::*;

#[test]
fn the_median_of_an_even_number_of_values_is_the_mean_of_both_middles() {
    let summary = measured([4.0, 1.0, 3.0, 2.0]).unwrap();
    assert_eq!(summary, Measured { median: 2.5, min: 1.0, max: 4.0, count: 4 });
    assert_eq!(measured([7.0]).unwrap().median, 7.0);
    assert_eq!(measured([]), None);
    assert_eq!(measured([f64::NAN]), None, "what is no number is no value");
}

/// The ranks are those of tables of the sign test: 6 values give the whole range (96.9 %), 8 too
/// (99.2 %; without both ends 93.0 %), 9 leave out one at each end (96.1 %), 20 take the 6th to the
/// 15th (95.9 %).
#[test]
fn the_interval_of_the_median_has_the_ranks_of_the_sign_test() {
    let interval = |n: usize| median_interval((1..=n).map(|i| i as f64));
    assert_eq!(interval(5), None);
    assert_eq!(interval(6), Some((1.0, 6.0)));
    assert_eq!(interval(8), Some((1.0, 8.0)));
    assert_eq!(interval(9), Some((2.0, 8.0)));
    assert_eq!(interval(20), Some((6.0, 15.0)));
}
