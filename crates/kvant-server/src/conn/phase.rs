//! The phase of a connection and its age, which decide whether the connection has kept the server
//! waiting for too long.
//!
//! Age is counted in sweeps ([`mod@super::sweep`]), so that a request costs no clock reading and no
//! timer: every change of phase resets the count, each sweep adds one.
//!
//! Invariants:
//! 1. A connection that waits for the server is never due: the limits of storage, queue and slow
//!    readers bound it.
//! 2. A connection becomes due no earlier than after the whole of its limit.
//!
//! Threads: all of it belongs to one selector.

use crate::config::ServerConfig;
use std::cell::Cell;
use std::time::Duration;

/// Bounds on the time between two sweeps: a quarter of the shortest limit within them.
const PERIOD_MIN: Duration = Duration::from_millis(10);
const PERIOD_MAX: Duration = Duration::from_secs(1);

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum ConnPhase {
    /// Open, without a request.
    #[default]
    Idle,
    /// The head of a request has begun and not ended.
    Head,
    /// A request is served.
    Busy,
    /// A request waits for the start of its body.
    Body,
    /// Hyper has the response, and may have more of it to send.
    Responding,
}

/// What to do about a connection that made no progress for too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Due {
    /// Close it: there is no request.
    Close,
    /// Respond `408`: the head did not come in time.
    HeadTimeout,
    /// Respond `408`: the body did not come in time.
    BodyTimeout,
    /// Free its buffers: it is idle.
    Idle,
    /// Serve the request that has come on the fast path.
    Plain,
    /// Respond `503`: there is no memory to read its request.
    NoMemory,
}

/// The limits of the phases, in sweeps.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) period: Duration,
    idle_sweeps: u32,
    head_sweeps: u32,
    body_sweeps: u32,
}

#[derive(Default)]
pub(crate) struct Progress {
    phase: Cell<ConnPhase>,
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

impl Progress {
    /// Notes that bytes came. False: they belong to a request that has begun.
    #[inline]
    pub(crate) fn begin_head(&self) -> bool {
        let begins = self.phase.get() == ConnPhase::Idle;
        if begins {
            self.enter(ConnPhase::Head);
        }
        begins
    }

    /// Whether there is no request.
    #[inline]
    pub(crate) fn is_idle(&self) -> bool {
        self.phase.get() == ConnPhase::Idle
    }

    /// Has the connection's task serve the request that came on the fast path.
    pub(crate) fn leave_hyper(&self) {
        self.due.set(Some(Due::Plain));
    }

    /// Whether the request that came is for the fast path.
    #[inline]
    pub(crate) fn leaves_hyper(&self) -> bool {
        self.due.get() == Some(Due::Plain)
    }

    #[inline]
    pub(crate) fn is_in_head(&self) -> bool {
        self.phase.get() == ConnPhase::Head
    }

    /// Notes that a head is complete.
    #[inline]
    pub(crate) fn begin_request(&self) {
        self.enter(ConnPhase::Busy);
    }

    /// Notes that the request waits for the start of its body.
    pub(crate) fn await_body(&self) {
        if self.phase.get() != ConnPhase::Body {
            self.enter(ConnPhase::Body);
        }
    }

    /// Notes that hyper was given a response. After the last one the connection is not idle again.
    #[inline]
    pub(crate) fn begin_response(&self, is_last: bool) {
        self.enter(if is_last { ConnPhase::Busy } else { ConnPhase::Responding });
    }

    /// Notes that hyper reads: either a body is missing, or all of a response was written to the
    /// socket.
    #[inline]
    pub(crate) fn note_hyper_reads(&self) {
        if self.phase.get() == ConnPhase::Responding {
            self.enter(ConnPhase::Idle);
        }
    }

    /// Notes that all of the response was written to the socket.
    #[inline]
    pub(crate) fn end_request(&self) {
        self.enter(ConnPhase::Idle);
    }

    /// Resets the age: the kernel took bytes of a response.
    #[inline]
    pub(crate) fn restart(&self) {
        self.sweeps.set(0);
    }

    /// Notes whether the connection holds buffers that it does not need while it is idle.
    pub(crate) fn set_buffers(&self, has_buffers: bool) {
        self.has_buffers.set(has_buffers);
    }

    /// Takes what the connection's task has to do, if anything. Only the reader of a body takes
    /// [`Due::BodyTimeout`].
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

    /// Whether to give up the body.
    pub(crate) fn body_is_due(&self) -> bool {
        self.due.get() == Some(Due::BodyTimeout)
    }

    /// Counts a sweep. True: something is due, and the task has to be woken.
    pub(crate) fn sweep(&self, limits: &Limits) -> bool {
        let sweeps = self.sweeps.get().saturating_add(1);
        self.sweeps.set(sweeps);
        // The first sweep may have come just after the phase began: it says nothing about time.
        let is_over = |sweeps_max: u32| sweeps > sweeps_max;
        let due = match self.phase.get() {
            ConnPhase::Idle if is_over(limits.idle_sweeps) => Due::Close,
            ConnPhase::Idle if is_over(1) && self.has_buffers.get() => Due::Idle,
            ConnPhase::Head if is_over(limits.head_sweeps) => Due::HeadTimeout,
            ConnPhase::Body if is_over(limits.body_sweeps) => Due::BodyTimeout,
            _ => return false,
        };
        self.due.set(Some(due));
        true
    }

    #[inline]
    fn enter(&self, phase: ConnPhase) {
        self.phase.set(phase);
        self.sweeps.set(0);
        self.due.set(None);
    }
}

#[cfg(test)]
mod tests;
