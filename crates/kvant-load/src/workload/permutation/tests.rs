use super::*;

#[test]
fn each_number_is_reached_exactly_once() {
    for count in (1..70).chain([127, 128, 129, 1_000, 4_096, 100_003]) {
        let permutation = Permutation::new(count);
        let mut all: Vec<_> = (0..count).map(|at| permutation.map(at)).collect();
        all.sort_unstable();
        assert!(all.into_iter().eq(0..count), "count {count}");
    }
}

#[test]
fn large_counts_are_permuted() {
    for count in [1_000_000_000_000, (1 << 40) - 1, 1 << 40, (1 << 40) + 1, 1 << 62] {
        let permutation = Permutation::new(count);
        assert!(
            (0..1_000)
                .all(|at| permutation.map(at) < count && permutation.map(count - 1 - at) < count)
        );
    }
}

#[test]
fn neighbours_are_spread() {
    let count = 1_000_000;
    let permutation = Permutation::new(count);
    // Each tenth of the keys has some of the hottest hundred ranks, and hardly any two are close.
    let mut hot: Vec<_> = (0..100).map(|at| permutation.map(at)).collect();
    hot.sort_unstable();
    let tenths: Vec<_> =
        (0..10).map(|tenth| hot.iter().filter(|at| **at * 10 / count == tenth).count()).collect();
    assert!(tenths.iter().all(|hot| (1..30).contains(hot)), "{tenths:?}");
    let near = hot.windows(2).filter(|pair| pair[1] - pair[0] < 100).count();
    assert!(near < 10, "{near}");
}
