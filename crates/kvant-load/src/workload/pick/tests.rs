use super::*;

fn take(picker: &mut Picker, count: usize) -> Vec<u64> {
    let mut rng = Rng::new(1);
    (0..count).map(|_| picker.next(&mut rng)).collect()
}

#[test]
fn sequential_threads_share_all_keys_without_overlap() {
    for (count, threads) in [(10, 1), (10, 3), (7, 7), (1_000, 4)] {
        let mut all = Vec::new();
        for thread in 0..threads {
            let own = (count as usize - thread).div_ceil(threads);
            let mut picker = Picker::new(KeyDist::Sequential, count, thread, threads);
            let pass = take(&mut picker, own);
            assert_eq!(pass, take(&mut picker, own), "the next pass is the same");
            all.extend(pass);
        }
        all.sort_unstable();
        assert!(all.into_iter().eq(0..count), "{count} keys, {threads} threads");
    }
}

#[test]
fn more_threads_than_keys_stay_within_the_keys() {
    for thread in 0..5 {
        let mut picker = Picker::new(KeyDist::Sequential, 2, thread, 5);
        assert!(take(&mut picker, 10).into_iter().all(|index| index < 2));
    }
}

#[test]
fn random_picks_stay_within_the_keys() {
    for dist in [KeyDist::Uniform, KeyDist::Zipfian] {
        for count in [1, 2, 1_000] {
            let mut picker = Picker::new(dist, count, 0, 1);
            assert!(
                take(&mut picker, 1_000).into_iter().all(|index| index < count),
                "{dist:?} {count}"
            );
        }
    }
}

#[test]
fn a_zipfian_tenth_of_the_keys_takes_most_of_the_requests() {
    let share_of_hottest_tenth = |dist| {
        let mut counts = vec![0u64; 10_000];
        for index in take(&mut Picker::new(dist, 10_000, 0, 1), 200_000) {
            counts[index as usize] += 1;
        }
        counts.sort_unstable_by(|a, b| b.cmp(a));
        counts[..1_000].iter().sum::<u64>() as f64 / 200_000.0
    };
    let (zipfian, uniform) =
        (share_of_hottest_tenth(KeyDist::Zipfian), share_of_hottest_tenth(KeyDist::Uniform));
    assert!((0.70..0.85).contains(&zipfian), "{zipfian}");
    assert!(uniform < 0.2, "{uniform}");
}
