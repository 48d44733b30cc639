//! A worker's part of a phase: opens connections, begins the plan, ends intervals, ends the phase.
//!
//! Invariants:
//! 1. Boundaries are crossed in order and at their nominal times, however late the loop notices.
//!    Requests planned after a boundary are sent after it is crossed.
//! 2. When the phase ends, the requests in flight are counted and then forgotten: their responses
//!    are not recorded.

use super::Worker;
use super::connection::ConnState;
use super::messages::{Command, ThreadEnd, WorkerEvent};
use super::pace::Pace;
use super::recorder::CALIBRATION_NS;
use super::stage::{PhaseRun, Stage};
use crate::histogram::Histogram;
use crate::plan::stagger;
use kvant_base::{Result, duration};

/// How long preparation waits while no connection becomes free and none is being opened, in
/// nanoseconds.
const PREPARE_NS_MAX: u64 = 1_000_000_000;
/// The same while connections are being opened (a lost SYN is sent again after 1 s and 3 s), or
/// have old requests in flight.
const PREPARE_BUSY_NS_MAX: u64 = 5_000_000_000;

impl Worker {
    pub(super) fn handle_command(&mut self, command: Command) -> Result<()> {
        self.read_clock();
        self.turn_ns = self.now_ns;
        match command {
            Command::Prepare(phase, quota) => {
                self.phase_number += 1;
                self.run = PhaseRun {
                    stage: Stage::Preparing,
                    phase,
                    quota,
                    progress_ns: self.now_ns,
                    ..PhaseRun::default()
                };
            }
            Command::Begin { begin_ns } => self.begin(begin_ns)?,
            Command::End { end_ns } => self.end_early(end_ns),
        }
        Ok(())
    }

    fn begin(&mut self, begin_ns: u64) -> Result<()> {
        let run = &mut self.run;
        run.stage = Stage::Running;
        run.begin_ns = begin_ns;
        run.measured_ns = begin_ns.saturating_add(duration::ns(run.phase.warmup));
        run.end_ns = run.measured_ns.saturating_add(duration::ns(run.phase.duration));
        run.boundary_ns = run.measured_ns;
        run.pace = Pace::new(
            &self.config,
            &run.phase,
            self.phase_number,
            self.thread,
            self.connections.len(),
            begin_ns,
        );
        run.spin_ns = duration::ns(self.config.spin_in(&run.phase.rate));
        if self.config.wrk2_exact {
            self.stagger_connections(begin_ns);
        } else if self.source_delays {
            for _ in 0..self.free.count() {
                let index = self.free.first().expect("the list has this many");
                self.free.remove(&mut self.links, index);
                self.delay(index)?;
            }
        }
        Ok(())
    }

    /// As in wrk2, connections start 5 ms apart, open or not.
    fn stagger_connections(&mut self, begin_ns: u64) {
        self.to_open.clear();
        for index in 0..self.connections.len() {
            let start_ns = begin_ns.saturating_add(duration::ns(stagger(index)));
            match self.connections[index].state {
                ConnState::Closed => self.timers.set(index, start_ns),
                ConnState::Free => {
                    self.free.remove(&mut self.links, index);
                    self.wait_until(index, start_ns);
                }
                ConnState::Opening | ConnState::Waiting | ConnState::Busy => {}
            }
        }
    }

    /// Ends preparation, or a phase that has nothing left to send.
    pub(super) fn check_stage(&mut self) {
        match self.run.stage {
            Stage::Preparing => {
                if self.is_prepared() {
                    self.run.stage = Stage::Ready;
                    self.report(WorkerEvent::Ready);
                }
            }
            Stage::Running => {
                let is_stopped = self.is_source_stopped();
                let is_quota_used = self.run.is_measuring && self.run.quota.left() == 0;
                if (is_stopped || is_quota_used) && self.busy.first().is_none() {
                    self.end_early(self.now_ns);
                }
            }
            Stage::Idle | Stage::Ready => {}
        }
    }

    /// Whether the source has stopped. Call it after each call of the source.
    #[inline]
    pub(super) fn is_source_stopped(&mut self) -> bool {
        if self.run.stopped_ns.is_none() && self.source.is_stopped() {
            self.run.stopped_ns = Some(self.now_ns);
        }
        self.run.is_stopped()
    }

    /// Whether all connections are open, or preparation has waited long enough for the others.
    fn is_prepared(&mut self) -> bool {
        if self.config.wrk2_exact {
            return true;
        }
        let free_count = self.free.count();
        if free_count != self.run.free_count {
            self.run.free_count = free_count;
            self.run.progress_ns = self.now_ns;
        }
        // Without a warm-up a phase follows the one before without a pause: requests that are in
        // flight from then keep their connections busy.
        let old_count = if self.run.phase.warmup.is_zero() { self.busy.count() } else { 0 };
        let has_all = self.run.has_seen_all && free_count + old_count == self.connections.len();
        has_all || self.now_ns >= self.prepare_deadline_ns()
    }

    fn prepare_deadline_ns(&self) -> u64 {
        let is_busy = self.opening.count() + self.busy.count() + self.to_open.len() != 0;
        self.run.progress_ns + if is_busy { PREPARE_BUSY_NS_MAX } else { PREPARE_NS_MAX }
    }

    #[inline]
    pub(super) fn cross_boundaries(&mut self) {
        if self.now_ns >= self.run.boundary_ns {
            self.cross_passed_boundaries();
        }
    }

    #[cold]
    fn cross_passed_boundaries(&mut self) {
        let interval_ns = duration::ns(self.config.interval);
        while self.run.stage == Stage::Running && self.now_ns >= self.run.boundary_ns {
            let at_ns = self.run.boundary_ns;
            if !self.run.is_measuring {
                self.begin_measuring(at_ns);
            } else if at_ns >= self.run.end_ns {
                self.end(at_ns);
                return;
            } else {
                if self.recorder.calibrates_ns().is_some_and(|calibrates_ns| calibrates_ns <= at_ns)
                {
                    self.recorder.calibrate(at_ns);
                }
                if at_ns >= self.recorder.start_ns() + interval_ns {
                    self.end_interval(at_ns);
                }
            }
            let interval_end_ns = self.recorder.start_ns().saturating_add(interval_ns);
            let calibrates_ns = self.recorder.calibrates_ns().unwrap_or(u64::MAX);
            self.run.boundary_ns = interval_end_ns.min(calibrates_ns).min(self.run.end_ns);
        }
    }

    fn begin_measuring(&mut self, at_ns: u64) {
        self.run.is_measuring = true;
        let calibrates_after_ns = CALIBRATION_NS + duration::ns(stagger(self.connections.len()));
        self.recorder.begin(at_ns, self.config.wrk2_exact.then_some(calibrates_after_ns));
        self.run.pace.begin_measuring(at_ns);
        if matches!(self.run.pace, Pace::Closed) && self.run.phase.request_count_max.is_none() {
            self.record_in_flight();
        }
    }

    /// Counts the requests in flight as sent in the measured time. Without a plan the rate is that
    /// of the responses within a time: it would lack as many as there are connections.
    fn record_in_flight(&mut self) {
        let mut next = self.busy.first();
        while let Some(index) = next {
            next = self.busy.after(&self.links, index);
            let flight = &mut self.connections[index].flight;
            let count = flight.in_flight();
            flight.is_recorded = count > 0;
            self.run.tried += count;
            self.recorder.interval.sent += count;
        }
    }

    fn end_interval(&mut self, at_ns: u64) {
        let connections = &self.connections;
        let in_flight = |index: usize| connections[index].flight.in_flight();
        let run = &mut self.run;
        let until_ns = at_ns.min(run.plan_end_ns());
        let unsent = run.pace.unsent_before(run.measured_ns, until_ns, in_flight);
        let unsent_max = run.unsent_max(self.config.thread_count);
        // A batch counts as planned with its first request.
        let planned = run.tried + unsent.measured.min(unsent_max);
        let backlog = unsent.total.min(unsent_max);
        let interval = self.recorder.end_interval(at_ns, planned, backlog);
        self.report(WorkerEvent::Interval(interval));
    }

    fn end_early(&mut self, at_ns: u64) {
        if self.run.stage == Stage::Idle {
            return;
        }
        self.cross_boundaries();
        if self.run.stage != Stage::Idle {
            self.end(at_ns.min(self.run.end_ns));
        }
    }

    /// Ends the phase: counts unanswered requests and reports.
    fn end(&mut self, end_ns: u64) {
        let mut unanswered = Histogram::new();
        let mut in_flight = 0;
        let mut next = self.busy.first();
        while let Some(index) = next {
            next = self.busy.after(&self.links, index);
            let flight = &mut self.connections[index].flight;
            if flight.is_recorded {
                let count = flight.unanswered().len() as u64;
                unanswered.record_many_ns(end_ns.saturating_sub(flight.planned_ns), count);
                in_flight += count;
                flight.is_recorded = false;
            }
        }
        let mut backlog = 0;
        let mut measured_ns = 0;
        let tried = self.run.tried;
        if self.run.is_measuring {
            let connections = &self.connections;
            let in_flight = |index: usize| connections[index].flight.in_flight();
            let run = &self.run;
            let until_ns = end_ns.min(run.plan_end_ns());
            run.pace.each_unsent(run.measured_ns, until_ns, in_flight, |at_ns, count| {
                let count = run.quota.take(count);
                unanswered.record_many_ns(end_ns - at_ns, count);
                backlog += count;
            });
            measured_ns = end_ns.saturating_sub(self.run.measured_ns);
            if end_ns > self.recorder.start_ns() {
                self.end_interval(end_ns);
            }
        }
        let outcome = self.recorder.finish(end_ns);
        let is_source_stopped = self.run.is_stopped();
        self.run = PhaseRun::default();
        for index in 0..self.connections.len() {
            self.connections[index].flight.is_current = false;
            if self.connections[index].state == ConnState::Waiting {
                self.timers.cancel(index);
                self.set_free(index);
            }
        }
        self.report(WorkerEvent::Ended(Box::new(ThreadEnd {
            outcome,
            planned: tried + backlog,
            backlog,
            in_flight,
            unanswered,
            measured_ns,
            is_source_stopped,
        })));
    }

    /// The next time at which the loop has something to do other than sending.
    pub(super) fn next_other_ns(&mut self) -> u64 {
        let mut next_ns = self.timers.next_ns().unwrap_or(u64::MAX);
        let mut expire = |since_ns: u64| {
            next_ns = next_ns.min(since_ns.saturating_add(self.timeout_ns));
        };
        if let Some(index) = self.busy.first() {
            expire(self.connections[index].flight.written_ns);
        }
        if let Some(index) = self.opening.first() {
            expire(self.connections[index].opening_ns);
        }
        match self.run.stage {
            Stage::Running => next_ns.min(self.run.boundary_ns),
            Stage::Preparing => next_ns.min(self.prepare_deadline_ns()),
            Stage::Idle | Stage::Ready => next_ns,
        }
    }
}
