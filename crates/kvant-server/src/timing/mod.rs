//! Where the time of requests goes: histograms by operation and phase, and the slowest requests of the last minute.

mod trace;

pub(crate) use trace::{KeyStart, Operation, Phase, Stamps, StorageWork, Trace};

/// The times of one selector's requests.
///
/// Threads: the selector records, anyone reads.
#[derive(Default)]
pub(crate) struct Timings {}

impl Timings {
    /// Adds a request that has its whole answer.
    #[inline]
    pub(crate) fn record(&self, _trace: &Trace) {}
}
