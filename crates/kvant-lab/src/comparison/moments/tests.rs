use super::*;

const BLOCKS: std::ops::RangeInclusive<u32> = 1..=1_000;

#[test]
fn a_block_has_each_suspect_once_treated_beside_its_control() {
    for block in BLOCKS {
        let found = moments(7, block, 5, 100..200);
        let mut suspects: Vec<usize> = found.chunks(2).map(|pair| pair[0].suspect).collect();
        suspects.sort_unstable();
        assert_eq!(suspects, [0, 1, 2, 3, 4]);
        for pair in found.chunks(2) {
            assert_eq!(pair[0].suspect, pair[1].suspect);
            assert_ne!(pair[0].is_treated, pair[1].is_treated);
            assert!(pair.iter().all(|one| (100..200).contains(&one.gap_ns)), "{pair:?}");
        }
    }
}

#[test]
fn chance_decides_which_is_first_and_the_seed_decides_chance() {
    let first = |seed| BLOCKS.map(move |block| moments(seed, block, 2, 0..1)[0]);
    assert!(first(7).eq(first(7)));
    for count in [
        first(7).filter(|one| one.is_treated).count(),
        first(7).filter(|one| one.suspect == 0).count(),
    ] {
        assert!((430..=570).contains(&count), "{count}");
    }
}
