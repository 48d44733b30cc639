use super::*;

#[test]
fn the_numbers_of_a_seed_never_change() {
    // The first outputs of the reference implementation (Vigna, splitmix64.c).
    let mut rng = Rng::new(1_234_567);
    let expected =
        [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423];
    assert_eq!([rng.next_u64(), rng.next_u64(), rng.next_u64()], expected);
}

#[test]
fn numbers_cover_the_range_below_the_bound() {
    let mut rng = Rng::new(1);
    let mut counts = [0; 10];
    for _ in 0..1_000 {
        counts[rng.below(10) as usize] += 1;
    }
    assert!(counts.iter().all(|count| (50..200).contains(count)), "{counts:?}");
    assert_eq!(rng.below(1), 0);
}

#[test]
fn bytes_have_the_requested_count() {
    let mut rng = Rng::new(1);
    for count in 0..40 {
        assert_eq!(rng.bytes(count).len(), count);
    }
    assert_ne!(rng.bytes(16), rng.bytes(16));
}

#[test]
fn shuffles_bring_every_order_equally_often() {
    let mut rng = Rng::new(1);
    let mut counts = std::collections::BTreeMap::new();
    for _ in 0..6_000 {
        let mut items = [1, 2, 3];
        rng.shuffle(&mut items);
        *counts.entry(items).or_insert(0) += 1;
    }
    assert_eq!(counts.len(), 6);
    assert!(counts.values().all(|count| (850..1_150).contains(count)), "{counts:?}");
    rng.shuffle::<u8>(&mut []);
}
