//! A pause of flushes and compactions, for experiments: whether they delay requests shows when they
//! rest.
//!
//! Invariants:
//! 1. A pause ends at its time, whether or not anybody looks; a close ends it early.
//! 2. It holds no lock and no writer: writers wait only where the gate makes them, because the
//!    backlog grows meanwhile.
//! 3. It is one event, with its exact times.
//!
//! Threads: any begins one; the tasks of flushes and compactions rest, and the first to go on
//! reports the end.

use super::{Context, TaskName};
use crate::events::Span;
use kvant_base::events::EventKind;
use kvant_base::lock::NamedMutex;
use kvant_base::wait::WaitKind;
use kvant_base::{Result, duration};
use kvant_env::Signal;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

pub(crate) struct Pause {
    /// When it ends; 0 without one.
    until_ns: AtomicU64,
    event: NamedMutex<Option<Span>>,
    over: Signal,
}

impl Pause {
    pub(super) const fn new() -> Pause {
        Pause {
            until_ns: AtomicU64::new(0),
            event: NamedMutex::new("pause", None),
            over: Signal::new(WaitKind::Idle, "pause"),
        }
    }
}

impl Context {
    /// Lets flushes and compactions rest for `time`. False if they do already.
    pub(crate) fn pause(&self, time: Duration) -> Result<bool> {
        self.check_open()?;
        // One that is over may not have been noticed.
        if self.paused_until_ns().is_some() {
            return Ok(false);
        }
        {
            let mut event = self.pause.event.lock();
            if event.is_some() {
                return Ok(false);
            }
            let span = self.events.begin(EventKind::Pause, Vec::new());
            let until_ns = span.start_ns() + duration::ns(time);
            *event = Some(span);
            self.pause.until_ns.store(until_ns, Ordering::Release);
        }
        if self.is_closed() {
            // A close has ended the pauses before this one.
            self.end_pause(self.env.clock.monotonic_ns());
            return self.check_open().map(|()| false);
        }
        // So that they notice its end.
        self.wake(TaskName::Flush);
        self.wake(TaskName::Compact);
        Ok(true)
    }

    /// Until when flushes and compactions rest.
    #[inline]
    pub(crate) fn paused_until_ns(&self) -> Option<u64> {
        match self.pause.until_ns.load(Ordering::Acquire) {
            0 => None,
            until_ns if self.env.clock.monotonic_ns() < until_ns => Some(until_ns),
            until_ns => {
                self.end_pause(until_ns);
                None
            }
        }
    }

    /// Ends the pause, if there is one, at `now_ns` at the latest.
    pub(super) fn end_pause(&self, now_ns: u64) {
        if let Some(span) = self.pause.event.lock().take() {
            let until_ns = self.pause.until_ns.swap(0, Ordering::AcqRel);
            self.events.end_at(span, until_ns.min(now_ns), Vec::new());
        }
        self.pause.over.notify_all();
    }

    /// Waits while flushes and compactions are to rest.
    #[inline]
    pub(crate) fn rest(&self) {
        while let Some(until_ns) = self.paused_until_ns() {
            self.env.spawner.wait_until(&self.pause.over, Some(until_ns), &mut || {
                self.pause.until_ns.load(Ordering::Acquire) != until_ns
            });
        }
    }
}
