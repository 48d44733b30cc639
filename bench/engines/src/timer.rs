//! Times operations of one thread one by one: as fast as the engine takes them, or at a constant
//! rate.
//!
//! At full speed each operation lasts from the end of the one before it, so that the clock is read
//! once per operation. What the workload adds is the same for every engine.
//!
//! At a constant rate each lasts from the moment at which it was to begin, however late it began: a
//! stall counts for every operation that it delays, as in wrk2. The thread spins until then,
//! because the intervals are shorter than the kernel's timers are exact.

use crate::workloads::Done;
use hdrhistogram::Histogram;
use std::time::{Duration, Instant};

const LATENCY_NS_MAX: u64 = 600_000_000_000;

pub(crate) struct Timer {
    pub(crate) latency: Histogram<u64>,
    /// When the operation began, or was to begin.
    pub(crate) last: Instant,
    /// From one operation to the next, at a constant rate.
    interval: Option<Duration>,
    /// Key and value bytes written, keys of deletes included.
    pub(crate) user_bytes: u64,
}

impl Timer {
    pub(crate) fn start(interval: Option<Duration>) -> Timer {
        let latency = Histogram::new_with_bounds(1, LATENCY_NS_MAX, 3).expect("valid bounds");
        Timer { latency, last: Instant::now(), interval, user_bytes: 0 }
    }

    /// Records the operation that has just ended, and waits until the next one is to begin.
    pub(crate) fn lap(&mut self) {
        let now = Instant::now();
        self.latency.saturating_record((now - self.last).as_nanos() as u64);
        self.last = match self.interval {
            None => now,
            Some(interval) => {
                let next = self.last + interval;
                while Instant::now() < next {
                    std::hint::spin_loop();
                }
                next
            }
        };
    }

    pub(crate) fn done(self, kind: &'static str) -> Done {
        let op_count = self.latency.len();
        Done { op_count, user_bytes: self.user_bytes, latencies: vec![(kind, self.latency)] }
    }
}

#[cfg(test)]
mod tests;
