use super::*;
use kvant_base::wait::WaitKind;

const CONTENTION: Kind = Kind::Wait(WaitKind::Contention);

fn sample(kind: Kind, weight: u64) -> Sample {
    Sample { weight, ..Sample::of(kind) }
}

/// Keeps at most `samples_max` of `weights`.
fn kept(kind: Kind, weights: impl Iterator<Item = u64>, samples_max: usize) -> Vec<u64> {
    let mut thinning = Thinning::default();
    let mut samples = Vec::new();
    for weight in weights {
        if samples.len() >= samples_max {
            thinning.thin(&mut samples);
        }
        samples.extend(thinning.keep(kind, weight).map(|weight| sample(kind, weight)));
    }
    samples.iter().map(|sample| sample.weight).collect()
}

#[test]
fn sums_stay_unbiased() {
    let weights = || (0..100_000).map(|number| 1 + number * 7 % 1_000);
    let kept = kept(Kind::Cpu, weights(), 2_000);
    assert!((700..=2_000).contains(&kept.len()), "{} samples", kept.len());
    let share = kept.iter().sum::<u64>() as f64 / weights().sum::<u64>() as f64;
    // The standard deviation is at most 3 % of the sum.
    assert!((0.8..1.2).contains(&share), "{share} of the true sum");
}

#[test]
fn large_samples_are_unchanged() {
    let weights =
        (0..10_000).map(|number| if number % 1_000 == 5 { 50_000_000 + number } else { 1 });
    let mut kept = kept(Kind::Alloc, weights, 500);
    assert!(kept.len() > 150, "of the others only {} are left", kept.len() - 10);
    kept.retain(|&weight| weight >= 50_000_000);
    let large: Vec<u64> = (0..10).map(|number| 50_000_005 + number * 1_000).collect();
    assert_eq!(kept, large);
}

#[test]
fn kinds_with_few_samples_are_not_thinned() {
    let mut samples: Vec<Sample> = (0..1_000).map(|_| sample(Kind::Cpu, 10)).collect();
    samples.extend((0..20).map(|weight| sample(CONTENTION, weight)));
    let mut thinning = Thinning::default();
    let places = thinning.thin(&mut samples);
    assert_eq!((thinning.threshold(Kind::Cpu), thinning.threshold(CONTENTION)), (20, 0));
    let contention = samples.iter().filter(|sample| sample.kind == CONTENTION);
    assert!(contention.map(|sample| sample.weight).eq(0..20));
    // The returned indices are right.
    let places: Vec<usize> = places.into_iter().flatten().collect();
    assert!(places.into_iter().eq(0..samples.len()));
}

#[test]
fn samples_without_weight_are_dropped() {
    let mut samples: Vec<Sample> = (0..100).map(|_| sample(Kind::Cpu, 0)).collect();
    Thinning::default().thin(&mut samples);
    assert!(samples.is_empty());
}
