//! Messages between the coordinator and its workers.

use crate::config::Phase;
use crate::histogram::Histogram;
use crate::outcome::ThreadOutcome;
use crate::record::Interval;
use kvant_base::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// From the coordinator to a worker. A worker ends when the channel closes.
pub(crate) enum Command {
    /// Open connections for this phase, then report [`WorkerEvent::Ready`].
    Prepare(Phase, Arc<Quota>),
    /// Start the plan, warm-up included, at this time.
    Begin { begin_ns: u64 },
    /// End the phase at this time.
    End { end_ns: u64 },
}

pub(crate) struct Report {
    pub(crate) thread: usize,
    pub(crate) event: WorkerEvent,
}

pub(crate) enum WorkerEvent {
    /// All connections are open, or as many as possible.
    Ready,
    /// The end of an interval of the measured time.
    Interval(ThreadInterval),
    /// A [`crate::Stopper`] asks for the end of the run, not a worker.
    StopRequested,
    Ended(Box<ThreadEnd>),
    /// The end of the worker: the source or the system failed, or (`None`) it panicked.
    Failed(Option<Error>),
}

#[derive(Default)]
pub(crate) struct ThreadInterval {
    pub(crate) interval: Box<Interval>,
    /// Requests that were due and unsent at its end.
    pub(crate) backlog: u64,
    /// Histograms before this interval do not count: wrk2's calibration ended in it.
    pub(crate) restarts_histograms: bool,
}

#[derive(Default)]
pub(crate) struct ThreadEnd {
    pub(crate) outcome: ThreadOutcome,
    /// Requests planned in the measured time.
    pub(crate) planned: u64,
    pub(crate) backlog: u64,
    pub(crate) in_flight: u64,
    /// The ages of the backlog and of the requests in flight.
    pub(crate) unanswered: Histogram,
    /// The length of the measured time so far; 0 if it has not begun.
    pub(crate) measured_ns: u64,
    pub(crate) is_source_stopped: bool,
}

/// Limits the number of requests in a phase, if there is a limit.
#[derive(Debug, Default)]
pub(crate) struct Quota {
    max: Option<u64>,
    taken: AtomicU64,
}

impl Quota {
    pub(crate) fn new(max: Option<u64>) -> Quota {
        Quota { max, taken: AtomicU64::new(0) }
    }

    #[inline]
    pub(crate) fn left(&self) -> u64 {
        let left = |max: u64| max.saturating_sub(self.taken.load(Ordering::Relaxed));
        self.max.map_or(u64::MAX, left)
    }

    /// Takes up to `count`. Returns how many.
    #[inline]
    pub(crate) fn take(&self, count: u64) -> u64 {
        let Some(max) = self.max else {
            return count;
        };
        let taken = self.taken.fetch_add(count, Ordering::Relaxed);
        let granted = count.min(max.saturating_sub(taken));
        if granted < count {
            self.taken.fetch_sub(count - granted, Ordering::Relaxed);
        }
        granted
    }

    /// Takes `count` instead of the one that was taken before the batch was known, even beyond the
    /// limit.
    #[inline]
    pub(crate) fn take_instead_of_one(&self, count: u64) {
        if self.max.is_some() {
            self.taken.fetch_add(count.wrapping_sub(1), Ordering::Relaxed);
        }
    }
}
