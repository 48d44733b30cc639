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
            self.cut_pause_short();
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
            until_ns => {
                let now_ns = self.env.clock.monotonic_ns();
                if now_ns >= until_ns {
                    self.end_pause(|until_ns| now_ns >= until_ns);
                    return None;
                }
                Some(until_ns)
            }
        }
    }

    /// Ends the pause now, if there is one.
    pub(super) fn cut_pause_short(&self) {
        self.end_pause(|_| true);
    }

    /// Ends the pause if `is_over` says so of its end: another one may have begun.
    fn end_pause(&self, is_over: impl Fn(u64) -> bool) {
        {
            let mut event = self.pause.event.lock();
            let until_ns = self.pause.until_ns.load(Ordering::Relaxed);
            if is_over(until_ns)
                && let Some(span) = event.take()
            {
                self.pause.until_ns.store(0, Ordering::Release);
                let end_ns = until_ns.min(self.env.clock.monotonic_ns());
                self.events.end_at(span, end_ns, Vec::new());
            }
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
