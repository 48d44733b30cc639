use super::*;

#[test]
fn a_block_is_its_own_mirror_image() {
    for seed in 0..50 {
        for [first, second] in blocks(20) {
            assert_ne!(is_b_first(seed, first), is_b_first(seed, second), "{seed} {first}");
        }
    }
}

#[test]
fn about_half_of_all_blocks_begin_with_b() {
    let count = blocks(2_000).filter(|[first, _]| is_b_first(7, *first)).count();
    assert!((430..=570).contains(&count), "{count}");
}

#[test]
fn an_odd_repeat_at_the_end_is_in_no_block() {
    assert_eq!(blocks(5).collect::<Vec<_>>(), [[1, 2], [3, 4]]);
    assert_eq!(blocks(0).count(), 0);
}
