//! Changes in order, each with its fate in a crash.
//!
//! Invariants:
//! 1. Order is kept. A durable change stays behind an older open one, because the older one must be
//!    applied first if it survives.
//! 2. A fate other than `Pending` is final.
//!
//! Threads: the owner's lock guards a journal.

use std::collections::VecDeque;

/// The fate of a change in a crash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// It may survive; a sync makes it durable.
    Pending,
    /// It may survive; its sync failed, and no later one makes it durable.
    InDoubt,
    /// It survives.
    Durable,
}

pub(super) struct Journal<C> {
    entries: VecDeque<(C, Fate)>,
}

impl<C> Journal<C> {
    pub(super) fn new() -> Journal<C> {
        Journal { entries: VecDeque::new() }
    }

    pub(super) fn push(&mut self, change: C, fate: Fate) {
        self.entries.push_back((change, fate));
    }

    /// Sets the fate of the pending changes that `covers` selects.
    pub(super) fn settle(&mut self, fate: Fate, covers: impl Fn(&C) -> bool) {
        for (change, settled) in &mut self.entries {
            if *settled == Fate::Pending && covers(change) {
                *settled = fate;
            }
        }
    }

    /// Removes the oldest change if it is durable. The caller adds it to the durable state.
    pub(super) fn pop_durable(&mut self) -> Option<C> {
        match self.entries.front() {
            Some((_, Fate::Durable)) => self.entries.pop_front().map(|(change, _)| change),
            _ => None,
        }
    }

    /// Changes with fates, oldest first.
    pub(super) fn entries(
        &self,
    ) -> impl DoubleEndedIterator<Item = &(C, Fate)> + ExactSizeIterator {
        self.entries.iter()
    }
}
