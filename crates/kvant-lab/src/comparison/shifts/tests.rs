//! Known distributions. The counts are of fixed seeds: they are the same in each run.

use super::*;

/// Uniform in (-1, 1).
fn uniform(rng: &mut Rng) -> f64 {
    (rng.next_u64() >> 11) as f64 / (1u64 << 52) as f64 - 1.0
}

/// Symmetric around 0, with a variance that does not exist.
fn heavy(rng: &mut Rng) -> f64 {
    let number = uniform(rng);
    number / (1.0 - number.abs()).max(1e-12)
}

/// Experiments of 400 in which an interval does not hold the shift.
fn wrong_count((figures, blocks): (usize, usize), shift: f64, noise: fn(&mut Rng) -> f64) -> usize {
    let mut rng = Rng::new(20_28);
    let is_wrong = |seed: &u64| {
        let number = |_| Some(shift + noise(&mut rng));
        let numbers: Vec<Option<f64>> = (0..figures * blocks).map(number).collect();
        let figures: Vec<Vec<Option<f64>>> = numbers.chunks(blocks).map(<[_]>::to_vec).collect();
        let off = |found: &Shift| !(found.low..=found.high).contains(&shift);
        simultaneous(&figures, *seed).iter().flatten().any(off)
    };
    (0..400).filter(is_wrong).count()
}

#[test]
fn shifts_are_held_together_in_99_of_100() {
    // 4 are expected; more than 10 have a probability below 0.3 %.
    for shape in [(1, 12), (12, 16)] {
        for noise in [uniform, heavy] {
            let count = wrong_count(shape, 3.0, noise);
            assert!(count <= 10, "{shape:?}: {count}");
        }
    }
}

#[test]
fn a_shift_of_any_size_with_the_same_sign_is_seen() {
    // Of three orders of magnitude, beside eleven figures of noise.
    let mut rng = Rng::new(5);
    let mut figures = vec![(0..20).map(|at| Some(1.5f64.powi(at))).collect::<Vec<_>>()];
    figures.extend((0..11).map(|_| (0..20).map(|_| Some(uniform(&mut rng))).collect()));
    let found = simultaneous(&figures, 1);
    assert!(found[0].expect("there are enough blocks").low > 0.0, "{:?}", found[0]);
    assert!(found[1..].iter().flatten().all(|noise| noise.low <= 0.0 && noise.high >= 0.0));
}

#[test]
fn a_constant_shift_is_its_own_interval() {
    let found = simultaneous(&[vec![Some(7.0); 12]], 1)[0].expect("there are enough blocks");
    assert_eq!((found.low, found.estimate, found.high, found.detectable), (7.0, 7.0, 7.0, 0.0));
}

#[test]
fn few_blocks_have_an_estimate_and_no_interval() {
    let numbers = [Some(1.0), None, Some(2.0), Some(9.0)];
    assert_eq!(simultaneous(&[numbers.to_vec()], 1), [None]);
    // Means: 1, 1.5, 2, 5, 5.5, 9.
    assert_eq!(estimate(&numbers), Some(3.5));
    assert_eq!(estimate(&[None]), None);
}

#[test]
fn blocks_without_a_difference_have_no_shift() {
    let numbers: Vec<Option<f64>> = (0..20).map(|at| Some(f64::from(at % 10 == 0))).collect();
    let found = simultaneous(&[numbers], 1)[0].expect("there are enough blocks");
    assert_eq!((found.low, found.estimate), (0.0, 0.0));
}
