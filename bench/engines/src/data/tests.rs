use super::*;

#[test]
fn a_permutation_visits_every_number_once() {
    for count in [1, 2, 3, 100, 1000, 1024, 1025] {
        let permutation = Permutation::new(7, count);
        let mut numbers: Vec<u64> = (0..count).map(|index| permutation.get(index)).collect();
        numbers.sort_unstable();
        assert_eq!(numbers, (0..count).collect::<Vec<_>>(), "{count} numbers");
    }
}

#[test]
fn keys_sort_as_their_numbers_and_absent_ones_lie_between() {
    for number in [0, 9, 10, 123_456_789] {
        assert!(key(number) < absent_key(number));
        assert!(absent_key(number) < key(number + 1));
    }
}

/// With theta 0.99 over 1,000 ranks, the first has 1 / zeta(1000) = 12.8 % of the draws.
#[test]
fn zipfian_draws_have_the_share_of_the_distribution() {
    let zipfian = Zipfian::new(3, 1000);
    let first = zipfian.places.get(0);
    let mut rng = Rng::new(11);
    let draws = 100_000;
    let hits = (0..draws).filter(|_| zipfian.next(&mut rng) == first).count();
    let share = hits as f64 / f64::from(draws);
    assert!((0.12..0.14).contains(&share), "{share}");
}
