//! Memory of requests in flight: a share of the memory budget.
//!
//! Bodies that fit into a connection's read buffer are counted with the connection. Longer bodies,
//! values longer than [`SMALL_BYTES`] that are sent, and ranges reserve their memory here first. A
//! request that finds none waits, unread, and is refused when it waited too long. Buffers of
//! connections have a share of their own and do not wait.

use kvant_base::{Consumer, MemoryBudget, Reservation};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;

/// Bodies and values up to this length need no reservation: hyper's first buffers hold as much.
pub(crate) const SMALL_BYTES: u64 = 8 << 10;

/// The share of the budget that requests may hold.
pub(crate) struct RequestMemory {
    budget: Arc<MemoryBudget>,
    share_bytes: u64,
    released: Arc<Notify>,
}

/// Memory held for one request. Its release wakes waiting requests.
pub(crate) struct Held {
    reservation: Reservation,
    released: Arc<Notify>,
}

impl Drop for Held {
    fn drop(&mut self) {
        self.resize(0);
    }
}

impl RequestMemory {
    /// A quarter of `budget`, but at least room for one of the longest values.
    pub(crate) fn new(budget: Arc<MemoryBudget>, value_bytes_max: u64) -> RequestMemory {
        let share_bytes = (budget.limit_bytes() / 4).max(value_bytes_max + (1 << 20));
        RequestMemory { budget, share_bytes, released: Arc::default() }
    }

    pub(crate) fn budget(&self) -> &Arc<MemoryBudget> {
        &self.budget
    }

    /// The most that requests may hold together.
    pub(crate) fn share_bytes(&self) -> u64 {
        self.share_bytes
    }

    /// Reserves `bytes` for buffers of a connection, if all connections together stay within half
    /// of the budget.
    pub(crate) fn try_reserve_buffers(&self, bytes: u64) -> Option<Reservation> {
        self.budget.try_reserve(Consumer::Connections, bytes, self.budget.limit_bytes() / 2)
    }

    /// As [`RequestMemory::try_reserve_buffers`], within a quarter: for optional buffers.
    pub(crate) fn try_reserve_spare_buffers(&self, bytes: u64) -> Option<Reservation> {
        self.budget.try_reserve(Consumer::Connections, bytes, self.budget.limit_bytes() / 4)
    }

    /// Reserves `bytes`, if they fit now.
    pub(crate) fn try_hold(&self, bytes: u64) -> Option<Held> {
        let reservation = self.budget.try_reserve(Consumer::Requests, bytes, self.share_bytes)?;
        Some(Held { reservation, released: Arc::clone(&self.released) })
    }

    /// Reserves `bytes`, waiting at most `wait_max` for others to release them.
    pub(crate) async fn hold(&self, bytes: u64, wait_max: Duration) -> Option<Held> {
        if let Some(held) = self.try_hold(bytes) {
            return Some(held);
        }
        let until = tokio::time::Instant::now() + wait_max;
        loop {
            // Created before the attempt, so that a release in between wakes it.
            let released = self.released.notified();
            if let Some(held) = self.try_hold(bytes) {
                return Some(held);
            }
            if tokio::time::timeout_at(until, released).await.is_err() {
                return self.try_hold(bytes);
            }
        }
    }

    /// Grows `held` to at least `bytes`, as [`RequestMemory::hold`] does. False: it is unchanged.
    pub(crate) async fn grow(&self, held: &mut Held, bytes: u64, wait_max: Duration) -> bool {
        let missing_bytes = bytes.saturating_sub(held.reservation.bytes());
        let Some(more) = self.hold(missing_bytes, wait_max).await else {
            return false;
        };
        // Briefly counted twice, never short.
        held.reservation.resize(bytes.max(held.reservation.bytes()));
        drop(more);
        true
    }
}

impl Held {
    /// Holds `bytes` instead, regardless of the limit: for values longer than expected.
    pub(crate) fn resize(&mut self, bytes: u64) {
        let shrinks = bytes < self.reservation.bytes();
        self.reservation.resize(bytes);
        if shrinks {
            self.released.notify_waiters();
        }
    }
}
