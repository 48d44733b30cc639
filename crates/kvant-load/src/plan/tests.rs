use super::*;
use kvant_env::testing::entropy_seed;

const S: Duration = Duration::from_secs(1);

fn plans(
    rate: Rate,
    warmup: Duration,
    duration: Duration,
    arrival: Arrival,
    seed: u64,
    threads: usize,
) -> Vec<Plan> {
    (0..threads)
        .map(|thread| Plan::new(rate, warmup, duration, arrival, seed, thread, threads))
        .collect()
}

/// The untaken times of a thread before `before_ns`.
fn left(plan: &Plan, before_ns: u64) -> Vec<u64> {
    let mut times = Vec::new();
    plan.each_left(0, before_ns, |at_ns, count| times.extend((0..count).map(|_| at_ns)));
    times
}

/// All planned times of all threads, in order.
fn merged(plans: &[Plan]) -> Vec<u64> {
    let mut times: Vec<u64> = plans.iter().flat_map(|plan| left(plan, u64::MAX)).collect();
    times.sort_unstable();
    times
}

fn seed() -> u64 {
    let seed = std::env::var("KVANT_TEST_SEED")
        .map_or_else(|_| entropy_seed(), |seed| seed.parse().unwrap());
    println!("KVANT_TEST_SEED={seed}");
    seed
}

#[test]
fn intervals_over_all_threads_are_equal() {
    for threads in [1, 2, 3, 7, 64, 1_000] {
        let plans =
            plans(Rate::Constant(250.0), Duration::ZERO, 2 * S, Arrival::Uniform, 0, threads);
        let expected: Vec<u64> = (0..500).map(|n| n * 4_000_000).collect();
        assert_eq!(merged(&plans), expected, "{threads} threads");
    }
}

#[test]
fn a_rate_below_the_number_of_threads_is_kept() {
    let plans = plans(Rate::Constant(3.0), Duration::ZERO, 10 * S, Arrival::Uniform, 0, 8);
    let counts: Vec<usize> = plans.iter().map(|plan| left(plan, u64::MAX).len()).collect();
    assert_eq!(counts, [4, 4, 4, 4, 4, 4, 3, 3]);
    assert_eq!(merged(&plans)[29], 9_666_666_667);
}

#[test]
fn a_warmup_comes_first_at_the_rate_of_the_start() {
    let ramp = Rate::Ramp { from: 10.0, to: 30.0 };
    let times = merged(&plans(ramp, 2 * S, S, Arrival::Uniform, 0, 3));
    assert_eq!(times.len(), 20 + 20);
    let warmup: Vec<u64> = (0..20).map(|n| n * 100_000_000).collect();
    assert_eq!(times[..20], warmup);
    assert_eq!(times[20], 2_000_000_000);
    let distances: Vec<u64> = times[20..].windows(2).map(|two| two[1] - two[0]).collect();
    assert!(distances.is_sorted_by(|a, b| a > b), "{distances:?}");
}

#[test]
fn nothing_is_planned_for_a_closed_loop_or_a_rate_of_0() {
    let ramp = Rate::Ramp { from: 0.0, to: 0.0 };
    for rate in [Rate::Closed, Rate::Constant(0.0), ramp, Rate::Constant(f64::NAN)] {
        for arrival in [Arrival::Uniform, Arrival::Poisson] {
            let mut plan = Plan::new(rate, S, S, arrival, 1, 0, 1);
            assert_eq!(plan.peek_ns(), None, "{rate:?} {arrival:?}");
            plan.advance();
            assert_eq!((plan.peek_ns(), plan.taken(), plan.planned_before(u64::MAX)), (None, 0, 0));
        }
    }
}

#[test]
fn random_plans_are_complete_ordered_and_counted_exactly() {
    let seed = seed();
    let mut rng = Rng::new(seed);
    for round in 0..300 {
        let rate = |rng: &mut Rng| rng.below(20_000) as f64 / (1 + rng.below(20)) as f64;
        let (from, to) = (rate(&mut rng), rate(&mut rng));
        let is_ramp = rng.one_in(2);
        let rate = if is_ramp { Rate::Ramp { from, to } } else { Rate::Constant(from) };
        let warmup = Duration::from_micros(rng.below(2) * rng.below(500_000));
        let duration = Duration::from_micros(1 + rng.below(1_000_000));
        let arrival = if rng.one_in(3) { Arrival::Poisson } else { Arrival::Uniform };
        let threads = 1 + rng.below(9) as usize;
        let mut plans = plans(rate, warmup, duration, arrival, rng.next_u64(), threads);
        let what =
            format!("{round}: {rate:?} {warmup:?} {duration:?} {arrival:?} {threads} threads");

        let times = merged(&plans);
        let (warmup_ns, end_ns) = (ns(warmup), ns(warmup) + ns(duration));
        assert!(times.iter().all(|time| *time < end_ns), "{what}");
        if arrival == Arrival::Uniform {
            let mean = if is_ramp { (from + to) / 2.0 } else { from };
            let measured = times.iter().filter(|time| **time >= warmup_ns).count();
            assert_eq!(measured as f64, (mean * duration.as_secs_f64() - 1e-6).ceil(), "{what}");
            let before = times.len() - measured;
            assert_eq!(
                before as f64,
                (from * warmup.as_secs_f64() - 1e-6).ceil().max(0.0),
                "{what}"
            );
        }
        // Counting agrees with iteration at any time, whatever has been taken.
        for plan in &mut plans {
            let all = left(plan, u64::MAX);
            assert!(all.is_sorted(), "{what}");
            let mut moment_ns = 0;
            let mut taken = 0;
            while moment_ns < end_ns {
                moment_ns += 1 + rng.below(ns(duration));
                // Often exactly a planned time.
                if rng.one_in(2) && !all.is_empty() {
                    moment_ns = moment_ns.max(all[rng.below(all.len() as u64) as usize]);
                }
                let due = all.iter().filter(|time| **time < moment_ns).count();
                assert_eq!(plan.planned_before(moment_ns), due as u64, "{what} at {moment_ns}");
                while taken < due && !rng.one_in(20) {
                    assert_eq!(plan.peek_ns(), Some(all[taken]), "{what}");
                    plan.advance();
                    taken += 1;
                }
                assert_eq!(plan.taken(), taken as u64);
                assert_eq!(left(plan, moment_ns), all[taken..due.max(taken)], "{what}");
            }
        }
    }
}

#[test]
fn poisson_arrivals_have_exponential_intervals() {
    let seed = seed();
    let rate = 20_000.0;
    for threads in [1, 5] {
        let times = merged(&plans(Rate::Constant(rate), S, 9 * S, Arrival::Poisson, seed, threads));
        // The count has mean and variance 200,000: 6 standard deviations are 2,700.
        assert!(times.len().abs_diff(200_000) < 2_700, "{} at {threads} threads", times.len());
        let gaps: Vec<f64> =
            times.windows(2).map(|two| (two[1] - two[0]) as f64 / 1e9 * rate).collect();
        let count = gaps.len() as f64;
        let mean = gaps.iter().sum::<f64>() / count;
        let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / count;
        // Both are 1; their standard errors are 1/sqrt(n) = 0.0022 and sqrt(8/n) = 0.0063.
        assert!((mean - 1.0).abs() < 0.014, "mean {mean}");
        assert!((variance - 1.0).abs() < 0.04, "variance {variance}");
        for limit in [0.1, 0.5, 1.0, 3.0] {
            let share = gaps.iter().filter(|gap| **gap > limit).count() as f64 / count;
            assert!((share - (-limit).exp()).abs() < 0.008, "{share} of the gaps are over {limit}");
        }
    }
}

#[test]
fn poisson_arrivals_follow_a_ramp() {
    let seed = seed();
    let ramp = Rate::Ramp { from: 0.0, to: 20_000.0 };
    let times = merged(&plans(ramp, Duration::ZERO, 10 * S, Arrival::Poisson, seed, 3));
    // A quarter of 100,000 in the first half, within 6 standard deviations.
    let early = times.iter().filter(|time| **time < 5_000_000_000).count();
    assert!(early.abs_diff(25_000) < 950, "{early}");
    assert!(times.len().abs_diff(100_000) < 1_900, "{}", times.len());
}

#[test]
fn random_arrivals_differ_between_threads_and_seeds_and_repeat_with_a_seed() {
    let first_ns = |seed, thread| {
        Plan::new(Rate::Constant(1e3), S, S, Arrival::Poisson, seed, thread, 100).peek_ns()
    };
    let mut all: Vec<_> =
        (0..100).flat_map(|seed| (0..100).map(move |thread| first_ns(seed, thread))).collect();
    all.sort_unstable();
    all.dedup();
    // Less than one equal pair is expected by chance.
    assert!(all.len() > 9_900, "{}", all.len());
    assert_eq!(first_ns(7, 3), first_ns(7, 3));
}
