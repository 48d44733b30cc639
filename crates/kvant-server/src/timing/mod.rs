//! Where the time of requests goes: histograms by operation and phase, and the slowest requests of the last minute.
//!
//! `docs/latency.md` says how to read them.
//!
//! Memory of a selector: 48 KiB for each of the 6 operations that it has met (6 phases), and at most 50 KiB of slow requests.

mod histogram;
mod json;
mod report;
mod slow;
mod trace;

pub(crate) use json::{EventFields, WallTime, as_us};
pub(crate) use report::{latency_json, write_metrics};
pub(crate) use slow::{SLOW_COUNT_MAX, SLOW_SPAN_NS, slowest};
pub(crate) use trace::{KeyStart, Operation, Phase, Stamps, StorageWork, Trace};

use histogram::{Histogram, Snapshot};
use slow::SlowRequests;
use std::sync::{Arc, OnceLock};

type Phases = [Histogram; Phase::ALL.len()];

/// The times of one selector's requests.
///
/// Threads: the selector records, anyone reads.
#[derive(Default)]
pub(crate) struct Timings {
    /// In the order of [`Operation::ALL`]; made when the first request comes.
    operations: [OnceLock<Box<Phases>>; Operation::ALL.len()],
    slow: SlowRequests,
}

impl Timings {
    /// Adds a request that has its whole answer. Every phase counts, also one that took no time: so all phases of an operation
    /// have the same number of requests.
    #[inline]
    pub(crate) fn record(&self, trace: &Trace) {
        let phases = self.operations[trace.operation as usize].get_or_init(new_phases);
        for phase in Phase::ALL {
            phases[phase as usize].record(trace.stamps.phase_ns(phase));
        }
        self.slow.offer(trace);
    }
}

#[cold]
fn new_phases() -> Box<Phases> {
    Box::new(std::array::from_fn(|_| Histogram::new()))
}

/// Calls `visit` with the times of all selectors together, for each operation that occurred and each of its phases.
fn summaries(timings: &[Arc<Timings>], mut visit: impl FnMut(Operation, Phase, &Snapshot)) {
    for operation in Operation::ALL {
        let recorded: Vec<&Phases> = timings
            .iter()
            .filter_map(|timings| Some(&**timings.operations[operation as usize].get()?))
            .collect();
        if recorded.is_empty() {
            continue;
        }
        for phase in Phase::ALL {
            let mut snapshot = Snapshot::new();
            recorded
                .iter()
                .for_each(|phases| snapshot.add(&phases[phase as usize]));
            visit(operation, phase, &snapshot);
        }
    }
}

#[cfg(test)]
mod tests;
