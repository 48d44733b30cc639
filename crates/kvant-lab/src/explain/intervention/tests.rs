//! Experiments on simulated servers of known behaviour.
//!
//! Flushes delay requests and compactions do not. What begins by itself is always both together, so
//! that nothing but the experiment can tell them apart. The counts are of fixed seeds: they are the
//! same in each run.

use super::*;
use crate::comparison::moments::moments;
use crate::explain::tests::simulation::{MS, SECOND, Simulation, event, exponential};
use crate::explain::{explain_with, text};
use kvant_env::rng::Rng;

const SUSPECTS: [Suspect; 2] = [Suspect::Flush, Suspect::Compaction];
const WINDOW_NS: u64 = SECOND;
const BLOCKS: u32 = 20;
const EVENT_NS: u64 = 60 * MS;
/// Between events of a kind that begin by themselves, on average.
const PERIOD_NS: u64 = 5 * SECOND;

/// An experiment in which flushes that the lab makes delay requests for so long; those that begin
/// by themselves come with pauses in any case.
fn experiment(seed: u64, pause_ns: u64) -> Vec<Effect> {
    let mut samples = Vec::new();
    for block in 1..=BLOCKS {
        let mut rng = Rng::new(seed << 32 | u64::from(block));
        let mut at_ns = SECOND;
        let trials: Vec<(Suspect, bool, u64)> =
            moments(seed << 16, block, SUSPECTS.len(), 300 * MS..700 * MS)
                .into_iter()
                .map(|moment| {
                    let from_ns = at_ns + moment.gap_ns;
                    at_ns = from_ns + WINDOW_NS;
                    (SUSPECTS[moment.suspect], moment.is_treated, from_ns)
                })
                .collect();
        let is_flush = |one: &&(Suspect, bool, u64)| one.0 == Suspect::Flush && one.1;
        let mut pauses: Vec<(u64, u64)> =
            trials.iter().filter(is_flush).map(|one| (one.2, pause_ns)).collect();
        let mut by_itself_ns = exponential(PERIOD_NS, &mut rng);
        while by_itself_ns < at_ns {
            pauses.push((by_itself_ns, EVENT_NS));
            by_itself_ns += EVENT_NS + exponential(PERIOD_NS, &mut rng);
        }
        pauses.sort_unstable();
        let evidence = Simulation {
            seed: rng.next_u64(),
            length_ns: at_ns + SECOND,
            rate_per_s: 1_500,
            pauses,
            ..Simulation::default()
        }
        .evidence();
        samples.extend(trials.into_iter().map(|(suspect, is_treated, from_ns)| Sample {
            case: 0,
            block,
            suspect,
            is_treated,
            latencies: due(&evidence.windows, from_ns, from_ns + WINDOW_NS),
        }));
    }
    effects(&samples, BLOCKS, seed)
}

fn of(effects: &[Effect], suspect: Suspect, percent: f64) -> &Effect {
    let is_wanted = |one: &&Effect| one.suspect == suspect && one.percent == percent;
    effects.iter().find(is_wanted).expect("it was measured")
}

#[test]
fn the_cause_is_convicted_and_the_decoy_cleared_in_10_of_10_experiments() {
    for seed in 1..=10 {
        let effects = experiment(seed, EVENT_NS);
        let cause = of(&effects, Suspect::Flush, 99.0);
        assert_eq!(cause.finding(), Finding::Cause, "{seed}: {cause:?}");
        for percent in PERCENTS {
            let decoy = of(&effects, Suspect::Compaction, percent);
            assert_eq!(decoy.finding(), Finding::NoEffect, "{seed}: {decoy:?}");
        }
    }
}

#[test]
fn an_experiment_without_effects_claims_one_in_at_most_5_of_100() {
    let is_claimed = |seed: &u64| {
        let effects = experiment(*seed, 0);
        effects.iter().any(|one| matches!(one.finding(), Finding::Cause | Finding::Relief))
    };
    let count = (1_001..=1_100).filter(is_claimed).count();
    println!("{count} of 100 experiments without effects claim one");
    assert!(count <= 5, "{count}");
}

#[test]
fn pauses_that_nobody_makes_happen_are_not_given_to_suspects() {
    // Rare and long: in a few of the windows, treated or not.
    let mut count = 0;
    for seed in 1..=100_u64 {
        let mut rng = Rng::new(seed);
        let sample = |(block, suspect, is_treated)| {
            let slow_ns = if rng.below(6) == 0 { 200 * MS } else { MS + rng.below(MS / 10) };
            let latencies = vec![(MS, 980), (slow_ns, 20)];
            let latencies = BTreeMap::from([("get".to_owned(), latencies)]);
            Sample { case: 0, block, suspect, is_treated, latencies }
        };
        let trials = (1..=BLOCKS).flat_map(|block| {
            SUSPECTS.into_iter().flat_map(move |suspect| {
                [true, false].map(|is_treated| (block, suspect, is_treated))
            })
        });
        let samples: Vec<Sample> = trials.map(sample).collect();
        let effects = effects(&samples, BLOCKS, seed);
        count += usize::from(
            effects.iter().any(|one| matches!(one.finding(), Finding::Cause | Finding::Relief)),
        );
    }
    println!("{count} of 100 experiments give rare pauses to a suspect");
    assert!(count <= 5, "{count}");
}

#[test]
fn requests_belong_to_the_time_at_which_they_were_due() {
    let window = |start_ns: u64, values: &[(u64, u64)]| {
        let of = crate::explain::evidence::OperationWindow {
            count: values.iter().map(|(_, count)| count).sum(),
            values: values.to_vec(),
            ..Default::default()
        };
        Window {
            start_ns,
            length_ns: 100 * MS,
            operations: BTreeMap::from([("get".to_owned(), of)]),
            ..Window::default()
        }
    };
    // One ends 300 ms after the stall began in which it was due, others at once.
    let windows = [
        window(0, &[(MS, 9)]),
        window(300 * MS, &[(MS, 8), (300 * MS, 1)]),
        window(400 * MS, &[(MS, 7)]),
    ];
    assert_eq!(due(&windows, 0, 100 * MS)["get"], [(MS, 9), (300 * MS, 1)]);
    assert_eq!(due(&windows, 300 * MS, 500 * MS)["get"], [(MS, 15)]);
}

#[test]
fn few_blocks_or_requests_claim_nothing() {
    let sample = |block, is_treated, count| Sample {
        case: 0,
        block,
        suspect: Suspect::Pause,
        is_treated,
        latencies: BTreeMap::from([(
            "get".to_owned(),
            vec![(if is_treated { 50 * MS } else { MS }, count)],
        )]),
    };
    let samples = |blocks: u32, count| -> Vec<Sample> {
        (1..=blocks).flat_map(|block| [true, false].map(|one| sample(block, one, count))).collect()
    };
    let few = effects(&samples(7, 1_000), 7, 1);
    assert!(few.iter().all(|one| one.finding() == Finding::Unknown && one.block_count == 7));
    let enough = effects(&samples(12, 100), 12, 1);
    let found = |percent| of(&enough, Suspect::Pause, percent).finding();
    assert_eq!([50.0, 99.0, 99.9].map(found), [Finding::Cause, Finding::Cause, Finding::Unknown]);
    let words = of(&enough, Suspect::Pause, 99.0).words();
    assert!(words.starts_with("cause, adds 49.0 ms ("), "{words}");
}

#[test]
fn an_explanation_says_what_an_experiment_found_of_what_coincides() {
    let pauses: Vec<(u64, u64)> = (1..12).map(|at| (at * 5 * SECOND, 200 * MS)).collect();
    let events = pauses.iter().map(|(start_ns, length_ns)| event("flush", *start_ns, *length_ns));
    let simulation =
        Simulation { events: events.collect(), pauses: pauses.clone(), ..Simulation::default() };
    let explained = |interval_ns, percent| {
        let effect = Effect {
            case: 0,
            suspect: Suspect::Flush,
            operation: "get".to_owned(),
            percent,
            block_count: 20,
            control_ns: Some(1e6),
            change_ns: Some(50e6),
            interval_ns,
            detectable_ns: Some(7e6),
            coinciding_part: 1.0,
        };
        explain_with(&simulation.evidence(), vec![effect])
    };
    let cause = explained(Some((40e6, 60e6)), 99.0);
    let claim = "coincides with flush (cause, adds 50.0 ms (40.0 ms to 60.0 ms))";
    assert!(cause.verdict[0].contains(claim), "{}", cause.verdict[0]);
    assert!(text(&cause).contains("flush (cause, adds 50.0 ms"), "{}", text(&cause));
    let correlation = explained(Some((-1e6, 60e6)), 99.0);
    let claim = "coincides with flush (correlation, no effect is shown; 7.00 ms or more would \
                 have been seen)";
    assert!(correlation.verdict[0].contains(claim), "{}", correlation.verdict[0]);
    // Of another percentile the experiment says nothing, nor with too few blocks.
    for explanation in [explained(Some((40e6, 60e6)), 90.0), explained(None, 99.0)] {
        assert!(explanation.verdict[0].ends_with("coincides with flush."), "{explanation:?}");
    }
}
