//! A phase as a worker lives it: connections are opened, the time begins, seconds end, the phase
//! ends.
//!
//! Invariants:
//! 1. Boundaries are crossed in order and at their nominal times, however late the loop notices;
//!    what is planned behind one is not sent before it is crossed.
//! 2. When the phase ends, what is in flight is counted and then forgotten: its answers are in no
//!    record.

use super::connection::State;
use super::messages::{Ended, News, Order, Quota};
use super::pace::Pace;
use super::{CALIBRATION_NS, STAGGER_NS, Worker};
use crate::config::{Phase, Rate};
use crate::histogram::Histogram;
use kvant_base::Result;
use std::sync::Arc;
use std::time::Duration;

const SECOND_NS: u64 = 1_000_000_000;
/// Connections that fail are not waited for longer than this without any getting open, in
/// nanoseconds.
const PATIENCE_NS: u64 = 1_000_000_000;
/// Connections on their way (a lost SYN is sent again after 1 s and 3 s), or with old requests in
/// flight, are waited for so long without any getting free, in nanoseconds.
const PATIENCE_UNDERWAY_NS: u64 = 5_000_000_000;

/// How far a phase is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// There is none.
    Idle,
    /// Connections are being opened.
    Preparing,
    /// They are open; the others are waited for.
    Ready,
    /// It runs, or will at its begin.
    Running,
}

/// The phase that a worker is in.
pub(super) struct Run {
    pub(super) stage: Stage,
    phase: Phase,
    pub(super) quota: Arc<Quota>,
    pub(super) is_limited: bool,
    pub(super) pace: Pace,
    /// The zero of the plan.
    pub(super) begin_ns: u64,
    pub(super) measured_ns: u64,
    end_ns: u64,
    /// The next moment at which something of the above, or a second, is over.
    pub(super) boundary_ns: u64,
    pub(super) is_measuring: bool,
    /// Since when the source has wanted no more, which is when its plan ends.
    stopped_ns: Option<u64>,
    /// Recorded requests that were written, or could not be.
    pub(super) tried: u64,
    /// The source has nothing to send until then; 0 when it has.
    pub(super) paused_until_ns: u64,
    /// Since when it has had something again.
    pub(super) unpaused_ns: u64,
    /// How long before a moment the loop polls instead of sleeping.
    pub(super) spin_ns: u64,
    /// What happened to the sockets before this phase has been handled: connections may have been
    /// closed since the last one.
    pub(super) has_seen_all: bool,
    /// While connections are opened: when the number of those that are open last changed.
    progress_ns: u64,
    free_count: usize,
}

impl Default for Run {
    fn default() -> Run {
        Run {
            stage: Stage::Idle,
            phase: Phase {
                rate: Rate::Closed,
                warmup: Duration::ZERO,
                duration: Duration::ZERO,
                request_count_max: None,
            },
            quota: Arc::new(Quota::new(None)),
            is_limited: false,
            pace: Pace::Closed,
            begin_ns: 0,
            measured_ns: 0,
            end_ns: 0,
            boundary_ns: u64::MAX,
            is_measuring: false,
            stopped_ns: None,
            tried: 0,
            paused_until_ns: 0,
            unpaused_ns: 0,
            spin_ns: 0,
            has_seen_all: false,
            progress_ns: 0,
            free_count: 0,
        }
    }
}

impl Run {
    /// Whether the source wants no more.
    #[inline]
    pub(super) fn is_stopped(&self) -> bool {
        self.stopped_ns.is_some()
    }

    /// What of the plan can still be sent, if the number of requests is limited: about the share of
    /// one of so many threads.
    fn undone_max(&self, thread_count: usize) -> u64 {
        match self.is_limited {
            true => self.quota.left().div_ceil(thread_count as u64),
            false => u64::MAX,
        }
    }

    /// Nothing is planned from this moment on.
    fn plan_end_ns(&self) -> u64 {
        self.stopped_ns.unwrap_or(u64::MAX)
    }
}

impl Worker {
    /// Does what the coordinator says.
    pub(super) fn obey(&mut self, order: Order) -> Result<()> {
        self.read_clock();
        self.turn_ns = self.now_ns;
        match order {
            Order::Prepare(phase, quota) => {
                self.phase_number += 1;
                self.run = Run {
                    stage: Stage::Preparing,
                    phase,
                    is_limited: quota.is_limited(),
                    quota,
                    progress_ns: self.now_ns,
                    ..Run::default()
                };
            }
            Order::Begin { begin_ns } => self.begin(begin_ns)?,
            Order::End { end_ns } => self.end_early(end_ns),
        }
        Ok(())
    }

    fn begin(&mut self, begin_ns: u64) -> Result<()> {
        let run = &mut self.run;
        run.stage = Stage::Running;
        run.begin_ns = begin_ns;
        run.measured_ns = begin_ns.saturating_add(nanos(run.phase.warmup));
        run.end_ns = run.measured_ns.saturating_add(nanos(run.phase.duration));
        run.boundary_ns = run.measured_ns;
        run.pace = Pace::new(
            &self.config,
            &run.phase,
            self.phase_number,
            self.thread,
            self.connections.len(),
            begin_ns,
        );
        run.spin_ns = nanos(self.config.spin_in(&run.phase.rate));
        if self.config.wrk2_exact {
            self.stagger(begin_ns);
        } else if self.source_delays {
            for _ in 0..self.free.count() {
                let index = self.free.first().expect("it has so many");
                self.free.remove(&mut self.links, index);
                self.delay(index)?;
            }
        }
        Ok(())
    }

    /// As wrk2 does, connections start 5 ms after each other, be they open or not.
    fn stagger(&mut self, begin_ns: u64) {
        self.to_open.clear();
        for index in 0..self.connections.len() {
            let start_ns = begin_ns.saturating_add(STAGGER_NS * index as u64);
            match self.connections[index].state {
                State::Closed => self.timers.set(index, start_ns),
                State::Free => {
                    self.free.remove(&mut self.links, index);
                    self.wait_until(index, start_ns);
                }
                State::Opening | State::Waiting | State::Busy => {}
            }
        }
    }

    /// Goes on with the phase when its time, or its reason to wait, is over.
    pub(super) fn check_stage(&mut self) {
        match self.run.stage {
            Stage::Preparing => {
                if self.is_prepared() {
                    self.run.stage = Stage::Ready;
                    self.report(News::Ready);
                }
            }
            Stage::Running => {
                let is_stopped = self.is_source_stopped();
                let run = &self.run;
                let has_no_room = run.is_limited && run.is_measuring && !run.quota.has_room();
                if (is_stopped || has_no_room) && self.busy.first().is_none() {
                    self.end_early(self.now_ns);
                }
            }
            Stage::Idle | Stage::Ready => {}
        }
    }

    /// Whether the source wants no more; to be asked as soon as that may be new.
    #[inline]
    pub(super) fn is_source_stopped(&mut self) -> bool {
        if self.run.stopped_ns.is_none() && self.source.is_stopped() {
            self.run.stopped_ns = Some(self.now_ns);
        }
        self.run.is_stopped()
    }

    /// Whether all connections are open, or those that are not are not worth waiting for.
    fn is_prepared(&mut self) -> bool {
        if self.config.wrk2_exact {
            return true;
        }
        let free_count = self.free.count();
        if free_count != self.run.free_count {
            self.run.free_count = free_count;
            self.run.progress_ns = self.now_ns;
        }
        let has_all = self.run.has_seen_all && free_count == self.connections.len();
        has_all || self.now_ns >= self.patience_ends_ns()
    }

    /// Until when connections are waited for.
    fn patience_ends_ns(&self) -> u64 {
        let is_underway = self.opening.count() + self.busy.count() + self.to_open.len() != 0;
        self.run.progress_ns + if is_underway { PATIENCE_UNDERWAY_NS } else { PATIENCE_NS }
    }

    /// Crosses the boundaries that have passed.
    #[inline]
    pub(super) fn cross_boundaries(&mut self) {
        if self.now_ns >= self.run.boundary_ns {
            self.cross_passed_boundaries();
        }
    }

    #[cold]
    fn cross_passed_boundaries(&mut self) {
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
                if at_ns >= self.recorder.start_ns() + SECOND_NS {
                    self.end_second(at_ns);
                }
            }
            let second_ns = self.recorder.start_ns().saturating_add(SECOND_NS);
            let calibrates_ns = self.recorder.calibrates_ns().unwrap_or(u64::MAX);
            self.run.boundary_ns = second_ns.min(calibrates_ns).min(self.run.end_ns);
        }
    }

    fn begin_measuring(&mut self, at_ns: u64) {
        self.run.is_measuring = true;
        let stagger_ns = STAGGER_NS * self.connections.len() as u64;
        let calibrates_after_ns = self.config.wrk2_exact.then_some(CALIBRATION_NS + stagger_ns);
        self.recorder.begin(at_ns, calibrates_after_ns);
        self.run.pace.begin_measuring(at_ns);
    }

    fn end_second(&mut self, at_ns: u64) {
        let connections = &self.connections;
        let in_flight = |index: usize| connections[index].flight.in_flight();
        let run = &mut self.run;
        let until_ns = at_ns.min(run.plan_end_ns());
        let undone = run.pace.undone_before(run.measured_ns, until_ns, in_flight);
        let undone_max = run.undone_max(self.config.thread_count);
        // A batch counts with its first request, wherever the moments of the others lie.
        let planned = run.tried + undone.of_measured.min(undone_max);
        let backlog = undone.of_all.min(undone_max);
        let second = self.recorder.end_interval(at_ns, planned, backlog);
        self.report(News::Second(second));
    }

    /// Ends the phase before its time.
    fn end_early(&mut self, at_ns: u64) {
        if matches!(self.run.stage, Stage::Idle) {
            return;
        }
        self.cross_boundaries();
        if self.run.stage != Stage::Idle {
            self.end(at_ns.min(self.run.end_ns));
        }
    }

    /// Ends the phase: counts what is unanswered, hands over the rest.
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
            run.pace.each_undone(run.measured_ns, until_ns, in_flight, |at_ns, count| {
                let count = match run.is_limited {
                    true => run.quota.take_some(count),
                    false => count,
                };
                unanswered.record_many_ns(end_ns - at_ns, count);
                backlog += count;
            });
            measured_ns = end_ns.saturating_sub(self.run.measured_ns);
            if end_ns > self.recorder.start_ns() {
                self.end_second(end_ns);
            }
        }
        let outcome = self.recorder.finish(end_ns);
        let is_stopped = self.run.is_stopped();
        self.run = Run::default();
        for index in 0..self.connections.len() {
            self.connections[index].flight.is_current = false;
            if self.connections[index].state == State::Waiting {
                self.timers.cancel(index);
                self.set_free(index);
            }
        }
        self.report(News::Ended(Box::new(Ended {
            outcome,
            planned: tried + backlog,
            backlog,
            in_flight,
            unanswered,
            measured_ns,
            is_stopped,
        })));
    }

    /// The next moment at which the loop has something to do other than sending.
    pub(super) fn next_other_ns(&mut self) -> u64 {
        let mut next_ns = self.timers.next_ns().unwrap_or(u64::MAX);
        if let Some(index) = self.busy.first() {
            next_ns = next_ns
                .min(self.connections[index].flight.written_ns.saturating_add(self.timeout_ns));
        }
        if let Some(index) = self.opening.first() {
            next_ns =
                next_ns.min(self.connections[index].opening_ns.saturating_add(self.timeout_ns));
        }
        match self.run.stage {
            Stage::Running => next_ns.min(self.run.boundary_ns),
            Stage::Preparing => next_ns.min(self.patience_ends_ns()),
            Stage::Idle | Stage::Ready => next_ns,
        }
    }
}

/// Nanoseconds, or the most that there are: a duration without an end.
fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
