use super::*;
use crate::config::{Phase, Rate};
use crate::histogram::Histogram;
use crate::record::Interval;
use kvant_env::rng::Rng;
use std::time::Duration;

fn seconds(backlogs: &[f64]) -> Vec<Second> {
    let second = |(at, backlog): (usize, &f64)| Second {
        start_ns: at as u64 * 1_000_000_000,
        end_ns: (at as u64 + 1) * 1_000_000_000,
        planned: 1_000,
        completed: 1_000,
        backlog: *backlog as u64,
        ..Second::default()
    };
    backlogs.iter().enumerate().map(second).collect()
}

fn outcome(planned: u64, completed: u64, in_flight: u64, backlogs: &[f64]) -> Outcome {
    Outcome {
        phase: Phase {
            rate: Rate::Constant(1_000.0),
            warmup: Duration::ZERO,
            duration: Duration::from_secs(10),
            request_count_max: None,
        },
        start_wall_ms: 0,
        measure_start_ns: None,
        measured_ns: 10_000_000_000,
        total: Interval { planned, completed, sent: completed, ..Interval::default() },
        seconds: seconds(backlogs),
        backlog: 0,
        in_flight,
        unanswered: Histogram::new(),
        threads: Vec::new(),
        machine: None,
        is_cut_short: false,
    }
}

fn reasons(outcome: &Outcome) -> Vec<String> {
    judge(outcome, Vec::new()).reasons
}

#[test]
fn a_plan_that_was_kept_holds() {
    assert_eq!(reasons(&outcome(10_000, 9_990, 10, &[0.0; 10])), Vec::<String>::new());
    assert_eq!(reasons(&outcome(10_000, 9_951, 0, &[0.0; 10])), Vec::<String>::new());
}

#[test]
fn a_plan_that_was_not_kept_fails_with_figures() {
    let judged = judge(&outcome(10_000, 9_900, 10, &[0.0; 10]), Vec::new());
    assert!(judged.reasons[0].contains("99.10 %"), "{judged:?}");
    assert!(judged.is_close);
    let far = judge(&outcome(10_000, 5_000, 10, &[0.0; 10]), Vec::new());
    assert!(!far.holds() && !far.is_close);
    assert!(reasons(&outcome(0, 0, 0, &[]))[0].contains("nothing was planned"));
}

#[test]
fn a_hiccup_at_the_end_is_a_narrow_failure_and_a_growing_queue_is_not() {
    let mut hiccup = [0.0; 10];
    hiccup[9] = 500.0;
    let judge = |outcome: &Outcome| judge(outcome, Vec::new());
    let judged = judge(&outcome(10_000, 9_500, 0, &hiccup));
    assert!(!judged.holds() && judged.is_close, "{judged:?}");
    let grows: Vec<f64> = (1..=10).map(|second| 50.0 * f64::from(second)).collect();
    let judged = judge(&outcome(10_000, 9_500, 0, &grows));
    assert!(!judged.holds() && !judged.is_close, "{judged:?}");
}

#[test]
fn errors_of_any_kind_count() {
    let mut outcome = outcome(10_000, 10_000, 0, &[0.0; 10]);
    outcome.total.errors.status = 6;
    outcome.total.errors.timeout = 4;
    assert_eq!(reasons(&outcome), Vec::<String>::new());
    outcome.total.errors.read = 1;
    assert!(reasons(&outcome)[0].contains("0.11 %"));
}

#[test]
fn missed_objectives_are_reasons() {
    let outcome = outcome(10_000, 10_000, 0, &[0.0; 10]);
    let judged = judge(&outcome, vec!["p99 is 7 ms".into()]);
    assert_eq!(judged.reasons, ["p99 is 7 ms"]);
}

#[test]
fn a_growing_backlog_fails_and_a_varying_one_does_not() {
    let grows: Vec<f64> =
        (0..10).map(|second| 4.0 * f64::from(second) + f64::from(second % 2)).collect();
    assert!(
        reasons(&outcome(10_000, 9_960, 0, &grows))[0].contains("grew by 4.0 requests a second")
    );
    let varies = [5.0, 80.0, 2.0, 60.0, 9.0, 70.0, 1.0, 90.0, 3.0, 75.0];
    assert_eq!(reasons(&outcome(10_000, 9_960, 0, &varies)), Vec::<String>::new());
    let shrinks: Vec<f64> = (0..10).map(|second| 100.0 - 10.0 * f64::from(second)).collect();
    assert_eq!(reasons(&outcome(10_000, 9_960, 0, &shrinks)), Vec::<String>::new());
    // Significant, but too small to matter.
    let by_one: Vec<f64> = (0..10).map(f64::from).collect();
    assert_eq!(reasons(&outcome(100_000, 99_990, 0, &by_one)), Vec::<String>::new());
}

#[test]
fn trends_match_the_textbook() {
    // y = 3 x + 2 exactly.
    let exact = trend(&seconds(&[5.0, 8.0, 11.0, 14.0, 17.0]));
    assert!((exact.slope - 3.0).abs() < 1e-9 && (exact.slope_min - 3.0).abs() < 1e-6, "{exact:?}");
    // By hand: slope 1.1, squared residuals 1.1, so a deviation of sqrt(1.1 / 3 / 10) = 0.19149,
    // times 2.35336.
    let rough = trend(&seconds(&[1.0, 3.0, 4.0, 4.0, 6.0]));
    assert!((rough.slope - 1.1).abs() < 1e-9, "{rough:?}");
    assert!((rough.slope_min - (1.1 - 0.45064)).abs() < 0.003, "{rough:?}");
    assert_eq!(trend(&seconds(&[1.0, 100.0, 1000.0])), Trend::default(), "too short");
}

#[test]
fn quantiles_of_students_distribution_match_the_tables() {
    for (freedom, quantile) in
        [(3.0, 2.3534), (5.0, 2.0150), (8.0, 1.8595), (18.0, 1.7341), (1_000.0, 1.6464)]
    {
        let ratio = student_95(freedom) / quantile;
        assert!((ratio - 1.0).abs() < 0.006, "{freedom}: {ratio}");
    }
}

#[test]
fn noise_without_a_trend_is_growth_in_one_of_twenty_cases() {
    let seed = kvant_env::testing::entropy_seed();
    println!("seed {seed}");
    let mut rng = Rng::new(seed);
    // The sum of four uniform numbers is approximately normal.
    let mut noise = || (0..4).map(|_| rng.below(1_000)).sum::<u64>() as f64;
    let grown = (0..4_000)
        .filter(|_| {
            let backlogs: Vec<f64> = (0..10).map(|_| noise()).collect();
            trend(&seconds(&backlogs)).slope_min > 0.0
        })
        .count();
    // 200 are expected, with a deviation of 14.
    assert!((120..280).contains(&grown), "{grown} of 4000, seed {seed}");
}

#[test]
fn significant_lateness_is_blamed_on_the_generator() {
    let mut outcome = outcome(10_000, 10_000, 0, &[0.0; 10]);
    outcome
        .total
        .op_mut(crate::OpNames::default().intern("get"))
        .response
        .record_many_ns(2_000_000, 1_000);
    outcome.total.lateness.record_ns(2_000_000, 150_000);
    assert_eq!(generator_limit(&outcome), None, "less than a tenth");
    outcome.total.lateness.record_ns(2_000_000, 900_000);
    assert!(generator_limit(&outcome).unwrap().contains("send lag"));
}
