//! Where the time of requests goes: histograms by operation and phase, and the slowest requests of
//! the last minute. `docs/latency.md` explains them.
//!
//! Memory of a selector, for each of the 7 operations that occurred: 48 KiB of histograms, at most
//! 64 KiB of slow requests.

mod growth;
mod histogram;
mod json;
mod report;
mod slow;
mod trace;

pub(crate) use growth::{Growth, Recorded};
pub(crate) use histogram::pair_highest_ns;
pub(crate) use json::{EventFields, WallTime, as_us};
pub(crate) use report::{latency_json, write_metrics};
pub(crate) use slow::{SECOND_KEPT_COUNT, SECOND_NS, SLOW_COUNT_MAX, SLOW_SPAN_NS};
pub(crate) use trace::{KeyStart, Phase, Stamps, StorageWork, Trace};

use crate::counters::{Counter, Counters};
use crate::http::Operation;
use histogram::{Histogram, Snapshot};
use kvant_env::Clock;
use slow::SlowRequests;
use std::cmp::Reverse;
use std::sync::{Arc, OnceLock};

/// What a selector measures with: its clock, counters and timings.
pub(crate) struct Meter {
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) counters: Arc<Counters>,
    pub(crate) timings: Arc<Timings>,
}

impl Meter {
    #[inline]
    pub(crate) fn now_ns(&self) -> u64 {
        self.clock.monotonic_ns()
    }
}

/// The times of one selector's requests.
///
/// Threads: the selector records, any thread reads.
#[derive(Default)]
pub(crate) struct Timings {
    /// In the order of [`Operation::ALL`]; allocated by the first request.
    operations: [OnceLock<Box<OperationTimes>>; Operation::ALL.len()],
}

struct OperationTimes {
    /// In the order of [`Phase::ALL`].
    phases: [Histogram; Phase::ALL.len()],
    /// Responses with a status of 500 or more.
    failed: Counter,
    /// Sum over the requests.
    block_read_ns: Counter,
    slow: SlowRequests,
}

impl Timings {
    /// Adds a request whose response was sent. Every phase counts, even one that took no time, so
    /// that all phases of an operation have the same number of requests.
    #[inline]
    pub(crate) fn record(&self, trace: &Trace) {
        let times = self.operations[trace.counted_as() as usize].get_or_init(OperationTimes::new);
        for phase in Phase::ALL {
            times.phases[phase as usize].record(trace.stamps.phase_ns(phase));
        }
        if trace.status.is_server_error() {
            times.failed.add(1);
        }
        if trace.read.block_read_ns > 0 {
            times.block_read_ns.add(trace.read.block_read_ns);
        }
        times.slow.offer(trace);
    }

    fn operation(&self, operation: Operation) -> Option<&OperationTimes> {
        self.operations[operation as usize].get().map(|times| &**times)
    }
}

impl OperationTimes {
    #[cold]
    fn new() -> Box<OperationTimes> {
        Box::new(OperationTimes {
            phases: std::array::from_fn(|_| Histogram::new()),
            failed: Counter::default(),
            block_read_ns: Counter::default(),
            slow: SlowRequests::default(),
        })
    }
}

/// Calls `visit` with the merged times of all selectors, for each operation that occurred and each
/// of its phases.
fn summaries(timings: &[Arc<Timings>], mut visit: impl FnMut(Operation, Phase, &Snapshot)) {
    for operation in Operation::ALL {
        let recorded = || timings.iter().filter_map(|timings| timings.operation(operation));
        if recorded().next().is_none() {
            continue;
        }
        for phase in Phase::ALL {
            let mut snapshot = Snapshot::new();
            recorded().for_each(|times| snapshot.add(&times.phases[phase as usize]));
            visit(operation, phase, &snapshot);
        }
    }
}

/// The slowest requests that ended at `since_ns` or later, slowest first; of one operation, or of
/// all with `None`.
pub(crate) fn slowest(
    timings: &[Arc<Timings>],
    since_ns: u64,
    operation: Option<Operation>,
    count_max: usize,
) -> Vec<Trace> {
    let wanted = Operation::ALL
        .into_iter()
        .filter(|each| operation.is_none_or(|operation| operation == *each));
    let mut found = Vec::new();
    for operation in wanted {
        let recorded = timings.iter().filter_map(|timings| timings.operation(operation));
        recorded.for_each(|times| times.slow.add_since(since_ns, &mut found));
    }
    found.sort_unstable_by_key(|trace: &Trace| Reverse(trace.stamps.phase_ns(Phase::Total)));
    found.truncate(count_max);
    found
}

/// The slowest requests of seconds that ended before the second with this number, and that no call
/// has taken yet; of any selector and operation, in no order.
pub(crate) fn take_slow(timings: &[Arc<Timings>], before_second: u64) -> Vec<Trace> {
    let mut found = Vec::new();
    each_slow(timings, |slow| slow.take_ended(before_second, &mut found));
    found
}

/// The slowest requests of the seconds that [`take_slow`] has not taken.
pub(crate) fn untaken_slow(timings: &[Arc<Timings>]) -> Vec<Trace> {
    let mut found = Vec::new();
    each_slow(timings, |slow| slow.add_untaken(&mut found));
    found
}

fn each_slow(timings: &[Arc<Timings>], mut visit: impl FnMut(&SlowRequests)) {
    for timings in timings {
        Operation::ALL
            .iter()
            .filter_map(|&operation| timings.operation(operation))
            .for_each(|times| visit(&times.slow));
    }
}

#[cfg(test)]
mod tests;
