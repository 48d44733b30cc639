//! A hash index from user keys to the newest node of each, so that a point read follows no search
//! path.
//!
//! A search in a list of a million entries touches twenty nodes, most of them cache misses. The
//! index touches one slot and one node. A slot holds the node's address in its low 48 bits and bits
//! of the key's hash above, which tell most other keys apart without touching their nodes.
//!
//! Invariants:
//! 1. a slot that is taken stays taken, by nodes of one user key whose sequence numbers only grow;
//! 2. a user key has at most one slot, within [`PROBE_SLOTS_MAX`] of the one that its hash names,
//!    and no slot between them is free: a free slot proves that no node of the key was indexed;
//! 3. a key for which there was no slot sets `overflowed` first: only then does a miss in full
//!    slots require a search.
//!
//! Threads: one publishes, any find.

use super::arena::Slots;
use super::chunks::ChunkPool;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Slots tried for one key: four cache lines.
const PROBE_SLOTS_MAX: usize = 32;
/// Holds the user-space addresses of common processors; nodes at higher ones are not indexed.
const ADDRESS_BITS: u32 = 48;

pub(super) struct HashIndex {
    slots: Slots,
    overflowed: AtomicBool,
}

pub(super) enum Known {
    Node(u64),
    /// It has no node.
    Absent,
    /// Nothing: search for it.
    Nothing,
}

/// Where a key is indexed, or will be.
pub(super) struct Place<'a> {
    slot: Option<&'a AtomicU64>,
    /// The address of its newest node.
    pub(super) newest: Option<u64>,
}

impl HashIndex {
    /// An index of at least `slot_count` slots. Their memory comes from `pool`.
    pub(super) fn new(slot_count: usize, pool: &Arc<ChunkPool>) -> HashIndex {
        let slots = Slots::new(slot_count.max(PROBE_SLOTS_MAX).next_power_of_two(), pool);
        HashIndex { slots, overflowed: AtomicBool::new(false) }
    }

    pub(super) fn memory_bytes(&self) -> u64 {
        size_of_val(&*self.slots) as u64
    }

    /// Looks up a key. `is_key` tells whether the node at an address has it.
    #[inline]
    pub(super) fn find(&self, hash: u64, mut is_key: impl FnMut(u64) -> bool) -> Known {
        for slot in self.probe(hash) {
            let taken = slot.load(Ordering::Acquire);
            if taken == 0 {
                return Known::Absent;
            }
            if tag_of(taken) == tag_of(hash) && is_key(address_of(taken)) {
                return Known::Node(address_of(taken));
            }
        }
        if self.overflowed.load(Ordering::Acquire) { Known::Nothing } else { Known::Absent }
    }

    /// The place of a key whose next version is about to be made. `is_key` tells whether the node
    /// at an address has it. Only one thread may place and publish.
    #[inline]
    pub(super) fn place(&self, hash: u64, mut is_key: impl FnMut(u64) -> bool) -> Place<'_> {
        for slot in self.probe(hash) {
            let taken = slot.load(Ordering::Relaxed);
            if taken == 0 {
                return Place { slot: Some(slot), newest: None };
            }
            if tag_of(taken) == tag_of(hash) && is_key(address_of(taken)) {
                return Place { slot: Some(slot), newest: Some(address_of(taken)) };
            }
        }
        Place { slot: None, newest: None }
    }

    /// Makes the node at `address` the newest of the key at `place`.
    #[inline]
    pub(super) fn publish(&self, place: &Place<'_>, hash: u64, address: u64) {
        match place.slot {
            // Release: a reader that finds the address sees all of the node.
            Some(slot) if address >> ADDRESS_BITS == 0 => {
                slot.store(tag_of(hash) << ADDRESS_BITS | address, Ordering::Release);
            }
            _ => self.overflowed.store(true, Ordering::Release),
        }
    }

    /// The first slot to try, for a prefetch.
    #[inline]
    pub(super) fn first_slot(&self, hash: u64) -> *const AtomicU64 {
        &self.slots[hash as usize & (self.slots.len() - 1)]
    }

    /// The slots in which a key may be, in the order in which they are tried.
    #[inline]
    fn probe(&self, hash: u64) -> impl Iterator<Item = &AtomicU64> {
        let mask = self.slots.len() - 1;
        (0..PROBE_SLOTS_MAX).map(move |step| &self.slots[(hash as usize).wrapping_add(step) & mask])
    }
}

/// The bits above an address: those bits of a hash that did not choose the slot.
#[inline]
fn tag_of(hash_or_entry: u64) -> u64 {
    hash_or_entry >> ADDRESS_BITS
}

#[inline]
fn address_of(entry: u64) -> u64 {
    entry & ((1 << ADDRESS_BITS) - 1)
}

#[cfg(test)]
mod tests;
