//! Requests to end a run, and the end of the current phase when a subject dies.
//!
//! Threads: any.

use kvant_base::lock::{NamedCondvar, NamedMutex};
use kvant_base::wait::WaitKind;
use kvant_load::Stopper;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A request to end a run early. Clones share it.
#[derive(Clone)]
pub struct Stop(Arc<Shared>);

struct Shared {
    state: NamedMutex<State>,
    changed: NamedCondvar,
}

#[derive(Default)]
struct State {
    is_requested: bool,
    /// Loads of the current phase, with the numbers of their guards.
    stoppers: Vec<(u64, Stopper)>,
    attached_count: u64,
}

impl Default for Stop {
    fn default() -> Stop {
        Stop(Arc::new(Shared {
            state: NamedMutex::new("lab_stop", State::default()),
            changed: NamedCondvar::new(WaitKind::Idle, "lab_pause"),
        }))
    }
}

impl Stop {
    /// Ends the current phase and then the run.
    pub fn request(&self) {
        let mut state = self.0.state.lock();
        state.is_requested = true;
        state.stoppers.iter().for_each(|(_, stopper)| stopper.stop());
        self.0.changed.notify_all();
    }

    /// Whether the run is to end.
    pub fn is_requested(&self) -> bool {
        self.0.state.lock().is_requested
    }

    /// Ends the current phase only.
    pub(super) fn end_phase(&self) {
        let state = self.0.state.lock();
        state.stoppers.iter().for_each(|(_, stopper)| stopper.stop());
        self.0.changed.notify_all();
    }

    /// Ends this load too, until the guard is dropped.
    pub(super) fn attach(&self, stopper: Stopper) -> Attached {
        let mut state = self.0.state.lock();
        if state.is_requested {
            stopper.stop();
        }
        state.attached_count += 1;
        let number = state.attached_count;
        state.stoppers.push((number, stopper));
        Attached { stop: self.clone(), number }
    }

    /// Waits, but not longer than until the run or the phase is to end.
    pub(super) fn pause(&self, time: Duration) {
        let until = Instant::now() + time;
        let mut state = self.0.state.lock();
        if state.is_requested {
            return;
        }
        let left = until.saturating_duration_since(Instant::now());
        state = self.0.changed.wait_timeout(state, left);
        drop(state);
    }
}

/// Detaches a load when dropped.
pub(super) struct Attached {
    stop: Stop,
    number: u64,
}

impl Drop for Attached {
    fn drop(&mut self) {
        self.stop.0.state.lock().stoppers.retain(|(number, _)| *number != self.number);
    }
}
