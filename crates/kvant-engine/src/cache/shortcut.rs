//! Shortcuts: the cached blocks of a table by their number, for readers without a lock or a lookup.
//!
//! A shortcut holds a reference to a block, or none. A reader *pins* the block by counting itself
//! in the same word that has the block's address, and needs no reference of its own. The thread
//! that empties the shortcut turns the pins that it finds into references; a reader with such a pin
//! drops a reference instead.
//!
//! The word: the address in 48 bits, uses since the cache last asked in 2, pins in 14. Beside it is
//! an address for the processor to fetch ahead.
//!
//! Invariants:
//! 1. A word with an address owns one reference to that block. A word without one is 0.
//! 2. For each [`Pinned`] there is a pin in the word, while it has the address, or a reference to
//!    the block that nothing else owns.
//!
//! Threads: any. The cache sets and empties shortcuts under the lock of the block's shard, so that
//! a shortcut has a block only while the cache has it. Nothing here depends on that.

use crate::prefetch::prefetch;
use std::hint::spin_loop;
use std::marker::PhantomData;
use std::mem;
use std::ops::Deref;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

/// Holds the user-space addresses of common processors; blocks at higher ones have no shortcut.
const ADDRESS_BITS: u32 = 48;
const ADDRESS: u64 = (1 << ADDRESS_BITS) - 1;
const USE: u64 = 1 << ADDRESS_BITS;
const USES: u64 = 3 * USE;
const PIN: u64 = 4 * USE;
const PINS_MAX: u64 = u64::MAX / PIN;

pub(crate) struct Shortcut<V> {
    word: AtomicU64,
    /// Where a reader of the block begins: fetched while the block's own fields are waited for.
    begin: AtomicPtr<u8>,
    owns: PhantomData<Arc<V>>,
}

/// A block that its shortcut keeps alive.
pub(crate) struct Pinned<'a, V> {
    shortcut: &'a Shortcut<V>,
    address: u64,
}

/// One of the shortcuts of a table.
pub(crate) struct ShortcutOf<V> {
    pub(crate) all: Arc<[Shortcut<V>]>,
    pub(crate) index: usize,
}

impl<V> Deref for ShortcutOf<V> {
    type Target = Shortcut<V>;

    fn deref(&self) -> &Shortcut<V> {
        &self.all[self.index]
    }
}

impl<V> Default for Shortcut<V> {
    fn default() -> Shortcut<V> {
        Shortcut {
            word: AtomicU64::new(0),
            begin: AtomicPtr::new(ptr::null_mut()),
            owns: PhantomData,
        }
    }
}

impl<V> Shortcut<V> {
    /// Says where readers of the block begin. Nothing depends on it: the memory may be gone.
    pub(crate) fn begin_at(&self, address: *const u8) {
        self.begin.store(address.cast_mut(), Ordering::Relaxed);
    }

    /// The block, if there is one.
    #[inline]
    pub(crate) fn pin(&self) -> Option<Pinned<'_, V>> {
        prefetch(self.begin.load(Ordering::Relaxed));
        let mut word = self.word.load(Ordering::Relaxed);
        while word & ADDRESS != 0 && word / PIN < PINS_MAX {
            // Acquire: this thread sees the block as it was when the shortcut was set.
            let pinned = self.word.compare_exchange_weak(
                word,
                word + PIN,
                Ordering::Acquire,
                Ordering::Relaxed,
            );
            match pinned {
                Ok(_) => return Some(Pinned { shortcut: self, address: word & ADDRESS }),
                Err(now) => word = now,
            }
        }
        None
    }

    /// Makes this the shortcut to `block`, unless it has one already.
    pub(super) fn set(&self, block: Arc<V>) {
        let address = Arc::into_raw(block).expose_provenance() as u64;
        let is_set = address <= ADDRESS
            && self.word.compare_exchange(0, address, Ordering::Release, Ordering::Relaxed).is_ok();
        if !is_set {
            // SAFETY: the reference is the one that was given up above.
            unsafe { Arc::decrement_strong_count(block_at::<V>(address)) };
        }
    }

    /// Empties the shortcut and returns its block.
    pub(super) fn take(&self) -> Option<Arc<V>> {
        // Pinned meanwhile, so that the block lives even if another thread takes it.
        let pinned = loop {
            match self.pin() {
                Some(pinned) => break pinned,
                None if self.word.load(Ordering::Relaxed) & ADDRESS == 0 => return None,
                None => spin_loop(),
            }
        };
        let block = block_at::<V>(pinned.address);
        let mut word = self.word.load(Ordering::Relaxed);
        while word & ADDRESS == pinned.address && word / PIN > 0 {
            let others = word / PIN - 1;
            // SAFETY: the pin of this call keeps the block alive. A reference for each other pin
            // comes first, so that it is there when their owners find the address gone.
            (0..others).for_each(|_| unsafe { Arc::increment_strong_count(block) });
            // Release: these owners see the references. Acquire: pins that are gone were given back
            // after their last use of the block.
            match self.word.compare_exchange(word, 0, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => {
                    mem::forget(pinned);
                    // SAFETY: the reference that the word owned.
                    return Some(unsafe { Arc::from_raw(block) });
                }
                Err(now) => {
                    // SAFETY: the references of above, which no one has seen.
                    (0..others).for_each(|_| unsafe { Arc::decrement_strong_count(block) });
                    word = now;
                }
            }
        }
        None
    }

    /// How often the block was pinned since the last call: at most 3.
    pub(super) fn take_uses(&self) -> u8 {
        ((self.word.fetch_and(!USES, Ordering::Relaxed) & USES) / USE) as u8
    }
}

impl<V> Drop for Shortcut<V> {
    fn drop(&mut self) {
        drop(self.take());
    }
}

impl<V> Pinned<'_, V> {
    /// A reference, to keep the block for longer.
    #[inline]
    pub(crate) fn to_arc(&self) -> Arc<V> {
        let block = block_at::<V>(self.address);
        // SAFETY: the address came from `Arc::into_raw`, and the pin keeps the block alive.
        unsafe {
            Arc::increment_strong_count(block);
            Arc::from_raw(block)
        }
    }
}

impl<V> Deref for Pinned<'_, V> {
    type Target = V;

    #[inline]
    fn deref(&self) -> &V {
        // SAFETY: as in `to_arc`; nothing changes a block that is shared.
        unsafe { &*block_at::<V>(self.address) }
    }
}

impl<V> Drop for Pinned<'_, V> {
    #[inline]
    fn drop(&mut self) {
        let shared = &self.shortcut.word;
        let mut word = shared.load(Ordering::Acquire);
        while word & ADDRESS == self.address && word / PIN > 0 {
            let used = if word & USES == USES { word } else { word + USE };
            // Release: the uses of the block come before. Acquire: `take` has made the reference
            // that is dropped below.
            match shared.compare_exchange_weak(
                word,
                used - PIN,
                Ordering::Release,
                Ordering::Acquire,
            ) {
                Ok(_) => return,
                Err(now) => word = now,
            }
        }
        // SAFETY: invariant 2: the pin has become a reference.
        unsafe { Arc::decrement_strong_count(block_at::<V>(self.address)) };
    }
}

#[inline]
fn block_at<V>(address: u64) -> *const V {
    ptr::with_exposed_provenance(address as usize)
}

#[cfg(test)]
mod tests;
