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

use crate::events::{EventSink, Span};
use kvant_base::duration;
use kvant_base::events::EventKind;
use kvant_base::lock::NamedMutex;
use kvant_base::wait::WaitKind;
use kvant_env::{Env, Signal};
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

    /// Begins a pause of `time`. False if there is one.
    pub(super) fn begin(&self, time: Duration, env: &Env, events: &EventSink) -> bool {
        // One that is over may not have been noticed.
        if self.until_ns(env, events).is_some() {
            return false;
        }
        let mut event = self.event.lock();
        if event.is_some() {
            return false;
        }
        let span = events.begin(EventKind::Pause, Vec::new());
        let until_ns = span.start_ns() + duration::ns(time);
        *event = Some(span);
        self.until_ns.store(until_ns, Ordering::Release);
        true
    }

    /// When the pause ends; `None` without one.
    #[inline]
    pub(super) fn until_ns(&self, env: &Env, events: &EventSink) -> Option<u64> {
        match self.until_ns.load(Ordering::Acquire) {
            0 => None,
            until_ns => {
                let now_ns = env.clock.monotonic_ns();
                if now_ns >= until_ns {
                    self.end_if(|until_ns| now_ns >= until_ns, env, events);
                    return None;
                }
                Some(until_ns)
            }
        }
    }

    /// Ends the pause now, if there is one.
    pub(super) fn end(&self, env: &Env, events: &EventSink) {
        self.end_if(|_| true, env, events);
    }

    /// Ends the pause if `is_over` says so of its end: another one may have begun.
    fn end_if(&self, is_over: impl Fn(u64) -> bool, env: &Env, events: &EventSink) {
        {
            let mut event = self.event.lock();
            let until_ns = self.until_ns.load(Ordering::Relaxed);
            if is_over(until_ns)
                && let Some(span) = event.take()
            {
                let end_ns = until_ns.min(env.clock.monotonic_ns());
                events.end_at(span, end_ns, Vec::new());
                // Last, so that work which goes on finds the event ended.
                self.until_ns.store(0, Ordering::Release);
            }
        }
        self.over.notify_all();
    }

    /// Waits for the end of the pause.
    #[inline]
    pub(super) fn wait(&self, env: &Env, events: &EventSink) {
        while let Some(until_ns) = self.until_ns(env, events) {
            env.spawner.wait_until(&self.over, Some(until_ns), &mut || {
                self.until_ns.load(Ordering::Acquire) != until_ns
            });
        }
    }
}
