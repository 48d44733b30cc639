use super::*;

/// Draws of a test against the probabilities.
const DRAWS: u64 = 400_000;

/// Pearson's statistic over the first ranks and the rest is below its mean plus five deviations.
fn check(count: u64, seed: u64) {
    let mut rng = Rng::new(seed);
    let zipf = Zipf::new(count);
    let shown = count.min(200) as usize;
    let mut counts = vec![0u64; shown + 1];
    for _ in 0..DRAWS {
        let rank = zipf.next(&mut rng);
        assert!((1..=count).contains(&rank), "rank {rank} of {count}, seed {seed}");
        counts[(rank as usize - 1).min(shown)] += 1;
    }
    let weights: Vec<f64> = (1..=count).map(|rank| (rank as f64).powf(-EXPONENT)).collect();
    let sum: f64 = weights.iter().sum();
    let mut expected: Vec<f64> = weights[..shown].iter().map(|weight| weight / sum).collect();
    expected.push(weights[shown..].iter().sum::<f64>() / sum);
    let statistic: f64 = counts
        .iter()
        .zip(&expected)
        .map(|(count, part)| (*count as f64, part * DRAWS as f64))
        .filter(|(_, expected)| *expected > 0.0)
        .map(|(count, expected)| (count - expected).powi(2) / expected)
        .sum();
    let freedom = shown as f64;
    let limit = freedom + 5.0 * (2.0 * freedom).sqrt();
    assert!(statistic < limit, "{statistic:.1} exceeds {limit:.1} for {count} ranks, seed {seed}");
}

#[test]
fn frequencies_of_ranks_follow_the_law() {
    let seed = kvant_env::testing::entropy_seed();
    println!("seed {seed}");
    for count in [1, 2, 3, 10, 1_000, 100_000] {
        check(count, seed);
    }
}

#[test]
fn the_highest_ranks_are_drawn() {
    let zipf = Zipf::new(5);
    let mut rng = Rng::new(1);
    assert!((0..1_000).any(|_| zipf.next(&mut rng) == 5));
    // The largest range: nothing overflows, and the upper half of the ranks is drawn as well.
    let zipf = Zipf::new(1_000_000_000_000);
    let high = (0..100_000).filter(|_| zipf.next(&mut rng) > 500_000_000_000).count();
    assert!((1_000..5_000).contains(&high), "{high}");
}
