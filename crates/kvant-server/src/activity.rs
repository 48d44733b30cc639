//! What a connection is doing, and for how long: what decides whether it has kept the server
//! waiting for too long.
//!
//! Time is counted in sweeps ([`crate::sweep`]), so that a request costs no clock reading and no
//! timer: every change of phase begins the count again, each sweep adds one.
//!
//! Invariants:
//! 1. A connection that the server owes an answer is never due: the limits of storage, queue and
//!    slow readers bound it.
//! 2. What is due was due for at least the whole of its limit.
//!
//! Threads: all of it belongs to one selector.

use crate::config::ServerConfig;
use std::cell::Cell;
use std::time::Duration;

/// Bounds on the time between two sweeps: a quarter of the shortest limit within them.
const PERIOD_MIN: Duration = Duration::from_millis(10);
const PERIOD_MAX: Duration = Duration::from_secs(1);

/// What a connection is doing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Phase {
    /// Open, with no request on its way, answered or not.
    #[default]
    Idle,
    /// The head of a request has begun and not ended.
    Head,
    /// A request is served.
    Busy,
    /// A request is served that waits for the first of its body.
    Body,
    /// Hyper has the answer, and may have more of it to send.
    Answering,
}

/// What is to be done about a connection that kept still for too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Due {
    /// Close it: there is no request.
    Close,
    /// Answer `408`: the head did not come in time.
    HeadTimeout,
    /// Answer `408`: the body did not come in time.
    BodyTimeout,
    /// Give its buffers back: it rests.
    Rest,
    /// Answer `503`: there is no memory to read its request.
    NoMemory,
}

/// How many sweeps each may last.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) period: Duration,
    idle_sweeps: u32,
    head_sweeps: u32,
    body_sweeps: u32,
}

/// The phase of one connection and the sweeps since it began.
#[derive(Default)]
pub(crate) struct Activity {
    phase: Cell<Phase>,
    sweeps: Cell<u32>,
    due: Cell<Option<Due>>,
    has_buffers: Cell<bool>,
}

impl Limits {
    pub(crate) fn new(config: &ServerConfig) -> Limits {
        let limits = [config.connection_idle_max, config.head_wait_max, config.range_idle_max];
        let shortest = limits.into_iter().min().unwrap_or(PERIOD_MAX);
        let period = (shortest / 4).clamp(PERIOD_MIN, PERIOD_MAX);
        let sweeps = |limit: Duration| {
            let count = limit.as_nanos().div_ceil(period.as_nanos());
            u32::try_from(count).unwrap_or(u32::MAX - 1)
        };
        Limits {
            period,
            idle_sweeps: sweeps(config.connection_idle_max),
            head_sweeps: sweeps(config.head_wait_max),
            body_sweeps: sweeps(config.range_idle_max),
        }
    }
}

impl Activity {
    /// The first bytes of a request are here, and perhaps all of them. False: they belong to one
    /// that has begun.
    #[inline]
    pub(crate) fn head_begins(&self) -> bool {
        let begins = self.phase.get() == Phase::Idle;
        if begins {
            self.enter(Phase::Head);
        }
        begins
    }

    /// Whether the head of a request has begun and not ended.
    #[inline]
    pub(crate) fn is_in_head(&self) -> bool {
        self.phase.get() == Phase::Head
    }

    /// A head is complete: the server has something to do.
    #[inline]
    pub(crate) fn request_begins(&self) {
        self.enter(Phase::Busy);
    }

    /// Nothing can be done before the first of the body is here.
    pub(crate) fn body_is_awaited(&self) {
        if self.phase.get() != Phase::Body {
            self.enter(Phase::Body);
        }
    }

    /// Hyper was given an answer. After the connection's last one it is not idle again.
    #[inline]
    pub(crate) fn answer_begins(&self, is_last: bool) {
        self.enter(if is_last { Phase::Busy } else { Phase::Answering });
    }

    /// Hyper wants to read, which it does only for a body that is missing or when all of an answer
    /// has been written to the socket.
    #[inline]
    pub(crate) fn hyper_reads(&self) {
        if self.phase.get() == Phase::Answering {
            self.enter(Phase::Idle);
        }
    }

    /// All of the answer has been written to the socket.
    #[inline]
    pub(crate) fn request_ends(&self) {
        self.enter(Phase::Idle);
    }

    /// The kernel took bytes of an answer: whatever the connection waits for, it has not kept
    /// still.
    #[inline]
    pub(crate) fn progresses(&self) {
        self.sweeps.set(0);
    }

    /// Whether the connection holds buffers that it can do without while it rests.
    pub(crate) fn set_buffers(&self, has_buffers: bool) {
        self.has_buffers.set(has_buffers);
    }

    /// What the connection's task has to do, if anything, before it goes on: told once. What is due
    /// of a body is for whoever reads it.
    #[inline]
    pub(crate) fn take_due(&self) -> Option<Due> {
        match self.due.get() {
            None | Some(Due::BodyTimeout) => None,
            due => {
                self.due.set(None);
                due
            }
        }
    }

    /// Whether the body has to be given up.
    pub(crate) fn body_is_due(&self) -> bool {
        self.due.get() == Some(Due::BodyTimeout)
    }

    /// Counts a sweep. True: something is due, the task has to be told.
    pub(crate) fn sweep(&self, limits: &Limits) -> bool {
        let sweeps = self.sweeps.get().saturating_add(1);
        self.sweeps.set(sweeps);
        // The first of them may have come just after the phase began: it says nothing about time.
        let is_over = |sweeps_max: u32| sweeps > sweeps_max;
        let due = match self.phase.get() {
            Phase::Idle if is_over(limits.idle_sweeps) => Due::Close,
            Phase::Idle if is_over(1) && self.has_buffers.get() => Due::Rest,
            Phase::Head if is_over(limits.head_sweeps) => Due::HeadTimeout,
            Phase::Body if is_over(limits.body_sweeps) => Due::BodyTimeout,
            _ => return false,
        };
        self.due.set(Some(due));
        true
    }

    #[inline]
    fn enter(&self, phase: Phase) {
        self.phase.set(phase);
        self.sweeps.set(0);
        self.due.set(None);
    }
}

#[cfg(test)]
mod tests;
