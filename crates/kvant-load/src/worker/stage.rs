//! The state of a phase in a worker.

use super::messages::Quota;
use super::pace::Pace;
use crate::config::Phase;
use std::sync::Arc;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Stage {
    #[default]
    Idle,
    Preparing,
    /// They are open; other threads still open theirs.
    Ready,
    /// The plan has begun, or has a time to begin.
    Running,
}

#[derive(Default)]
pub(super) struct PhaseRun {
    pub(super) stage: Stage,
    pub(super) phase: Phase,
    pub(super) quota: Arc<Quota>,
    pub(super) pace: Pace,
    /// The zero of the plan.
    pub(super) begin_ns: u64,
    pub(super) measured_ns: u64,
    pub(super) end_ns: u64,
    /// The end of the warm-up, of the current second, or of the phase, whichever is next.
    pub(super) boundary_ns: u64,
    pub(super) is_measuring: bool,
    /// When the source stopped, which ends the plan.
    pub(super) stopped_ns: Option<u64>,
    /// Recorded requests that were written, or failed to be written.
    pub(super) tried: u64,
    /// Until when the source has nothing to send; 0 if it has.
    pub(super) paused_until_ns: u64,
    /// When the last pause of the source ended.
    pub(super) unpaused_ns: u64,
    /// How long before a planned time the loop polls instead of sleeping.
    pub(super) spin_ns: u64,
    /// Whether all events from before this phase, such as closed connections, are handled.
    pub(super) has_seen_all: bool,
    /// When the number of free connections last changed during preparation.
    pub(super) progress_ns: u64,
    pub(super) free_count: usize,
}

impl PhaseRun {
    #[inline]
    pub(super) fn is_stopped(&self) -> bool {
        self.stopped_ns.is_some()
    }

    /// How many planned requests one of `thread_count` threads can still send: roughly its share of
    /// the quota.
    pub(super) fn unsent_max(&self, thread_count: usize) -> u64 {
        self.quota.left().div_ceil(thread_count as u64)
    }

    pub(super) fn plan_end_ns(&self) -> u64 {
        self.stopped_ns.unwrap_or(u64::MAX)
    }
}
