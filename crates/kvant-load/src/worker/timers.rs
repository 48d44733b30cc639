//! What connections wait for: at most one moment each.
//!
//! Invariant: an entry counts only as long as its connection still waits for that very moment, so
//! that cancelling is forgetting the moment.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Moments, soonest first.
#[derive(Debug)]
pub(super) struct Timers {
    heap: BinaryHeap<Reverse<(u64, u32)>>,
    /// By connection: the moment it waits for.
    waiting_ns: Vec<Option<u64>>,
}

impl Timers {
    /// For `count` connections.
    pub(super) fn new(count: usize) -> Timers {
        Timers { heap: BinaryHeap::with_capacity(count), waiting_ns: vec![None; count] }
    }

    /// Lets a connection wait for `at_ns`, and for nothing else.
    pub(super) fn set(&mut self, index: usize, at_ns: u64) {
        self.waiting_ns[index] = Some(at_ns);
        self.heap.push(Reverse((at_ns, index as u32)));
    }

    /// Lets a connection wait for nothing.
    pub(super) fn cancel(&mut self, index: usize) {
        self.waiting_ns[index] = None;
    }

    /// The soonest moment.
    pub(super) fn next_ns(&mut self) -> Option<u64> {
        while let Some(&Reverse((at_ns, index))) = self.heap.peek() {
            if self.waiting_ns[index as usize] == Some(at_ns) {
                return Some(at_ns);
            }
            self.heap.pop();
        }
        None
    }

    /// A connection whose moment has come; it does not wait any more.
    pub(super) fn pop_due(&mut self, now_ns: u64) -> Option<usize> {
        if self.next_ns()? > now_ns {
            return None;
        }
        let Reverse((_, index)) = self.heap.pop()?;
        self.waiting_ns[index as usize] = None;
        Some(index as usize)
    }
}

#[cfg(test)]
mod tests;
