//! Reads of blocks: what requests waited for themselves, and what they waited for behind others.

use super::simulation::{MS, Simulation};
use super::{assert_first, explain, part, row};
use crate::explain::evidence::{Phase, Request};
use crate::explain::model::Cause;
use crate::explain::text;

/// Makes a request spend nine tenths of its storage work on reading a block.
fn reads_a_block(request: &mut Request) {
    request.block_reads = 1;
    request.block_read_ns = request.phases_ns[Phase::Storage as usize] / 10 * 9;
}

/// Workers at nine tenths of their capacity.
fn busy_workers() -> Simulation {
    Simulation {
        tells_phases: true,
        rate_per_s: 4_500,
        special: |request, _| reads_a_block(request),
        ..Simulation::default()
    }
}

#[test]
fn the_queue_behind_workers_that_read_blocks_is_given_to_the_block_reads() {
    let explanation = explain(&busy_workers().evidence());
    for percent in [50.0, 90.0, 99.0, 99.9] {
        assert_first(&explanation, "get", percent, &Cause::BlockReads);
        let share = part(&row(&explanation, "get", percent), &Cause::BlockReads);
        assert!((0.85..=0.95).contains(&share), "{share}\n{}", text(&explanation));
    }
}

#[test]
fn the_queue_of_gets_behind_ranges_is_given_to_what_the_ranges_read() {
    let simulation = Simulation {
        special: |request, rng| {
            if rng.below(2) == 0 {
                request.operation = "range".to_owned();
                request.block_read_ns = request.phases_ns[Phase::Storage as usize];
            }
        },
        ..busy_workers()
    };
    let explanation = explain(&simulation.evidence());
    let share = part(&row(&explanation, "get", 99.0), &Cause::BlockReads);
    assert!((0.4..=0.6).contains(&share), "{share}\n{}", text(&explanation));
}

#[test]
fn writes_do_not_wait_for_the_block_reads_of_reads() {
    let simulation = Simulation {
        special: |request, rng| {
            reads_a_block(request);
            if rng.below(2) == 0 {
                request.operation = "put".to_owned();
            }
        },
        ..busy_workers()
    };
    let explanation = explain(&simulation.evidence());
    assert_eq!(part(&row(&explanation, "put", 99.0), &Cause::BlockReads), 0.0);
    assert_first(&explanation, "put", 99.0, &Cause::Queueing);
}

#[test]
fn a_short_block_read_does_not_explain_long_storage_work() {
    let simulation = Simulation {
        tells_phases: true,
        special: |request, rng| {
            if rng.below(20) == 0 {
                (request.block_reads, request.block_read_ns) = (1, 100_000);
                request.phases_ns[Phase::Storage as usize] += 5 * MS;
            }
        },
        ..Simulation::default()
    };
    let explanation = explain(&simulation.evidence());
    let share = part(&row(&explanation, "get", 99.0), &Cause::BlockReads);
    assert!(share < 0.1, "{share}\n{}", text(&explanation));
}

#[test]
fn a_higher_percentile_never_has_a_lower_undisturbed_level() {
    // One request of twenty reads a block, and does hardly anything else.
    let simulation = Simulation {
        tells_phases: true,
        special: |request, rng| {
            if rng.below(20) == 0 {
                request.phases_ns[Phase::Queue as usize] = 0;
                request.phases_ns[Phase::Storage as usize] = 20 * MS;
                (request.block_reads, request.block_read_ns) = (1, 20 * MS);
            }
        },
        ..Simulation::default()
    };
    let explanation = explain(&simulation.evidence());
    assert_first(&explanation, "get", 99.0, &Cause::BlockReads);
    let levels_ns: Vec<u64> = explanation.rows.iter().map(|row| row.level_ns).collect();
    assert!(levels_ns.is_sorted() && levels_ns.len() == 4, "{}", text(&explanation));
}
