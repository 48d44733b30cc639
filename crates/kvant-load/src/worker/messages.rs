//! What coordinator and workers say to each other.

use crate::config::Phase;
use crate::histogram::Histogram;
use crate::outcome::ThreadOutcome;
use crate::record::Interval;
use kvant_base::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// From the coordinator to one worker. Hanging up ends the worker.
pub(crate) enum Order {
    /// Open connections for this phase, then report [`News::Ready`].
    Prepare(Phase, Arc<Quota>),
    /// Begin at this time.
    Begin {
        /// The common zero of the phase's plan, warm-up included.
        begin_ns: u64,
    },
    /// End the phase now.
    End {
        /// The common end.
        end_ns: u64,
    },
}

/// From a worker to the coordinator.
pub(crate) struct Report {
    /// Which worker.
    pub(crate) thread: usize,
    pub(crate) news: News,
}

/// What a worker has to say.
pub(crate) enum News {
    /// All connections are open, or as many as can be had.
    Ready,
    /// A second of the measured time is over.
    Second(Second),
    /// Not from a worker: somebody wants the run to end.
    StopAsked,
    /// The phase is over for this worker.
    Ended(Box<Ended>),
    /// The worker is gone: a source or the system failed, or (`None`) it panicked.
    Failed(Option<Error>),
}

/// A second of one worker.
pub(crate) struct Second {
    pub(crate) interval: Box<Interval>,
    /// Due and not written at its end.
    pub(crate) backlog: u64,
    /// Histograms before this second do not count: wrk2's calibration ended in it.
    pub(crate) starts_anew: bool,
}

/// The end of a worker's phase.
pub(crate) struct Ended {
    pub(crate) outcome: ThreadOutcome,
    /// Planned in the measured time.
    pub(crate) planned: u64,
    pub(crate) backlog: u64,
    pub(crate) in_flight: u64,
    /// Ages of both.
    pub(crate) unanswered: Histogram,
    /// Since the measured time began, in nanoseconds; 0 when it had not.
    pub(crate) measured_ns: u64,
    /// The source wants no more.
    pub(crate) is_stopped: bool,
}

/// How many requests may still be sent in a phase that has a limit.
#[derive(Debug)]
pub(crate) struct Quota {
    max: u64,
    taken: AtomicU64,
}

impl Quota {
    /// Places for `max` requests; `None` for any number.
    pub(crate) fn new(max: Option<u64>) -> Quota {
        Quota { max: max.unwrap_or(u64::MAX), taken: AtomicU64::new(0) }
    }

    /// Whether there is a limit.
    pub(crate) fn is_limited(&self) -> bool {
        self.max != u64::MAX
    }

    /// Whether a place is free now.
    pub(crate) fn has_room(&self) -> bool {
        self.taken.load(Ordering::Relaxed) < self.max
    }

    /// How many places are free.
    pub(crate) fn left(&self) -> u64 {
        self.max.saturating_sub(self.taken.load(Ordering::Relaxed))
    }

    /// Takes a place.
    pub(crate) fn take(&self) -> bool {
        let taken = self.taken.fetch_add(1, Ordering::Relaxed);
        if taken >= self.max {
            self.taken.fetch_sub(1, Ordering::Relaxed);
        }
        taken < self.max
    }

    /// Gives places back.
    pub(crate) fn give_back(&self, count: u64) {
        self.taken.fetch_sub(count, Ordering::Relaxed);
    }

    /// Takes up to `count` places: how many.
    pub(crate) fn take_some(&self, count: u64) -> u64 {
        let taken = self.taken.fetch_add(count, Ordering::Relaxed);
        let granted = count.min(self.max.saturating_sub(taken));
        self.give_back(count - granted);
        granted
    }

    /// Takes places whether they are there or not: the rest of a pipelined batch.
    pub(crate) fn take_more(&self, count: u64) {
        self.taken.fetch_add(count, Ordering::Relaxed);
    }
}
