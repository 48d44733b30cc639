//! The addresses of sampled allocations that are not freed: a table of atomic words, by which any
//! thread's free finds out whether the allocation was sampled.
//!
//! A small filter precedes the table, since nearly all frees are of allocations that were not
//! sampled. It counts the addresses in the table by hash; a count that reaches its maximum stays
//! there.
//!
//! Invariants:
//! 1. The filter counts an address from before it is in the table until after it has left it.
//! 2. A thread that frees an address received it from the thread that allocated it, and so sees
//!    what that thread stored. No further ordering is needed.
//!
//! Threads: any. No lock, no allocation.

use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};

/// One byte each: small enough for the L1 cache.
const FILTER_BITS: u32 = 13;
/// Buckets of one cache line: 131,072 addresses, or 64 GiB of live memory at the default of one
/// sample in 512 KiB.
const BUCKET_BITS: u32 = 14;
const BUCKET_SLOTS: usize = 8;

pub(super) static LIVE: LiveSet = LiveSet::new();

pub(super) struct LiveSet {
    filter: [AtomicU8; 1 << FILTER_BITS],
    buckets: [Bucket; 1 << BUCKET_BITS],
}

/// 0 is a free slot.
#[repr(align(64))]
struct Bucket([AtomicUsize; BUCKET_SLOTS]);

impl LiveSet {
    pub(super) const fn new() -> LiveSet {
        LiveSet {
            filter: [const { AtomicU8::new(0) }; 1 << FILTER_BITS],
            buckets: [const { Bucket([const { AtomicUsize::new(0) }; BUCKET_SLOTS]) };
                1 << BUCKET_BITS],
        }
    }

    pub(super) fn clear(&self) {
        let slots = self.buckets.iter().flat_map(|bucket| &bucket.0);
        // Only used slots are written, so that unused memory stays uncommitted.
        for slot in slots.filter(|slot| slot.load(Ordering::Relaxed) != 0) {
            slot.store(0, Ordering::Relaxed);
        }
        self.filter.iter().for_each(|count| count.store(0, Ordering::Relaxed));
    }

    /// Whether an address may be in the set: `false` is certain, `true` is probable.
    #[inline]
    pub(super) fn may_contain(&self, address: usize) -> bool {
        self.count(hash(address)).load(Ordering::Relaxed) != 0
    }

    /// Adds an address. Returns false if there is no room.
    pub(super) fn insert(&self, address: usize) -> bool {
        let hash = hash(address);
        self.change_count(hash, |count| count.checked_add(1));
        for slot in self.slots(hash) {
            let added = slot.compare_exchange(0, address, Ordering::Relaxed, Ordering::Relaxed);
            if added.is_ok() {
                return true;
            }
        }
        self.uncount(hash);
        false
    }

    /// Removes an address. Returns whether it was in the set.
    pub(super) fn remove(&self, address: usize) -> bool {
        let hash = hash(address);
        for slot in self.slots(hash) {
            let removed = slot.compare_exchange(address, 0, Ordering::Relaxed, Ordering::Relaxed);
            if removed.is_ok() {
                self.uncount(hash);
                return true;
            }
        }
        false
    }

    fn uncount(&self, hash: u64) {
        self.change_count(hash, |count| match count {
            u8::MAX => None,
            count => count.checked_sub(1),
        });
    }

    fn change_count(&self, hash: u64, change: impl FnMut(u8) -> Option<u8>) {
        // Fails only where the count must not change: at its maximum, or at 0 after `clear`.
        let (Ok(_) | Err(_)) =
            self.count(hash).fetch_update(Ordering::Relaxed, Ordering::Relaxed, change);
    }

    #[inline]
    fn count(&self, hash: u64) -> &AtomicU8 {
        &self.filter[(hash >> (64 - FILTER_BITS)) as usize]
    }

    /// The slots where an address may be: those of its bucket and of the neighbour that takes the
    /// overflow.
    fn slots(&self, hash: u64) -> impl Iterator<Item = &AtomicUsize> {
        let bucket = (hash >> (64 - FILTER_BITS - BUCKET_BITS)) as usize & ((1 << BUCKET_BITS) - 1);
        self.buckets[bucket].0.iter().chain(&self.buckets[bucket ^ 1].0)
    }
}

#[inline]
fn hash(address: usize) -> u64 {
    (address as u64 >> 4).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

#[cfg(test)]
mod tests;
