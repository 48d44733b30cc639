//! A skip list (Pugh, CACM 1990) without removal: the key order of a memtable.
//!
//! As in LevelDB's `skiplist.h`, a node is linked by one release store per level, so that readers
//! need no lock.
//!
//! Invariants:
//! 1. everything in a node but its links is written before the node is published, and never again;
//! 2. a node is linked from the lowest level up, by release stores: a reader that finds it
//!    (acquire) sees all of it;
//! 3. a node that is found in level `i` has a height above `i`, and is in all levels below `i`;
//! 4. each level is sorted by internal key, and nodes are never unlinked;
//! 5. nodes live in the arena, which lives as long as the list.
//!
//! Threads: one at a time links ([`super::order`]); any search.

use super::node::{NodeHeader, NodePtr, key_of, link_of, next_of};
use crate::format::{InternalKeyRef, key_prefix};
use crate::prefetch::prefetch;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicUsize, Ordering};

/// One node in two goes a level up, so that 20 levels suffice for 2^20 = 1 M entries, and for many
/// times as many. (One in four would save 7 bytes per entry, but a search would follow half as many
/// nodes more, each a cache miss.)
pub(super) const HEIGHT_MAX: usize = 20;

/// A key that is searched for, with the prefix that decides most comparisons.
#[derive(Clone, Copy)]
pub(super) struct Target<'a> {
    key: InternalKeyRef<'a>,
    prefix: u64,
}

impl<'a> From<InternalKeyRef<'a>> for Target<'a> {
    fn from(key: InternalKeyRef<'a>) -> Target<'a> {
        Target { key, prefix: key_prefix(key.user_key) }
    }
}

pub(super) struct SkipList {
    /// Precedes every key; has all levels.
    pub(super) head: NodePtr,
    /// Levels in use. A reader that sees an older value starts lower and finds the same.
    height: AtomicUsize,
}

// SAFETY: the raw pointers lead into the arena, which is `Send` and `Sync`; nodes are shared under
// invariants 1 and 2.
unsafe impl Send for SkipList {}
// SAFETY: as above.
unsafe impl Sync for SkipList {}

impl SkipList {
    pub(super) fn new(head: NodePtr) -> SkipList {
        SkipList { head, height: AtomicUsize::new(1) }
    }

    pub(super) fn first(&self) -> Option<NodePtr> {
        // SAFETY: the head has all levels.
        NonNull::new(unsafe { next_of(self.head, 0) })
    }

    /// The first node at or after `target`.
    pub(super) fn seek(&self, target: InternalKeyRef<'_>) -> Option<NodePtr> {
        let target = Target::from(target);
        let (mut before, mut after) = (self.head, ptr::null_mut());
        for level in (0..self.height.load(Ordering::Relaxed)).rev() {
            // SAFETY: `before` is the head, or was found in this level or one above.
            (before, after) = unsafe { find(before, after, level, target) };
        }
        NonNull::new(after)
    }

    /// Moves the positions `before` on to the last nodes before `target`. The search goes up as far
    /// as it has to, and down again. On entry they are the last nodes before some smaller key.
    pub(super) fn advance(&self, before: &mut [NodePtr; HEIGHT_MAX], target: Target<'_>) {
        let levels = self.levels_for(target.key);
        let moving = (0..levels).take_while(|&level| precedes(before[level], level, target));
        let mut moved: Option<NodePtr> = None;
        let mut after = ptr::null_mut();
        for level in (0..moving.count()).rev() {
            // A node that was found further up is after the position here.
            let start = moved.unwrap_or(before[level]);
            // SAFETY: `start` is the head, or was found in this level or one above.
            let (found, next) = unsafe { find(start, after, level, target) };
            if found != before[level] {
                moved = Some(found);
            }
            (before[level], after) = (found, next);
        }
    }

    /// Links `node` after `before`, which is its place on all levels, and becomes that after it.
    pub(super) fn link(&self, node: NodePtr, before: &mut [NodePtr; HEIGHT_MAX]) {
        // SAFETY: the node was published, and is not linked yet.
        let key = unsafe { key_of(node) };
        let height = height_for(key);
        for (level, before) in before[..height].iter_mut().enumerate() {
            // SAFETY: `node` has `height` levels; `before` was found in this level, or is the head.
            let (own_link, link) = unsafe { (link_of(node, level), link_of(*before, level)) };
            let after = link.load(Ordering::Relaxed);
            debug_assert!(
                // SAFETY: a node that is found in a level is linked.
                NonNull::new(after).is_none_or(|after| unsafe { key_of(after) } > key),
                "{key:?} is inserted twice, or at the wrong place"
            );
            own_link.store(after, Ordering::Relaxed);
            link.store(node.as_ptr(), Ordering::Release);
            *before = node;
        }
        if height > self.height.load(Ordering::Relaxed) {
            self.height.store(height, Ordering::Relaxed);
        }
    }

    /// The levels to search before `key` is linked.
    fn levels_for(&self, key: InternalKeyRef<'_>) -> usize {
        self.height.load(Ordering::Relaxed).max(height_for(key))
    }
}

/// The search for the place of a node on all levels, step by step.
pub(super) struct Search<'k> {
    pub(super) target: Target<'k>,
    /// Filled in from the highest level down.
    pub(super) before: [NodePtr; HEIGHT_MAX],
    position: NodePtr,
    /// A node known not to precede the target, or null.
    bound: *mut NodeHeader,
    levels: usize,
}

impl<'k> Search<'k> {
    pub(super) fn new(list: &SkipList, target: Target<'k>) -> Search<'k> {
        Search {
            target,
            before: [list.head; HEIGHT_MAX],
            position: list.head,
            bound: ptr::null_mut(),
            levels: list.levels_for(target.key),
        }
    }

    /// Goes one node along or one level down, and prefetches the next node. False when the place is
    /// found.
    #[inline]
    pub(super) fn step(&mut self) -> bool {
        let Some(level) = self.levels.checked_sub(1) else {
            return false;
        };
        // SAFETY: `position` is the head, or was found in this level or one above.
        let after = unsafe { next_of(self.position, level) };
        match NonNull::new(after) {
            // SAFETY: a node that is found in a level is linked in it.
            Some(node) if after != self.bound && unsafe { is_before(node, self.target) } => {
                self.position = node;
            }
            _ => {
                self.bound = after;
                self.before[level] = self.position;
                self.levels = level;
            }
        }
        let Some(level) = self.levels.checked_sub(1) else {
            return false;
        };
        // SAFETY: as above.
        prefetch(unsafe { next_of(self.position, level) });
        true
    }
}

/// Whether the node after `before` in `level` precedes `target`.
pub(super) fn precedes(before: NodePtr, level: usize, target: Target<'_>) -> bool {
    // SAFETY: the caller's `before` is the head, or was found in this level of a list that is
    // alive; what follows it there is linked.
    unsafe { NonNull::new(next_of(before, level)).is_some_and(|after| is_before(after, target)) }
}

/// The height of the node for `key`: geometric, from a hash of its sequence number, which no other
/// entry has. It makes the same list from the same entries.
#[inline]
pub(super) fn height_for(key: InternalKeyRef<'_>) -> usize {
    // The finalizer of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014).
    let mut z = key.trailer ^ 0x9e37_79b9_7f4a_7c15;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^= z >> 31;
    (1 + z.trailing_zeros() as usize).min(HEIGHT_MAX)
}

/// Goes along `level` from `before`, which precedes `target`, and returns the last node before
/// `target` and the one after it. `bound` is a node known not to precede `target`, or null.
///
/// # Safety
/// `before` is linked in `level`, or is the head.
#[inline]
pub(super) unsafe fn find(
    mut before: NodePtr,
    bound: *mut NodeHeader,
    level: usize,
    target: Target<'_>,
) -> (NodePtr, *mut NodeHeader) {
    loop {
        // SAFETY: the caller's promise, kept by each step: a node that is found in a level is
        // linked in it.
        let after = unsafe { next_of(before, level) };
        if level > 0 {
            // The search continues there when `after` is too far. The two cache misses overlap.
            // SAFETY: a node that has a level has all below it.
            prefetch(unsafe { next_of(before, level - 1) });
        }
        match NonNull::new(after) {
            // SAFETY: as above.
            Some(node) if after != bound && unsafe { is_before(node, target) } => before = node,
            _ => return (before, after),
        }
    }
}

/// Whether a node precedes `target`.
///
/// # Safety
/// `node` is a linked node, not the head, of a list that is alive.
#[inline]
unsafe fn is_before(node: NodePtr, target: Target<'_>) -> bool {
    // SAFETY: the caller's promise.
    let node_key = unsafe { key_of(node) };
    // The first eight bytes decide most comparisons, without a call.
    match key_prefix(node_key.user_key).cmp(&target.prefix) {
        std::cmp::Ordering::Equal => node_key < target.key,
        order => order.is_lt(),
    }
}
