//! Writes down what one worker sees: a box for each second, which the coordinator gives back empty.
//!
//! Invariants:
//! 1. Recording touches memory of this thread only.
//! 2. A box is cleared by the coordinator, not here: clearing histograms takes longer than a
//!    request.

use super::connection::Flight;
use super::messages::Second;
use crate::config::StatusSet;
use crate::histogram::Histogram;
use crate::outcome::ThreadOutcome;
use crate::record::Interval;
use crate::source::Expected;
use rustix::time::{ClockId, clock_gettime};
use std::sync::mpsc::Receiver;

/// One of so many calls of a source is timed.
pub(super) const SOURCE_SAMPLE: u64 = 64;
/// How long a sample of the answers a second is, as in wrk, in nanoseconds.
const RATE_SAMPLE_NS: u64 = 100_000_000;

/// The record of a worker's phase.
pub(super) struct Recorder {
    pub(super) interval: Box<Interval>,
    empty: Receiver<Box<Interval>>,
    ok_statuses: StatusSet,
    /// Begin of the current interval, in the clock's time.
    start_ns: u64,
    measured_ns: u64,
    cpu_start_ns: u64,
    planned_before: u64,
    outcome: ThreadOutcome,
    rates: Option<RateSampler>,
    starts_anew: bool,
    /// With `wrk2_exact`, until calibration has taken place.
    calibration: Option<Calibration>,
}

struct RateSampler {
    sample_ns: u64,
    start_ns: u64,
    count: u64,
}

struct Calibration {
    at_ns: u64,
    response: Histogram,
}

impl Recorder {
    /// A recorder that gets its boxes from `empty`, and makes what is missing.
    pub(super) fn new(empty: Receiver<Box<Interval>>, ok_statuses: StatusSet) -> Recorder {
        Recorder {
            interval: Box::default(),
            empty,
            ok_statuses,
            start_ns: 0,
            measured_ns: 0,
            cpu_start_ns: 0,
            planned_before: 0,
            outcome: ThreadOutcome::default(),
            rates: None,
            starts_anew: false,
            calibration: None,
        }
    }

    /// The measured time begins. What was recorded before is forgotten, but for connections and
    /// failures to open them.
    pub(super) fn begin(&mut self, measured_ns: u64, calibrates_after_ns: Option<u64>) {
        let connect = std::mem::take(&mut self.interval.connect);
        let connect_errors = self.interval.errors.connect;
        self.interval.clear();
        self.interval.connect = connect;
        self.interval.errors.connect = connect_errors;
        self.start_ns = measured_ns;
        self.measured_ns = measured_ns;
        self.cpu_start_ns = thread_cpu_ns();
        self.planned_before = 0;
        self.outcome = ThreadOutcome::default();
        self.starts_anew = false;
        self.calibration = calibrates_after_ns.map(|after_ns| Calibration {
            at_ns: measured_ns + after_ns,
            response: Histogram::new(),
        });
        self.rates = None;
        if self.calibration.is_none() {
            self.sample_rates(RATE_SAMPLE_NS, measured_ns);
        }
    }

    fn sample_rates(&mut self, sample_ns: u64, start_ns: u64) {
        self.outcome.sample_ns = sample_ns;
        self.rates = Some(RateSampler { sample_ns, start_ns, count: 0 });
    }

    /// An answer. `is_timed`: its times go to the histograms too.
    #[inline]
    pub(super) fn answer(
        &mut self,
        flight: &Flight,
        expected: Expected,
        status: u16,
        now_ns: u64,
        is_timed: bool,
    ) {
        let interval = &mut *self.interval;
        interval.completed += 1;
        if !self.ok_statuses.is_success(status) {
            interval.errors.status += 1;
        }
        let op = interval.op_mut(expected.op);
        op.count_status(status);
        if is_timed {
            let response_ns = now_ns.saturating_sub(flight.planned_ns);
            op.response.record_ns(response_ns);
            op.service.record_ns(now_ns.saturating_sub(flight.written_ns));
            interval.lateness.record_ns(response_ns, flight.lag_ns);
            if let Some(calibration) = &mut self.calibration {
                calibration.response.record_ns(response_ns);
            }
        }
        if let Some(rates) = &mut self.rates {
            if now_ns >= rates.start_ns + rates.sample_ns {
                rates.close(now_ns, &mut self.outcome.rates);
            }
            rates.count += 1;
        }
    }

    /// A request whose deadline has passed.
    pub(super) fn timeout(&mut self, flight: &Flight, expected: Expected, now_ns: u64) {
        let interval = &mut *self.interval;
        let response_ns = now_ns.saturating_sub(flight.planned_ns);
        interval.errors.timeout += 1;
        interval.lateness.record_ns(response_ns, flight.lag_ns);
        let op = interval.op_mut(expected.op);
        op.response.record_ns(response_ns);
        op.service.record_ns(now_ns.saturating_sub(flight.written_ns));
    }

    /// A call of the source that was timed has ended: it began at `cpu_before_ns` of
    /// [`thread_cpu_ns`] and took `wall_ns`. Time in which the thread did not run is not the
    /// source's, and the clock of CPU time takes longer to read than some sources do: the smaller
    /// of both is nearer to the truth.
    pub(super) fn source_called(&mut self, cpu_before_ns: u64, wall_ns: u64) {
        let used_ns = (thread_cpu_ns() - cpu_before_ns).min(wall_ns);
        self.interval.source_ns += used_ns * SOURCE_SAMPLE;
    }

    /// When calibration is due.
    pub(super) fn calibrates_ns(&self) -> Option<u64> {
        self.calibration.as_ref().map(|calibration| calibration.at_ns)
    }

    /// Calibrates as wrk2 does: histograms start anew, and answers are counted in samples of twice
    /// the 90th percentile.
    pub(super) fn calibrate(&mut self, now_ns: u64) {
        let Some(mut calibration) = self.calibration.take() else {
            return;
        };
        if calibration.response.is_empty() {
            calibration.at_ns = now_ns + super::CALIBRATION_NS;
            self.calibration = Some(calibration);
            return;
        }
        self.outcome.calibration_mean_ns = Some(calibration.response.mean_ns());
        let p90_ms = calibration.response.percentile_ns(90.0) / 1_000_000;
        self.sample_rates((2 * p90_ms).max(10) * 1_000_000, now_ns);
        for op in &mut self.interval.ops {
            op.response.clear();
            op.service.clear();
        }
        self.interval.lateness.clear();
        self.starts_anew = true;
    }

    /// Ends the interval: its record. `planned` counts all planned requests since the measured time
    /// began.
    pub(super) fn end_interval(&mut self, end_ns: u64, planned: u64, backlog: u64) -> Second {
        let next = self.empty.try_recv().unwrap_or_default();
        let mut interval = std::mem::replace(&mut self.interval, next);
        let cpu_now_ns = thread_cpu_ns();
        interval.start_ns = self.start_ns - self.measured_ns;
        interval.end_ns = end_ns.max(self.start_ns) - self.measured_ns;
        interval.planned = planned.saturating_sub(self.planned_before);
        interval.cpu_ns = cpu_now_ns - self.cpu_start_ns;
        // Scaled from a sample, it may have come out as more than there was.
        interval.source_ns = interval.source_ns.min(interval.cpu_ns);
        self.start_ns = end_ns;
        self.cpu_start_ns = cpu_now_ns;
        self.planned_before = planned;
        self.outcome.cpu_ns += interval.cpu_ns;
        self.outcome.completed += interval.completed;
        Second { interval, backlog, starts_anew: std::mem::take(&mut self.starts_anew) }
    }

    /// Begin of the current interval, in the clock's time.
    pub(super) fn start_ns(&self) -> u64 {
        self.start_ns
    }

    /// What the phase came to.
    pub(super) fn finish(&mut self, end_ns: u64) -> ThreadOutcome {
        if let Some(rates) = &mut self.rates
            && end_ns >= rates.start_ns + rates.sample_ns
        {
            rates.close(end_ns, &mut self.outcome.rates);
        }
        self.rates = None;
        self.calibration = None;
        std::mem::take(&mut self.outcome)
    }
}

impl RateSampler {
    /// Ends the samples that are over at `now_ns`. A silence of any length costs one sample for
    /// each of its parts.
    fn close(&mut self, now_ns: u64, rates: &mut Vec<f64>) {
        while now_ns >= self.start_ns + self.sample_ns {
            rates.push(self.count as f64 * 1e9 / self.sample_ns as f64);
            self.count = 0;
            self.start_ns += self.sample_ns;
        }
    }
}

/// CPU time of the calling thread.
pub(super) fn thread_cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

#[cfg(test)]
mod tests;
