use super::*;
use crate::store::ReadTrace;
use crate::timing::{Stamps, Trace};
use http::StatusCode;
use kvant_env::rng::Rng;

fn trace(operation: Operation, rng: &mut Rng) -> Trace {
    let mut at_ns = 1_000;
    let mut next_ns = || {
        let bits = rng.below(30);
        at_ns += rng.below(1 << bits);
        at_ns
    };
    Trace {
        operation,
        status: StatusCode::OK,
        stamps: Stamps {
            arrival_ns: next_ns(),
            parsed_ns: next_ns(),
            queued_ns: next_ns(),
            started_ns: next_ns(),
            done_ns: next_ns(),
            written_ns: next_ns(),
        },
        read: ReadTrace { block_read_ns: rng.below(1 << 20), ..ReadTrace::default() },
        ..Trace::default()
    }
}

#[test]
fn readings_add_up_to_what_was_recorded() {
    let seed = 15;
    let mut rng = Rng::new(seed);
    let highest_ns: Vec<u64> = pair_highest_ns().collect();
    let timings: Vec<Arc<Timings>> = (0..3).map(|_| Arc::default()).collect();
    let mut growth = Growth::new();
    for reading in 0..20 {
        let mut recorded: Vec<Trace> = Vec::new();
        for _ in 0..rng.below(200) {
            let operation = Operation::ALL[rng.below(3) as usize];
            let trace = trace(operation, &mut rng);
            timings[rng.below(3) as usize].record(&trace);
            recorded.push(trace);
        }
        let read = growth.read(&timings);
        for operation in Operation::ALL {
            let of_operation = recorded.iter().filter(|trace| trace.operation == operation);
            let mut totals_ns: Vec<u64> =
                of_operation.clone().map(|trace| trace.stamps.phase_ns(Phase::Total)).collect();
            totals_ns.sort_unstable();
            let found = read.iter().find(|recorded| recorded.operation == operation);
            let Some(found) = found else {
                assert!(totals_ns.is_empty(), "seed {seed}, reading {reading}: {operation:?}");
                continue;
            };
            for (phase, phase_ns) in Phase::ALL.into_iter().zip(found.phases_ns) {
                let sum_ns: u64 = of_operation.clone().map(|t| t.stamps.phase_ns(phase)).sum();
                assert_eq!(phase_ns, sum_ns, "seed {seed}: {operation:?} {phase:?}");
            }
            let read_ns: u64 = of_operation.clone().map(|trace| trace.read.block_read_ns).sum();
            assert_eq!(found.block_read_ns, read_ns, "seed {seed}: {operation:?}");
            // Each time is in the bucket that ends with it or shortly after it.
            let buckets = found.buckets.iter().flat_map(|&(bucket, count)| {
                std::iter::repeat_n(highest_ns[usize::from(bucket)], count as usize)
            });
            let buckets: Vec<u64> = buckets.collect();
            assert_eq!(buckets.len(), totals_ns.len());
            for (bound_ns, total_ns) in buckets.iter().zip(&totals_ns) {
                assert!((*total_ns..=total_ns + total_ns / 16 + 1).contains(bound_ns));
            }
            let max_ns = *totals_ns.last().unwrap();
            assert!((max_ns..=max_ns + max_ns / 16 + 1).contains(&found.max_ns), "{found:?}");
        }
    }
    assert!(growth.read(&timings).is_empty());
}

#[test]
fn the_longest_time_of_all_is_exact_and_refusals_have_failed() {
    let timings = [Arc::new(Timings::default())];
    let beyond_ns = 1 << 40;
    for (status, total_ns) in [
        (StatusCode::OK, 5),
        (StatusCode::NOT_FOUND, 7),
        (StatusCode::INTERNAL_SERVER_ERROR, beyond_ns),
        (StatusCode::SERVICE_UNAVAILABLE, 1_000_003),
    ] {
        let stamps = Stamps { written_ns: total_ns, ..Stamps::default() };
        timings[0].record(&Trace { operation: Operation::Get, status, stamps, ..Trace::default() });
    }
    let read = Growth::new().read(&timings);
    let figures: Vec<_> = read
        .iter()
        .map(|recorded| {
            (recorded.operation, recorded.count(), recorded.failed_count, recorded.max_ns)
        })
        .collect();
    assert_eq!(figures, [(Operation::Get, 3, 1, beyond_ns), (Operation::Refused, 1, 1, 1_000_003)]);
}
