//! Records what one worker measures, in one `Interval` per second.
//!
//! Invariants:
//! 1. Recording touches memory of this thread only.
//! 2. The coordinator clears the intervals and returns them: clearing histograms takes longer than
//!    a request.

use super::connection::Flight;
use super::messages::ThreadInterval;
use crate::config::StatusSet;
use crate::histogram::Histogram;
use crate::outcome::ThreadOutcome;
use crate::record::{Interval, OpRecord};
use crate::source::Expected;
use kvant_env::Clock;
use kvant_env::clock::thread_cpu_ns;
use std::sync::mpsc::Receiver;

/// Time from the start to the calibration of `wrk2_exact`.
pub(super) const CALIBRATION_NS: u64 = 10_000_000_000;
/// One of this many calls of a source is timed.
const SOURCE_SAMPLE: u64 = 64;
/// Sample length of the response rate, as in wrk, in nanoseconds.
const RATE_SAMPLE_NS: u64 = 100_000_000;

pub(super) struct Recorder {
    pub(super) interval: Box<Interval>,
    /// Cleared intervals.
    empty: Receiver<Box<Interval>>,
    ok_statuses: StatusSet,
    /// Begin of the current interval, in the clock's time.
    start_ns: u64,
    measured_ns: u64,
    cpu_start_ns: u64,
    planned_before: u64,
    outcome: ThreadOutcome,
    rates: Option<RateSampler>,
    restarts_histograms: bool,
    /// With `wrk2_exact`, until calibration has taken place.
    calibration: Option<Calibration>,
}

struct RateSampler {
    start_ns: u64,
    count: u64,
}

struct Calibration {
    at_ns: u64,
    response: Histogram,
}

impl Recorder {
    /// A recorder that takes its intervals from `empty`, and allocates further ones.
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
            restarts_histograms: false,
            calibration: None,
        }
    }

    /// Begins the measured time. Discards the record of the warm-up, except for connections and
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
        self.restarts_histograms = false;
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
        self.rates = Some(RateSampler { start_ns, count: 0 });
    }

    /// Records a response. With `is_timed` its times go to the histograms too.
    #[inline]
    pub(super) fn response(
        &mut self,
        flight: &Flight,
        expected: Expected,
        status: u16,
        now_ns: u64,
        is_timed: bool,
    ) {
        let interval = &mut *self.interval;
        interval.completed += 1;
        let is_success = self.ok_statuses.is_success(status);
        if !is_success {
            interval.errors.status += 1;
        }
        let op = interval.op_mut(expected.op);
        op.count_status(status);
        if is_timed {
            let response_ns = record_times(op, flight, now_ns);
            if !is_success {
                let service_ns = now_ns.saturating_sub(flight.written_ns);
                op.service_failed.get_or_insert_default().record_ns(service_ns);
            }
            interval.lateness.record_ns(response_ns, flight.lag_ns);
            if let Some(calibration) = &mut self.calibration {
                calibration.response.record_ns(response_ns);
            }
        }
        if let Some(rates) = &mut self.rates {
            rates.end_samples(now_ns, &mut self.outcome);
            rates.count += 1;
        }
    }

    pub(super) fn timeout(&mut self, flight: &Flight, expected: Expected, now_ns: u64) {
        self.interval.errors.timeout += 1;
        let response_ns = record_times(self.interval.op_mut(expected.op), flight, now_ns);
        self.interval.lateness.record_ns(response_ns, flight.lag_ns);
    }

    /// Ends a call of the source that `call` timed.
    pub(super) fn end_source_call(&mut self, call: SampledCall, now_ns: u64) {
        // Time in which the thread did not run is not the source's, and reading the clock of CPU
        // time takes longer than some sources: the smaller of both is the better estimate.
        let used_ns = (thread_cpu_ns() - call.cpu_ns).min(now_ns - call.start_ns);
        self.interval.source_ns += used_ns * SOURCE_SAMPLE;
    }

    pub(super) fn calibrates_ns(&self) -> Option<u64> {
        self.calibration.as_ref().map(|calibration| calibration.at_ns)
    }

    /// Calibrates as wrk2 does: histograms restart, and the response rate is sampled in intervals
    /// of twice the 90th percentile.
    pub(super) fn calibrate(&mut self, now_ns: u64) {
        let Some(mut calibration) = self.calibration.take() else {
            return;
        };
        if calibration.response.is_empty() {
            calibration.at_ns = now_ns + CALIBRATION_NS;
            self.calibration = Some(calibration);
            return;
        }
        self.outcome.calibration_mean_ns = Some(calibration.response.mean_ns());
        let p90_ms = calibration.response.percentile_ns(90.0) / 1_000_000;
        self.sample_rates((2 * p90_ms).max(10) * 1_000_000, now_ns);
        self.interval.clear_latencies();
        self.restarts_histograms = true;
    }

    /// Ends the interval. `planned` counts the requests planned since the measured time began.
    pub(super) fn end_interval(
        &mut self,
        end_ns: u64,
        planned: u64,
        backlog: u64,
    ) -> ThreadInterval {
        let next = self.empty.try_recv().unwrap_or_default();
        let mut interval = std::mem::replace(&mut self.interval, next);
        let cpu_now_ns = thread_cpu_ns();
        interval.start_ns = self.start_ns - self.measured_ns;
        interval.end_ns = end_ns.max(self.start_ns) - self.measured_ns;
        interval.planned = planned.saturating_sub(self.planned_before);
        interval.cpu_ns = cpu_now_ns - self.cpu_start_ns;
        // Scaled from a sample, it may exceed the total.
        interval.source_ns = interval.source_ns.min(interval.cpu_ns);
        self.start_ns = end_ns;
        self.cpu_start_ns = cpu_now_ns;
        self.planned_before = planned;
        self.outcome.cpu_ns += interval.cpu_ns;
        self.outcome.completed += interval.completed;
        let restarts_histograms = std::mem::take(&mut self.restarts_histograms);
        ThreadInterval { interval, backlog, restarts_histograms }
    }

    pub(super) fn start_ns(&self) -> u64 {
        self.start_ns
    }

    pub(super) fn finish(&mut self, end_ns: u64) -> ThreadOutcome {
        if let Some(mut rates) = self.rates.take() {
            rates.end_samples(end_ns, &mut self.outcome);
        }
        self.calibration = None;
        std::mem::take(&mut self.outcome)
    }
}

impl RateSampler {
    #[inline]
    fn end_samples(&mut self, now_ns: u64, outcome: &mut ThreadOutcome) {
        while now_ns >= self.start_ns + outcome.sample_ns {
            outcome.rates.push(self.count as f64 * 1e9 / outcome.sample_ns as f64);
            self.count = 0;
            self.start_ns += outcome.sample_ns;
        }
    }
}

/// Records response and service time. Returns the response time.
#[inline]
fn record_times(op: &mut OpRecord, flight: &Flight, now_ns: u64) -> u64 {
    let response_ns = now_ns.saturating_sub(flight.planned_ns);
    op.response.record_ns(response_ns);
    op.service.record_ns(now_ns.saturating_sub(flight.written_ns));
    response_ns
}

/// Selects the calls of a source that are timed.
#[derive(Debug, Default)]
pub(super) struct CallSampler {
    calls: u64,
}

pub(super) struct SampledCall {
    cpu_ns: u64,
    start_ns: u64,
}

impl CallSampler {
    /// Begins a call; `Some` if it is timed.
    #[inline]
    pub(super) fn begin(&mut self, clock: &dyn Clock) -> Option<SampledCall> {
        self.calls += 1;
        let is_sampled = self.calls.is_multiple_of(SOURCE_SAMPLE);
        is_sampled.then(|| SampledCall { cpu_ns: thread_cpu_ns(), start_ns: clock.monotonic_ns() })
    }
}

#[cfg(test)]
mod tests;
