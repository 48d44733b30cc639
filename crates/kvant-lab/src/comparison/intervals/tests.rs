//! Known distributions. The counts are of fixed seeds: they are the same in each run.

use super::*;
use std::f64::consts::TAU;

/// Uniform in (0, 1].
fn uniform(rng: &mut Rng) -> f64 {
    ((rng.next_u64() >> 11) + 1) as f64 / (1u64 << 53) as f64
}

fn normal(rng: &mut Rng) -> f64 {
    (-2.0 * uniform(rng).ln()).sqrt() * (TAU * uniform(rng)).cos()
}

/// Figures of which half of the variance is common, with these standard deviations of a block.
fn figures(
    rng: &mut Rng,
    (figure_count, block_count): (usize, usize),
    mean: f64,
    deviation: &mut dyn FnMut(&mut Rng) -> f64,
) -> Vec<Vec<Option<f64>>> {
    let mut figures = vec![Vec::new(); figure_count];
    for _ in 0..block_count {
        let (scale, common) = (deviation(rng), normal(rng));
        for figure in &mut figures {
            let value = mean + scale * (common + normal(rng)) / 2f64.sqrt();
            figure.push(Some(value));
        }
    }
    figures
}

/// Comparisons of 400 in which an interval does not hold the mean.
fn wrong_count(shape: (usize, usize), mean: f64, deviation: fn(&mut Rng) -> f64) -> usize {
    let mut rng = Rng::new(20_25);
    let is_wrong = |seed: &u64| {
        let figures = figures(&mut rng, shape, mean, &mut { deviation });
        let off = |interval: &Interval| !(interval.low..=interval.high).contains(&mean.exp());
        simultaneous(&figures, *seed).iter().flatten().any(off)
    };
    (0..400).filter(is_wrong).count()
}

#[test]
fn normal_blocks_are_held_together_in_99_of_100() {
    // 4 are expected; more than 10 have a probability below 0.3 %.
    for shape in [(1, 8), (12, 8), (30, 12)] {
        for mean in [0.0, 0.3] {
            let count = wrong_count(shape, mean, |_| 0.02);
            assert!(count <= 10, "{shape:?} {mean}: {count}");
        }
    }
    // An interval that is too wide is never wrong.
    assert!(wrong_count((1, 12), 0.0, |_| 0.02) > 0);
}

#[test]
fn blocks_of_unequal_noise_are_held_too() {
    let heavy = |rng: &mut Rng| 0.02 * normal(rng).exp();
    let count = wrong_count((12, 10), 0.0, heavy);
    assert!(count <= 10, "{count}");
}

#[test]
fn blocks_that_differ_by_the_detectable_part_show_it() {
    let mut rng = Rng::new(5);
    let mut seen = 0;
    for seed in 0..200 {
        let mut blocks = figures(&mut rng, (6, 12), 0.0, &mut |_| 0.02);
        let part = simultaneous(&blocks, seed)[0].unwrap().detectable_part;
        blocks[0].iter_mut().flatten().for_each(|value| *value += part.ln_1p());
        seen += usize::from(simultaneous(&blocks, seed)[0].unwrap().difference() == Some(true));
    }
    // 192 are expected, with a deviation of 3.
    assert!((181..=199).contains(&seen), "{seen}");
}

#[test]
fn too_few_blocks_have_no_interval() {
    let mut rng = Rng::new(1);
    let mut of = figures(&mut rng, (2, 8), 0.0, &mut |_| 0.02);
    of[1][3] = None;
    let intervals = simultaneous(&of, 1);
    assert_eq!(intervals[0].unwrap().block_count, 8);
    assert_eq!(intervals[1], None);
    assert!(simultaneous(&[], 1).is_empty());
}

#[test]
fn equal_digits_do_not_make_a_difference_certain() {
    let rounded = vec![Some(0.0009); 10];
    assert_eq!(simultaneous(&[rounded], 1)[0].unwrap().difference(), None);
    let apart = vec![Some(0.02); 10];
    assert_eq!(simultaneous(&[apart], 1)[0].unwrap().difference(), Some(true));
}

#[test]
fn a_seed_repeats_the_intervals() {
    let of = figures(&mut Rng::new(3), (4, 9), 0.0, &mut |_| 0.02);
    assert_eq!(simultaneous(&of, 7), simultaneous(&of, 7));
}

#[test]
fn a_linear_drift_cancels_in_a_block() {
    let [at_1, at_2, at_3, at_4] = [1.0f64, 1.1, 1.2, 1.3].map(f64::exp);
    let ratio = log_ratio([at_1, at_4], [at_2, at_3]).unwrap();
    assert!(ratio.abs() < 1e-12, "{ratio}");
    assert_eq!(log_ratio([0.0, 1.0], [1.0, 1.0]), None);
}
