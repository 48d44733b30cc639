//! Back-pressure: one gate in front of the commit pipeline.
//!
//! A write passes, or learns that it would have to wait and why; nothing here sleeps. The gate has
//! three positions:
//! - **open**: one load per batch;
//! - **slowed**: writes spend credits, which the flush or compaction that they would wait for earns
//!   by the bytes that it keeps. The credit for such a byte falls in proportion to how far the
//!   backlog is between its slow and its stop mark, so that writers and background work meet at a
//!   steady level instead of a cliff;
//! - **closed**: nothing passes until the cause is gone.
//!
//! Invariants:
//! 1. a writer that was refused is notified when the answer may have changed: by a new position or
//!    by earned credits;
//! 2. while a stall lasts its reason is active in the statistics; its time is the time that writers
//!    were held, counted once whatever their number;
//! 3. a stall is one event, from the first writer that is held until the gate opens or moves for
//!    another reason. Writers that pass in between on earned credits do not end it.
//!
//! Threads: any. Wakers run on the thread that moved the gate, without the gate's lock; events are
//! reported under it.

use crate::events::{EventSink, Span, text};
use crate::stats::{StallReason, StallStats};
use kvant_base::events::EventKind;
use kvant_base::lock::{NamedGuard, NamedMutex};
use kvant_base::log::{Level, Log};
use kvant_env::{Clock, Signal};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Called once when a stalled write may succeed.
pub(crate) type Waker = Box<dyn FnOnce() + Send>;

/// Position of the gate, which follows from the state of the tree.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Position {
    Open,
    /// Writes spend credits; a byte of the work that `reason` waits for earns `earn` of them: 1 at
    /// the slow mark, 0 at the stop mark.
    Slowed {
        reason: StallReason,
        earn: f64,
    },
    Closed {
        reason: StallReason,
    },
}

impl Position {
    pub(super) fn reason(self) -> Option<StallReason> {
        match self {
            Position::Open => None,
            Position::Slowed { reason, .. } | Position::Closed { reason } => Some(reason),
        }
    }
}

pub(crate) struct Gate {
    // immutable
    clock: Arc<dyn Clock>,
    log: Arc<dyn Log>,
    events: EventSink,
    /// Credits with which a slowed phase begins, in bytes: one turn of every writer passes before
    /// the first has to wait.
    burst_bytes: i64,
    // own synchronisation
    open: AtomicBool,
    changed: Signal,
    state: NamedMutex<State>,
}

struct State {
    position: Position,
    credits_bytes: i64,
    /// Why writers are held now, and since when.
    held_since: Option<(StallReason, u64)>,
    /// The event of the current stall, and its reason.
    open_event: Option<(StallReason, Span)>,
    wakers: Vec<Waker>,
    /// Number of stalls and nanoseconds held, by reason.
    totals: [(u64, u64); StallReason::ALL.len()],
}

impl Gate {
    pub(crate) fn new(
        clock: Arc<dyn Clock>,
        log: Arc<dyn Log>,
        events: EventSink,
        burst_bytes: u64,
    ) -> Gate {
        let state = State {
            position: Position::Open,
            credits_bytes: 0,
            held_since: None,
            open_event: None,
            wakers: Vec::new(),
            totals: Default::default(),
        };
        Gate {
            clock,
            log,
            events,
            burst_bytes: i64::try_from(burst_bytes).unwrap_or(i64::MAX),
            open: AtomicBool::new(true),
            changed: Signal::named_by_waiters(),
            state: NamedMutex::new("gate", state),
        }
    }

    /// Lets a batch of `bytes` pass, or returns why it has to wait.
    #[inline]
    pub(crate) fn admit(&self, bytes: usize) -> Result<(), StallReason> {
        if self.open.load(Ordering::Acquire) { Ok(()) } else { self.admit_slowly(bytes) }
    }

    fn admit_slowly(&self, bytes: usize) -> Result<(), StallReason> {
        let mut state = self.state.lock();
        let reason = match state.position {
            Position::Open => return Ok(()),
            Position::Slowed { .. } if state.credits_bytes > 0 => {
                // The last batch may overdraw, or one larger than the credits would never pass.
                state.credits_bytes -= i64::try_from(bytes).unwrap_or(i64::MAX);
                return Ok(());
            }
            Position::Slowed { reason, .. } | Position::Closed { reason } => reason,
        };
        if state.held_since.is_none() {
            state.held_since = Some((reason, self.clock.monotonic_ns()));
            state.totals[reason as usize].0 += 1;
        }
        if state.open_event.is_none() {
            let fields = vec![("reason", text(reason.name()))];
            state.open_event = Some((reason, self.events.begin(EventKind::Stall, fields)));
        }
        Err(reason)
    }

    /// Moves the gate to `position(before)`, which is called under the gate's lock: of two threads
    /// that move the gate at once, the later one sees the state that made the earlier one move it.
    pub(crate) fn update(&self, position: impl FnOnce(Position) -> Position) {
        let mut state = self.state.lock();
        let before = state.position;
        let position = position(before);
        state.position = position;
        if before == position {
            return;
        }
        if matches!(position, Position::Slowed { .. }) && !matches!(before, Position::Slowed { .. })
        {
            state.credits_bytes = self.burst_bytes;
        }
        self.open.store(position == Position::Open, Ordering::Release);
        if let Some((_, span)) =
            state.open_event.take_if(|(reason, _)| position.reason() != Some(*reason))
        {
            self.events.end(span, Vec::new());
        }
        self.log_change(before, position);
        // Writers that are still held for the same reason would only try in vain.
        if state.may_pass() || before.reason() != position.reason() {
            self.release(state);
        }
    }

    #[cfg(test)]
    fn set(&self, position: Position) {
        self.update(|_| position);
    }

    /// The work that `worked` waits for has written `bytes` of entries that it keeps.
    pub(crate) fn earn(&self, worked: StallReason, bytes: u64) {
        if self.open.load(Ordering::Relaxed) {
            return;
        }
        let mut state = self.state.lock();
        if let Position::Slowed { reason, earn } = state.position
            && reason == worked
        {
            state.credits_bytes =
                (state.credits_bytes + (bytes as f64 * earn) as i64).min(self.burst_bytes);
            if state.credits_bytes > 0 {
                self.release(state);
            }
        }
    }

    /// Notifies the writers that wait.
    fn release(&self, mut state: NamedGuard<'_, State>) {
        if let Some((reason, since_ns)) = state.held_since.take() {
            state.totals[reason as usize].1 += self.clock.monotonic_ns().saturating_sub(since_ns);
        }
        let wakers = std::mem::take(&mut state.wakers);
        drop(state);
        self.changed.notify_all();
        wakers.into_iter().for_each(|wake| wake());
    }

    fn log_change(&self, before: Position, after: Position) {
        if std::mem::discriminant(&before) == std::mem::discriminant(&after) {
            return;
        }
        match after {
            Position::Open => self.log.event(Level::Info, "stall_end", &[]),
            Position::Slowed { reason, .. } => {
                self.log.event(Level::Warn, "writes_slowed", &[("reason", &reason.name())]);
            }
            Position::Closed { reason } => {
                self.log.event(Level::Warn, "writes_stalled", &[("reason", &reason.name())]);
            }
        }
    }

    /// Calls `wake` once when a write may pass; at once when one may now.
    pub(crate) fn on_writable(&self, wake: Waker) {
        let mut state = self.state.lock();
        if state.may_pass() {
            drop(state);
            wake();
        } else {
            state.wakers.push(wake);
        }
    }

    /// What would stall a write now.
    pub(crate) fn stall(&self) -> Option<StallReason> {
        let state = self.state.lock();
        match state.position {
            Position::Slowed { reason, .. } | Position::Closed { reason } if !state.may_pass() => {
                Some(reason)
            }
            _ => None,
        }
    }

    /// Notified whenever an answer of [`Gate::admit`] may have changed.
    pub(crate) fn changed(&self) -> &Signal {
        &self.changed
    }

    pub(crate) fn stats(&self) -> Vec<StallStats> {
        let state = self.state.lock();
        let now_ns = self.clock.monotonic_ns();
        StallReason::ALL
            .into_iter()
            .map(|reason| {
                let (count, ns) = state.totals[reason as usize];
                let running_ns = match state.held_since {
                    Some((held, since_ns)) if held == reason => now_ns.saturating_sub(since_ns),
                    _ => 0,
                };
                let active = state.position.reason() == Some(reason);
                StallStats { reason, count, us_total: (ns + running_ns) / 1000, active }
            })
            .collect()
    }
}

impl State {
    fn may_pass(&self) -> bool {
        match self.position {
            Position::Open => true,
            Position::Slowed { .. } => self.credits_bytes > 0,
            Position::Closed { .. } => false,
        }
    }
}

#[cfg(test)]
mod tests;
