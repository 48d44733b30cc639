//! The memory budget (`--memory`) and its use by consumer.
//!
//! Consumers report the memory they hold. The block cache is the only consumer that can release
//! memory at once, so it takes what the others leave. Request bodies and iterators reserve memory
//! before they allocate it and are rejected when none is left.
//!
//! Threads: all counters are atomic, but counters of different consumers are not read as one
//! snapshot.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

crate::named_enum! {
    /// A part of the process that holds memory, in reporting order. Names are those of `/v0/stats`
    /// and of metrics.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Consumer {
        /// Active and immutable memtables.
        Memtables = "memtables",
        /// Decompressed data blocks, and unpinned index and filter blocks.
        BlockCache = "block_cache",
        /// Index and filter blocks pinned by open tables.
        TableMetadata = "table_metadata",
        /// Blocks of open iterators outside the cache.
        Iterators = "iterators",
        /// Read and write buffers of flushes and compactions.
        Compaction = "compaction",
        /// Connection buffers.
        Connections = "connections",
        /// Request bodies, values and range buffers in flight.
        Requests = "requests",
        /// The server's last minutes (`/v0/history`).
        History = "history",
        /// What the process holds beside the others and does not return: gaps of the allocator,
        /// stacks. Counted once per second, by a task of the server; 0 without it.
        Process = "process",
    }
}

/// A limit and one counter per consumer.
#[derive(Debug)]
pub struct MemoryBudget {
    limit_bytes: u64,
    used_bytes: [AtomicU64; Consumer::ALL.len()],
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

    /// Bytes that `consumer` holds.
    pub fn used_bytes(&self, consumer: Consumer) -> u64 {
        self.used_bytes[consumer as usize].load(Ordering::Relaxed)
    }

    /// Bytes that all consumers hold.
    pub fn used_bytes_total(&self) -> u64 {
        Consumer::ALL.iter().map(|&consumer| self.used_bytes(consumer)).sum()
    }

    /// Adds `bytes` to `consumer`, even beyond the limit.
    pub fn add(&self, consumer: Consumer, bytes: u64) {
        self.used_bytes[consumer as usize].fetch_add(bytes, Ordering::Relaxed);
    }

    /// Subtracts `bytes` from `consumer`.
    pub fn subtract(&self, consumer: Consumer, bytes: u64) {
        let before = self.used_bytes[consumer as usize].fetch_sub(bytes, Ordering::Relaxed);
        debug_assert!(before >= bytes, "{} released {bytes} of {before} bytes", consumer.name());
    }

    /// Adds `bytes` to `consumer` until the reservation is dropped, even beyond the limit.
    pub fn reserve(self: &Arc<Self>, consumer: Consumer, bytes: u64) -> Reservation {
        self.add(consumer, bytes);
        Reservation { budget: Arc::clone(self), consumer, bytes }
    }

    /// As [`MemoryBudget::reserve`], but `None` if `consumer` would then exceed `share_bytes`.
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

/// Bytes held by a consumer, released on drop.
#[derive(Debug)]
pub struct Reservation {
    budget: Arc<MemoryBudget>,
    consumer: Consumer,
    bytes: u64,
}

impl Reservation {
    /// Reserved bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Changes the reservation to `bytes`, even beyond the limit.
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
