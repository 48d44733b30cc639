//! The addresses of sampled allocations that have not been freed: a table of atomic words, so that
//! a free by any thread finds out whether it ends a sample.
//!
//! A small filter stands in front: nearly all frees are of memory that is no sample, and look no
//! further. It counts, by hash, the addresses in the table; a count that has reached its largest
//! value stays there.
//!
//! Invariants:
//! 1. An address is counted in the filter from before it is in the table until after it has left
//!    it.
//! 2. Who frees an address has it from who allocated it, so it sees what was stored before: no
//!    order is needed beyond that.
//!
//! Threads: any. No lock, no allocation.

use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};

/// One byte each: small enough to stay in the fastest cache.
const FILTER_BITS: u32 = 13;
/// Buckets of one cache line: 131,072 addresses, which is 64 GiB of live memory at the usual one
/// sample in 512 KiB.
const BUCKET_BITS: u32 = 14;
const BUCKET_SLOTS: usize = 8;

pub(super) static LIVE: Live = Live::new();

/// A set of addresses.
pub(super) struct Live {
    filter: [AtomicU8; 1 << FILTER_BITS],
    buckets: [Bucket; 1 << BUCKET_BITS],
}

/// 0 is a free slot.
#[repr(align(64))]
struct Bucket([AtomicUsize; BUCKET_SLOTS]);

impl Live {
    pub(super) const fn new() -> Live {
        Live {
            filter: [const { AtomicU8::new(0) }; 1 << FILTER_BITS],
            buckets: [const { Bucket([const { AtomicUsize::new(0) }; BUCKET_SLOTS]) };
                1 << BUCKET_BITS],
        }
    }

    /// Forgets all.
    pub(super) fn clear(&self) {
        let slots = self.buckets.iter().flat_map(|bucket| &bucket.0);
        // Only what was used is written, so that memory that was not stays untouched.
        for slot in slots.filter(|slot| slot.load(Ordering::Relaxed) != 0) {
            slot.store(0, Ordering::Relaxed);
        }
        self.filter.iter().for_each(|count| count.store(0, Ordering::Relaxed));
    }

    /// Whether an address may be in the set. Mostly right when it says yes, always when it says no.
    #[inline]
    pub(super) fn may_contain(&self, address: usize) -> bool {
        self.count(hash(address)).load(Ordering::Relaxed) != 0
    }

    /// Adds an address; false when there is no room for it.
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

    /// Takes an address out; whether it was there.
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
        // Refused only where the count stays as it is: at its largest value, or where it was set to
        // 0 meanwhile.
        let (Ok(_) | Err(_)) =
            self.count(hash).fetch_update(Ordering::Relaxed, Ordering::Relaxed, change);
    }

    #[inline]
    fn count(&self, hash: u64) -> &AtomicU8 {
        &self.filter[(hash >> (64 - FILTER_BITS)) as usize]
    }

    /// The slots where an address may be: of its bucket, and of the neighbour that takes what that
    /// has no room for.
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
