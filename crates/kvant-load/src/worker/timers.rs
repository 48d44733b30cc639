//! One timer per connection.
//!
//! Invariant: an entry of the heap counts only while it equals the connection's deadline, so that
//! cancelling means forgetting the deadline.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

#[derive(Debug)]
pub(super) struct Timers {
    heap: BinaryHeap<Reverse<(u64, u32)>>,
    deadlines_ns: Vec<Option<u64>>,
}

impl Timers {
    pub(super) fn new(connection_count: usize) -> Timers {
        let heap = BinaryHeap::with_capacity(connection_count);
        Timers { heap, deadlines_ns: vec![None; connection_count] }
    }

    /// Sets a connection's timer, which replaces the previous one.
    pub(super) fn set(&mut self, index: usize, at_ns: u64) {
        self.deadlines_ns[index] = Some(at_ns);
        self.heap.push(Reverse((at_ns, index as u32)));
    }

    pub(super) fn cancel(&mut self, index: usize) {
        self.deadlines_ns[index] = None;
    }

    pub(super) fn next_ns(&mut self) -> Option<u64> {
        while let Some(&Reverse((at_ns, index))) = self.heap.peek() {
            if self.deadlines_ns[index as usize] == Some(at_ns) {
                return Some(at_ns);
            }
            self.heap.pop();
        }
        None
    }

    /// Removes and returns a connection whose deadline has passed.
    pub(super) fn pop_due(&mut self, now_ns: u64) -> Option<usize> {
        if self.next_ns()? > now_ns {
            return None;
        }
        let Reverse((_, index)) = self.heap.pop()?;
        self.deadlines_ns[index as usize] = None;
        Some(index as usize)
    }
}

#[cfg(test)]
mod tests;
