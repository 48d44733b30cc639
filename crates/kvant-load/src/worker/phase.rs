//! A phase as a worker lives it: connections are opened, the time begins, seconds end, the phase ends.
//!
//! Invariants:
//! 1. Boundaries are crossed in order and at their nominal times, however late the loop notices; what is planned behind one
//!    is not sent before it is crossed.
//! 2. When the phase ends, what is in flight is counted and then forgotten: its answers are in no record.

use super::messages::{Ended, News, Order, Quota};
use super::pace::Pace;
use super::{CALIBRATION_NS, STAGGER_NS, Worker};
use crate::config::{Phase, Rate};
use crate::histogram::Histogram;
use std::sync::Arc;
use std::time::Duration;

const SECOND_NS: u64 = 1_000_000_000;
/// Connections that fail are not waited for longer than this without any getting open, in nanoseconds.
const PATIENCE_NS: u64 = 1_000_000_000;
/// Connections on their way (a lost SYN is sent again after 1 s and 3 s), or with old requests in flight, are waited for so
/// long without any getting free, in nanoseconds.
const PATIENCE_PROGRESS_NS: u64 = 5_000_000_000;

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
    /// The source wants no more.
    pub(super) is_stopped: bool,
    /// Recorded requests that were written.
    pub(super) sent: u64,
    /// Planned requests before the measured time.
    planned_before: u64,
    /// The source has nothing to send until then; 0 when it has.
    pub(super) paused_until_ns: u64,
    /// Since when it has had something again.
    pub(super) unpaused_ns: u64,
    /// How long before a moment the loop polls instead of sleeping.
    pub(super) spin_ns: u64,
    /// When connections are waited for no longer.
    patience_ns: u64,
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
            is_stopped: false,
            sent: 0,
            planned_before: 0,
            paused_until_ns: 0,
            unpaused_ns: 0,
            spin_ns: 0,
            patience_ns: 0,
            free_count: 0,
        }
    }
}

impl Worker {
    /// Does what the coordinator says.
    pub(super) fn obey(&mut self, order: Order) {
        self.read_clock();
        self.turn_ns = self.now_ns;
        match order {
            Order::Prepare(phase, quota) => {
                self.run = Run {
                    stage: Stage::Preparing,
                    phase,
                    is_limited: quota.is_limited(),
                    quota,
                    patience_ns: self.now_ns + PATIENCE_PROGRESS_NS,
                    ..Run::default()
                };
            }
            Order::Begin { begin_ns } => self.begin(begin_ns),
            Order::End { end_ns } => self.end_early(end_ns),
        }
    }

    fn begin(&mut self, begin_ns: u64) {
        let run = &mut self.run;
        run.stage = Stage::Running;
        run.begin_ns = begin_ns;
        run.measured_ns = begin_ns.saturating_add(nanos(run.phase.warmup));
        run.end_ns = run.measured_ns.saturating_add(nanos(run.phase.duration));
        run.boundary_ns = run.measured_ns;
        run.pace = Pace::new(&self.config, &run.phase, self.thread, begin_ns);
        run.spin_ns = nanos(self.config.spin);
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
                let run = &mut self.run;
                run.is_stopped |= self.source.is_stopped();
                let has_no_room = run.is_limited && run.is_measuring && !run.quota.has_room();
                if (run.is_stopped || has_no_room) && self.busy.first().is_none() {
                    self.end_early(self.now_ns);
                }
            }
            Stage::Idle | Stage::Ready => {}
        }
    }

    /// Whether all connections are open, or those that are not are not worth waiting for.
    fn is_prepared(&mut self) -> bool {
        if self.config.wrk2_exact {
            return true;
        }
        let free_count = self.free.count();
        if free_count != self.run.free_count {
            self.run.free_count = free_count;
            self.run.patience_ns = self.now_ns + PATIENCE_PROGRESS_NS;
        }
        let has_hope = self.opening.count() + self.busy.count() + self.to_open.len() != 0;
        let patience_ns = match has_hope {
            true => self.run.patience_ns,
            false => self.run.patience_ns - (PATIENCE_PROGRESS_NS - PATIENCE_NS),
        };
        free_count == self.connections.len() || self.now_ns >= patience_ns
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
                if self.recorder.calibrates_ns().is_some_and(|calibrates_ns| calibrates_ns <= at_ns) {
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
        self.run.planned_before = match &mut self.run.pace {
            Pace::Closed => 0,
            Pace::Shared(shared) => shared.count_before(at_ns).0,
        };
    }

    /// Planned requests between the begin of the measured time and `at_ns`, and the backlog then.
    fn planned(&mut self, at_ns: u64) -> (u64, u64) {
        match &mut self.run.pace {
            Pace::Closed => (self.run.sent, 0),
            Pace::Shared(shared) => {
                let (planned, backlog) = shared.count_before(at_ns);
                (planned - self.run.planned_before, backlog)
            }
        }
    }

    fn end_second(&mut self, at_ns: u64) {
        let (planned, backlog) = self.planned(at_ns);
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
        if self.run.is_measuring {
            // A source that stopped left nothing undone.
            if let (Pace::Shared(shared), false) = (&self.run.pace, self.run.is_stopped) {
                for at_ns in shared.undone_before(end_ns).filter(|at_ns| *at_ns >= self.run.measured_ns) {
                    unanswered.record_ns(end_ns - at_ns);
                    backlog += 1;
                }
            }
            measured_ns = end_ns.saturating_sub(self.run.measured_ns);
            if end_ns > self.recorder.start_ns() {
                self.end_second(end_ns);
            }
        }
        let outcome = self.recorder.finish(end_ns);
        let is_stopped = self.run.is_stopped;
        self.run = Run::default();
        self.report(News::Ended(Box::new(Ended {
            outcome,
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
            next_ns = next_ns.min(self.connections[index].flight.written_ns.saturating_add(self.timeout_ns));
        }
        if let Some(index) = self.opening.first() {
            next_ns = next_ns.min(self.connections[index].opening_ns.saturating_add(self.timeout_ns));
        }
        match self.run.stage {
            Stage::Running => next_ns.min(self.run.boundary_ns),
            Stage::Preparing => next_ns.min(self.run.patience_ns - (PATIENCE_PROGRESS_NS - PATIENCE_NS)),
            Stage::Idle | Stage::Ready => next_ns,
        }
    }
}

/// Nanoseconds, or the most that there are: a duration without an end.
fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
