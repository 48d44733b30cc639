//! The one memory budget (`--memory`) and who uses how much of it.
//!
//! Consumers report what they hold; the block cache, the only consumer that can give memory back at
//! once, sizes itself to what the others leave. Request bodies and iterators reserve before they
//! allocate and are refused when nothing is left.
//!
//! Threads: all counters are atomic; figures of different consumers may be a few operations apart.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Who holds memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Consumer {
    /// Active and immutable memtables.
    Memtables,
    /// Decompressed data blocks, and index and filter blocks that are not pinned.
    BlockCache,
    /// Index and filter blocks held by open tables.
    TableMetadata,
    /// Open iterators: their blocks outside the cache.
    Iterators,
    /// Blocks being read and written by flushes and compactions.
    Compaction,
    /// Connection buffers.
    Connections,
    /// Request bodies, values and range buffers in flight.
    Requests,
}

/// All consumers, in the order in which they are reported.
pub const CONSUMERS: [Consumer; 7] = [
    Consumer::Memtables,
    Consumer::BlockCache,
    Consumer::TableMetadata,
    Consumer::Iterators,
    Consumer::Compaction,
    Consumer::Connections,
    Consumer::Requests,
];

impl Consumer {
    /// The name used in `/v0/stats` and metrics.
    pub fn name(self) -> &'static str {
        match self {
            Consumer::Memtables => "memtables",
            Consumer::BlockCache => "block_cache",
            Consumer::TableMetadata => "table_metadata",
            Consumer::Iterators => "iterators",
            Consumer::Compaction => "compaction",
            Consumer::Connections => "connections",
            Consumer::Requests => "requests",
        }
    }
}

/// The budget: a limit and a counter a consumer.
#[derive(Debug)]
pub struct MemoryBudget {
    limit_bytes: u64,
    used_bytes: [AtomicU64; CONSUMERS.len()],
}

impl MemoryBudget {
    /// A budget of `limit_bytes`.
    pub fn new(limit_bytes: u64) -> Arc<MemoryBudget> {
        Arc::new(MemoryBudget { limit_bytes, used_bytes: Default::default() })
    }

    /// The limit.
    pub fn limit_bytes(&self) -> u64 {
        self.limit_bytes
    }

    /// What `consumer` holds now.
    pub fn used_bytes(&self, consumer: Consumer) -> u64 {
        self.used_bytes[consumer as usize].load(Ordering::Relaxed)
    }

    /// What all consumers hold now.
    pub fn used_bytes_total(&self) -> u64 {
        CONSUMERS.iter().map(|&consumer| self.used_bytes(consumer)).sum()
    }

    /// Counts `bytes` more for `consumer`, whatever the limit says.
    pub fn add(&self, consumer: Consumer, bytes: u64) {
        self.used_bytes[consumer as usize].fetch_add(bytes, Ordering::Relaxed);
    }

    /// Counts `bytes` less for `consumer`.
    pub fn subtract(&self, consumer: Consumer, bytes: u64) {
        let before = self.used_bytes[consumer as usize].fetch_sub(bytes, Ordering::Relaxed);
        debug_assert!(before >= bytes, "{} gave back {bytes} of {before} bytes", consumer.name());
    }

    /// Counts `bytes` for `consumer` until the reservation is dropped, whatever the limit says.
    pub fn reserve(self: &Arc<Self>, consumer: Consumer, bytes: u64) -> Reservation {
        self.add(consumer, bytes);
        Reservation { budget: Arc::clone(self), consumer, bytes }
    }

    /// As [`MemoryBudget::reserve`], but only while `consumer` stays within `share_bytes` with it.
    pub fn try_reserve(
        self: &Arc<Self>,
        consumer: Consumer,
        bytes: u64,
        share_bytes: u64,
    ) -> Option<Reservation> {
        let counter = &self.used_bytes[consumer as usize];
        counter
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
                used.checked_add(bytes).filter(|&sum| sum <= share_bytes)
            })
            .ok()?;
        Some(Reservation { budget: Arc::clone(self), consumer, bytes })
    }
}

/// Bytes counted for a consumer until dropped.
#[derive(Debug)]
pub struct Reservation {
    budget: Arc<MemoryBudget>,
    consumer: Consumer,
    bytes: u64,
}

impl Reservation {
    /// What is reserved.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Changes what is reserved to `bytes`, whatever the limit says.
    pub fn resize(&mut self, bytes: u64) {
        if bytes > self.bytes {
            self.budget.add(self.consumer, bytes - self.bytes);
        } else {
            self.budget.subtract(self.consumer, self.bytes - bytes);
        }
        self.bytes = bytes;
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.budget.subtract(self.consumer, self.bytes);
    }
}

#[cfg(test)]
mod tests;
