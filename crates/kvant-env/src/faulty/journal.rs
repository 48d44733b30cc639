//! Changes in the order in which they were made, each with what a crash would do to it.
//!
//! Invariants:
//! 1. Order is kept. A durable change stays behind an older one whose fate is open, because what
//!    the older one would do, if it survives, lies under it.
//! 2. A fate is final once it is not `Pending`.
//!
//! Threads: none; the owner's lock guards a journal.

use std::collections::VecDeque;

/// What a crash does to a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// It may or may not survive; a sync makes it durable.
    Pending,
    /// It may or may not survive; the sync that should have decided failed, and no later one will.
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

    /// Decides the pending changes that `covers` says yes to.
    pub(super) fn settle(&mut self, fate: Fate, covers: impl Fn(&C) -> bool) {
        for (change, settled) in &mut self.entries {
            if *settled == Fate::Pending && covers(change) {
                *settled = fate;
            }
        }
    }

    /// Takes the oldest change out if it is durable: it belongs to the durable state from now on.
    pub(super) fn pop_durable(&mut self) -> Option<C> {
        match self.entries.front() {
            Some((_, Fate::Durable)) => self.entries.pop_front().map(|(change, _)| change),
            _ => None,
        }
    }

    /// Changes with their fates, oldest first.
    pub(super) fn entries(
        &self,
    ) -> impl DoubleEndedIterator<Item = &(C, Fate)> + ExactSizeIterator {
        self.entries.iter()
    }
}
