//! Puts the entries of a memtable in key order.
//!
//! To sort all entries of a memtable at once costs a fraction of as many searches in a growing list
//! (`docs/decisions/0036-memtables-are-sorted-on-demand.md`). So entries wait on the stack of the
//! list until they are needed in key order: in most memtables until the flush. From the first range
//! on, the writer links what it inserts, so that no range has much to sort.
//!
//! We sort 16-byte handles, not nodes. Half of a handle is a part of the key: the eight bytes after
//! the prefix that all keys have in common.
//!
//! Invariants:
//! 1. nodes are linked in turns: those that were on the stack together, in key order. The list's
//!    `linked_count` grows when all of a turn are linked;
//! 2. a node on the stack above `collected` is not linked. The others are, or are in
//!    `sorted[next..]`;
//! 3. `before` has the last linked node of each level that is not after the last one of `sorted`
//!    that was linked;
//! 4. the lock is held for [`NODES_PER_STEP`] nodes at a time, and not for a long sort: threads that need the order at the same time help each other.
//!
//! Threads: any.

use super::chunks::ChunkPool;
use super::node::{NodeHeader, NodePtr, key_of, link_of, next_of};
use super::skiplist::{HEIGHT_MAX, SkipList, Target, find, height_for, is_before};
use crate::format::{InternalKeyRef, common_prefix_bytes, key_prefix};
use crate::prefetch::prefetch;
use kvant_base::Reservation;
use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Nodes that are collected or linked in a step of about 0.1 ms, while the lock is held.
const NODES_PER_STEP: usize = 2048;
/// Comparisons in a step of a sort.
const COMPARES_PER_STEP: usize = 32_768;
/// Nodes whose handles are not counted to the memory, and which the writer may sort.
const SMALL_TURN_MAX: usize = 512;
/// Searches side by side: while one waits for memory, the others proceed.
const SEARCHES_MAX: usize = 16;
/// New nodes are searched for if the list has this many times as many.
const SPARSE_RATIO: usize = 16;
/// Nodes ahead of the one that is linked which are fetched.
const PREFETCH_DISTANCE: usize = 8;

/// A node, and the part of its key that decides most comparisons.
#[derive(Clone, Copy)]
struct Handle {
    prefix: u64,
    node: NodePtr,
}

/// The state of putting a list in order.
pub(super) struct Order {
    /// The newest node that has been collected from the stack; null at first.
    collected: *mut NodeHeader,
    turn: Turn,
    /// Those of `turn.sorted` before this one are linked.
    next: usize,
    before: [NodePtr; HEIGHT_MAX],
    chunks: Arc<ChunkPool>,
}

/// Nodes that are put in order together.
struct Turn {
    /// The newest of them.
    top: *mut NodeHeader,
    /// The next one to be collected.
    next_down: *mut NodeHeader,
    /// In key order when all are collected.
    sorted: Vec<Handle>,
    /// How many bytes all keys have in common.
    shared_bytes: usize,
    /// Counts the handles, if they are many.
    reservation: Option<Reservation>,
}

// SAFETY: the nodes belong to the list that has the `Order`, and is `Send` and `Sync`.
unsafe impl Send for Order {}

impl SkipList {
    /// About how many nodes are not linked.
    pub(super) fn unordered_count(&self) -> usize {
        let inserted_count = self.inserted_count.load(Ordering::Relaxed);
        // Nodes of an insertion that has not returned may be linked already.
        inserted_count.saturating_sub(self.linked_count.load(Ordering::Relaxed))
    }

    /// About how often [`SkipList::put_in_order`] gives way.
    pub(super) fn order_step_count(&self) -> usize {
        let count = self.unordered_count();
        let compare_count = count * count.checked_ilog2().unwrap_or(0) as usize;
        // Nodes are collected, looked at for their prefixes, and linked.
        compare_count / COMPARES_PER_STEP + 3 * count.div_ceil(NODES_PER_STEP)
    }

    /// Links all nodes whose insertion has returned. `give_way` is called about every 0.1 ms,
    /// without a lock.
    pub(super) fn put_in_order(&self, give_way: &mut dyn FnMut()) {
        let wanted_count = self.inserted_count.load(Ordering::Acquire);
        while self.linked_count.load(Ordering::Acquire) < wanted_count {
            let order = self.order.lock();
            let (is_idle, collected) = (order.is_idle(), order.collected);
            drop(order);
            if is_idle {
                let Some(mut turn) = self.collect(collected, give_way) else { continue };
                turn.sort(give_way);
                let mut order = self.order.lock();
                if order.collected != collected {
                    continue;
                }
                order.begin(self, turn);
            }
            self.order.lock().link_some(self);
            give_way();
        }
    }

    /// Collects the nodes of the stack down to `collected`. `None` if another thread was faster.
    fn collect(&self, collected: *mut NodeHeader, give_way: &mut dyn FnMut()) -> Option<Turn> {
        let handles_max = self.unordered_count();
        let mut turn = Turn::new(self, Vec::with_capacity(handles_max));
        loop {
            let order = self.order.lock();
            if order.collected != collected {
                return None;
            }
            if turn.reservation.is_none() && handles_max > SMALL_TURN_MAX {
                let mut reservation = order.chunks.reserve();
                reservation.resize((handles_max * size_of::<Handle>()) as u64);
                turn.reservation = Some(reservation);
            }
            if turn.walk(collected, NODES_PER_STEP) {
                return Some(turn);
            }
            drop(order);
            give_way();
        }
    }

    /// Links the nodes of the last insertion, unless another thread is at work on the order, or
    /// more nodes wait: then the next read links them.
    pub(super) fn link_newest(&self) {
        let Some(mut order) = self.order.try_lock() else { return };
        if order.is_idle() && self.unordered_count() <= SMALL_TURN_MAX {
            order.next = 0;
            let mut turn = Turn::new(self, std::mem::take(&mut order.turn.sorted));
            turn.walk(order.collected, usize::MAX);
            turn.sort(&mut || {});
            order.begin(self, turn);
            order.link_some(self);
        }
    }

    /// The levels to search before `key` is linked.
    fn levels_for(&self, key: InternalKeyRef<'_>) -> usize {
        self.height.load(Ordering::Relaxed).max(height_for(key))
    }
}

impl Order {
    pub(super) fn new(head: NodePtr, chunks: &Arc<ChunkPool>) -> Order {
        Order {
            collected: ptr::null_mut(),
            turn: Turn {
                top: ptr::null_mut(),
                next_down: ptr::null_mut(),
                sorted: Vec::new(),
                shared_bytes: 0,
                reservation: None,
            },
            next: 0,
            before: [head; HEIGHT_MAX],
            chunks: Arc::clone(chunks),
        }
    }

    /// Whether every collected node is linked.
    fn is_idle(&self) -> bool {
        self.next == self.turn.sorted.len()
    }

    /// Begins to link a turn that was collected since the last one ended.
    fn begin(&mut self, list: &SkipList, turn: Turn) {
        (self.collected, self.next, self.turn) = (turn.top, 0, turn);
        let last = self.before[0];
        let Some(first) = self.turn.sorted.first() else { return };
        // SAFETY: a position other than the head is a linked node.
        if last != list.head && unsafe { key_of(last) } > first.key() {
            self.before = [list.head; HEIGHT_MAX];
        }
    }

    /// Links the next nodes in key order.
    fn link_some(&mut self, list: &SkipList) {
        let end = self.turn.sorted.len().min(self.next + NODES_PER_STEP);
        let listed_count = list.linked_count.load(Ordering::Relaxed);
        let is_sparse = self.turn.sorted.len() < listed_count / SPARSE_RATIO;
        while self.next < end {
            let handle = self.turn.sorted[self.next];
            if self.is_next(list, handle) {
                self.link(list, handle);
            } else if is_sparse {
                self.search_and_link(list, end);
            } else {
                self.advance(list, handle);
                self.link(list, handle);
            }
        }
        if self.is_idle() {
            list.linked_count.store(listed_count + self.turn.sorted.len(), Ordering::Release);
            if self.turn.reservation.take().is_some() {
                (self.turn.sorted, self.next) = (Vec::new(), 0);
            }
        }
    }

    /// Whether a node belongs directly after the last linked one, as most do in a list that was
    /// empty, and ascending keys do.
    fn is_next(&self, list: &SkipList, handle: Handle) -> bool {
        let (before, target) = (self.before[0], handle.target());
        before != list.head && !precedes(before, 0, target)
    }

    /// Moves the positions on to the last nodes before `handle`. The search goes up as far as it
    /// has to, and down again.
    fn advance(&mut self, list: &SkipList, handle: Handle) {
        let target = handle.target();
        let levels = list.levels_for(target.key);
        let moving = (0..levels).take_while(|&level| precedes(self.before[level], level, target));
        let mut moved: Option<NodePtr> = None;
        let mut after = ptr::null_mut();
        for level in (0..moving.count()).rev() {
            // A node that was found further up is after the position here.
            let start = moved.unwrap_or(self.before[level]);
            // SAFETY: `start` is the head, or was found in this level or one above.
            let (found, next) = unsafe { find(start, after, level, target) };
            if found != self.before[level] {
                moved = Some(found);
            }
            (self.before[level], after) = (found, next);
        }
    }

    /// Searches for the next few nodes side by side, and links them.
    fn search_and_link(&mut self, list: &SkipList, end: usize) {
        let found = &self.turn.sorted[self.next..end.min(self.next + SEARCHES_MAX)];
        let mut handles = [found[0]; SEARCHES_MAX];
        handles[..found.len()].copy_from_slice(found);
        let mut searches = [const { None }; SEARCHES_MAX];
        for (search, handle) in searches.iter_mut().zip(&handles[..found.len()]) {
            *search = Some(Search::new(list, handle.target()));
        }
        // One step of each in turn: the previous round has prefetched what a step needs.
        let mut any_left = true;
        while any_left {
            any_left = false;
            for search in searches.iter_mut().flatten() {
                any_left |= search.step();
            }
        }
        for (search, handle) in searches.iter().flatten().zip(&handles) {
            for (level, before) in self.before.iter_mut().enumerate() {
                // A node that was just linked may come after the one that the search found.
                // SAFETY: that one is the head, or was found in this level.
                (*before, _) =
                    unsafe { find(search.before[level], ptr::null_mut(), level, search.target) };
            }
            self.link(list, *handle);
        }
    }

    /// Links the next node after `before`, which is its place on all levels that it has.
    fn link(&mut self, list: &SkipList, handle: Handle) {
        if let Some(ahead) = self.turn.sorted.get(self.next + PREFETCH_DISTANCE) {
            prefetch(ahead.node.as_ptr());
        }
        let (node, key) = (handle.node, handle.key());
        let height = height_for(key);
        for (level, before) in self.before[..height].iter_mut().enumerate() {
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
        if height > list.height.load(Ordering::Relaxed) {
            list.height.store(height, Ordering::Relaxed);
        }
        self.next += 1;
    }
}

impl Handle {
    fn key(&self) -> InternalKeyRef<'_> {
        // SAFETY: handles are made from published nodes, and belong to a list that is alive.
        unsafe { key_of(self.node) }
    }

    fn target(&self) -> Target<'_> {
        Target::from(self.key())
    }
}

impl Turn {
    /// A turn of the nodes that are on the stack now, to be collected in `handles`.
    fn new(list: &SkipList, mut handles: Vec<Handle>) -> Turn {
        handles.clear();
        let top = list.newest.load(Ordering::Acquire);
        Turn { top, next_down: top, sorted: handles, shared_bytes: 0, reservation: None }
    }

    /// Collects up to `count_max` nodes further down the stack. True when `end` is reached. The
    /// caller holds the lock of the list's order.
    fn walk(&mut self, end: *mut NodeHeader, count_max: usize) -> bool {
        for _ in 0..count_max {
            if self.next_down == end {
                return true;
            }
            let node = NonNull::new(self.next_down).expect("the stack goes down to its end");
            let handle = Handle { prefix: 0, node };
            let key = handle.key().user_key;
            self.shared_bytes = match self.sorted.first() {
                None => key.len(),
                Some(first) => {
                    let shared = &first.key().user_key[..self.shared_bytes];
                    common_prefix_bytes(shared, key)
                }
            };
            // SAFETY: nodes on the stack have a lowest level.
            self.next_down = unsafe { next_of(node, 0) };
            self.sorted.push(handle);
        }
        self.next_down == end
    }

    /// Sorts by internal key, and calls `give_way` about every 0.1 ms.
    fn sort(&mut self, give_way: &mut dyn FnMut()) {
        for step in self.sorted.chunks_mut(NODES_PER_STEP) {
            for handle in step {
                handle.prefix = key_prefix(&handle.key().user_key[self.shared_bytes..]);
            }
            give_way();
        }
        let mut compare_count = 0;
        self.sorted.sort_unstable_by(|a, b| {
            compare_count += 1;
            if compare_count == COMPARES_PER_STEP {
                compare_count = 0;
                give_way();
            }
            a.prefix.cmp(&b.prefix).then_with(|| a.key().cmp(&b.key()))
        });
    }
}

/// Whether the node after `before` in `level` precedes `target`.
fn precedes(before: NodePtr, level: usize, target: Target<'_>) -> bool {
    // SAFETY: the caller's `before` is the head, or was found in this level of a list that is
    // alive; what follows it there is linked.
    unsafe { NonNull::new(next_of(before, level)).is_some_and(|after| is_before(after, target)) }
}

/// The search for the place of a node on all levels, step by step.
struct Search<'k> {
    target: Target<'k>,
    /// Filled in from the highest level down.
    before: [NodePtr; HEIGHT_MAX],
    position: NodePtr,
    /// A node known not to precede the target, or null.
    bound: *mut NodeHeader,
    levels: usize,
}

impl<'k> Search<'k> {
    fn new(list: &SkipList, target: Target<'k>) -> Search<'k> {
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
    fn step(&mut self) -> bool {
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
