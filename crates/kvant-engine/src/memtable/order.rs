//! Puts the entries of a memtable in key order.
//!
//! To sort all entries of a memtable at once costs a tenth of as many searches in a growing list
//! (`docs/decisions/0036-memtables-are-put-in-order-on-demand.md`). So entries wait on a stack
//! until they are needed in key order: in most memtables until the flush. From the first range on,
//! the writer links what it inserts, so that no range has much to sort.
//!
//! A flush of entries of which none is linked reads them in the order of their sorted handles, and
//! links nothing (`docs/decisions/0050-a-flush-reads-sorted-handles.md`).
//!
//! We sort 16-byte handles, not nodes. Half of a handle is a part of the key: the eight bytes after
//! the prefix that all keys have in common.
//!
//! Invariants:
//! 1. only the inserter pushes nodes. The lowest link of a node leads down the stack until the node
//!    is linked;
//! 2. nodes are linked in turns: those that were on the stack together, in key order.
//!    `linked_count` grows when all of a turn are linked;
//! 3. a node on the stack above `collected` is not linked. The others are, or are in
//!    `turn.sorted[next..]`;
//! 4. `before` has, for each level, the last node that is not after the last one that was linked;
//! 5. the lock is held for [`NODES_PER_STEP`] nodes at a time, and not for a long sort: threads
//!    that need the order at the same time help each other.
//!
//! Threads: one inserts; any put in order.

use super::chunks::ChunkPool;
use super::node::{NodeHeader, NodePtr, bytes_of, key_of, link_of, next_of};
use super::skiplist::{HEIGHT_MAX, Search, SkipList, Target, find, precedes};
use crate::format::{InternalKeyRef, common_prefix_bytes, key_prefix};
use crate::prefetch::prefetch;
use kvant_base::Reservation;
use kvant_base::lock::NamedMutex;
use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

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
/// Nodes ahead of the one that is linked or read which are fetched.
const PREFETCH_DISTANCE: usize = 8;
const CACHE_LINE_BYTES: usize = 64;
/// The processor itself fetches what follows when it is read in order.
const PREFETCHED_BYTES_MAX: usize = 256;

/// All nodes in key order, without a link between them.
pub(super) struct Sorted {
    handles: Vec<Handle>,
    _reservation: Option<Reservation>,
}

/// A node, and the part of its key that decides most comparisons.
#[derive(Clone, Copy)]
struct Handle {
    prefix: u64,
    node: NodePtr,
}

/// The entries of a memtable in key order, and those that wait for their place.
pub(super) struct Order {
    pub(super) list: SkipList,
    /// The top of the stack; null while there is no node.
    newest: AtomicPtr<NodeHeader>,
    /// Nodes whose insertion has returned.
    inserted_count: AtomicUsize,
    linked_count: AtomicUsize,
    work: NamedMutex<Work>,
    chunks: Arc<ChunkPool>,
}

/// What is done to put the nodes in order.
struct Work {
    /// The newest node that has been collected from the stack; null at first.
    collected: *mut NodeHeader,
    turn: Turn,
    /// Those of `turn.sorted` before this one are linked.
    next: usize,
    before: [NodePtr; HEIGHT_MAX],
}

// SAFETY: the nodes belong to the list that is in the same `Order`, and is `Send` and `Sync`.
unsafe impl Send for Work {}
// SAFETY: as above. Who has it keeps the `Order` alive.
unsafe impl Send for Sorted {}

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

impl Order {
    /// An empty list. `head` has all levels.
    pub(super) fn new(head: NodePtr, chunks: &Arc<ChunkPool>) -> Order {
        let work = Work {
            collected: ptr::null_mut(),
            turn: Turn::new(ptr::null_mut(), Vec::new()),
            next: 0,
            before: [head; HEIGHT_MAX],
        };
        Order {
            list: SkipList::new(head),
            newest: AtomicPtr::new(ptr::null_mut()),
            inserted_count: AtomicUsize::new(0),
            linked_count: AtomicUsize::new(0),
            work: NamedMutex::new("memtable_order", work),
            chunks: Arc::clone(chunks),
        }
    }

    /// Pushes a node that nothing else knows yet. Only one thread may.
    pub(super) fn push(&self, node: NodePtr) {
        let below = self.newest.load(Ordering::Relaxed);
        // SAFETY: every node has a lowest level.
        unsafe { link_of(node, 0) }.store(below, Ordering::Relaxed);
        self.newest.store(node.as_ptr(), Ordering::Release);
    }

    /// The insertion of `count` nodes returns. Only the thread that pushed them calls this.
    pub(super) fn note_inserted(&self, count: usize) {
        let inserted_count = self.inserted_count.load(Ordering::Relaxed) + count;
        self.inserted_count.store(inserted_count, Ordering::Release);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.newest.load(Ordering::Acquire).is_null()
    }

    /// About how many nodes are not linked.
    pub(super) fn unordered_count(&self) -> usize {
        let inserted_count = self.inserted_count.load(Ordering::Relaxed);
        // Nodes of an insertion that has not returned may be linked already.
        inserted_count.saturating_sub(self.linked_count.load(Ordering::Relaxed))
    }

    /// About how often [`Order::sort`] gives way, or [`Order::put_in_order`] if some are linked.
    pub(super) fn step_count(&self) -> usize {
        let count = self.unordered_count();
        let compare_count = count * count.checked_ilog2().unwrap_or(0) as usize;
        // Nodes are collected and looked at for their prefixes; beside others they are linked.
        let pass_count = if self.linked_count.load(Ordering::Relaxed) == 0 { 2 } else { 3 };
        compare_count / COMPARES_PER_STEP + pass_count * count.div_ceil(NODES_PER_STEP)
    }

    /// All nodes in key order, which stay as they are. `None` if some are linked. Nothing is
    /// inserted any more. `give_way` as for [`Order::put_in_order`].
    pub(super) fn sort(&self, give_way: &mut dyn FnMut()) -> Option<Sorted> {
        let mut turn = self.collect(ptr::null_mut(), give_way)?;
        turn.sort(give_way);
        Some(Sorted { handles: turn.sorted, _reservation: turn.reservation })
    }

    /// Links all nodes whose insertion has returned. `give_way` is called about every 0.1 ms,
    /// without a lock.
    pub(super) fn put_in_order(&self, give_way: &mut dyn FnMut()) {
        let wanted_count = self.inserted_count.load(Ordering::Acquire);
        while self.linked_count.load(Ordering::Acquire) < wanted_count {
            let work = self.work.lock();
            let (is_idle, collected) = (work.is_idle(), work.collected);
            drop(work);
            if is_idle {
                let Some(mut turn) = self.collect(collected, give_way) else { continue };
                turn.sort(give_way);
                let mut work = self.work.lock();
                if work.collected != collected {
                    continue;
                }
                work.begin(&self.list, turn);
            }
            self.link_some(&mut self.work.lock());
            give_way();
        }
    }

    /// Collects the nodes of the stack down to `collected`. `None` if another thread was faster.
    fn collect(&self, collected: *mut NodeHeader, give_way: &mut dyn FnMut()) -> Option<Turn> {
        let handles_max = self.unordered_count();
        let top = self.newest.load(Ordering::Acquire);
        let mut turn = Turn::new(top, Vec::with_capacity(handles_max));
        if handles_max > SMALL_TURN_MAX {
            let mut reservation = self.chunks.reserve();
            reservation.resize((handles_max * size_of::<Handle>()) as u64);
            turn.reservation = Some(reservation);
        }
        loop {
            let work = self.work.lock();
            if work.collected != collected {
                return None;
            }
            if turn.walk(collected, NODES_PER_STEP) {
                return Some(turn);
            }
            drop(work);
            give_way();
        }
    }

    /// Links the nodes of the last insertion, unless another thread is at work on the order, or
    /// more nodes wait: then the next read links them.
    pub(super) fn link_newest(&self) {
        let Some(mut work) = self.work.try_lock() else { return };
        if work.is_idle() && self.unordered_count() <= SMALL_TURN_MAX {
            let handles = std::mem::take(&mut work.turn.sorted);
            let mut turn = Turn::new(self.newest.load(Ordering::Acquire), handles);
            turn.walk(work.collected, usize::MAX);
            turn.sort(&mut || {});
            work.begin(&self.list, turn);
            self.link_some(&mut work);
        }
    }

    /// Links the next nodes of the current turn.
    fn link_some(&self, work: &mut Work) {
        let end = work.turn.sorted.len().min(work.next + NODES_PER_STEP);
        let linked_count = self.linked_count.load(Ordering::Relaxed);
        let is_sparse = work.turn.sorted.len() < linked_count / SPARSE_RATIO;
        while work.next < end {
            let handle = work.turn.sorted[work.next];
            let target = handle.target();
            let last = work.before[0];
            // Most nodes come directly after the one before, in a list that was empty; so do
            // ascending keys.
            if last != self.list.head && !precedes(last, 0, target) {
                work.link(&self.list, handle);
            } else if is_sparse {
                work.search_and_link(&self.list, end);
            } else {
                self.list.advance(&mut work.before, target);
                work.link(&self.list, handle);
            }
        }
        if work.is_idle() {
            self.linked_count.store(linked_count + work.turn.sorted.len(), Ordering::Release);
            work.end_turn();
        }
    }
}

impl Work {
    /// Whether every collected node is linked.
    fn is_idle(&self) -> bool {
        self.next == self.turn.sorted.len()
    }

    /// Begins to link a turn that was collected since the last one ended.
    fn begin(&mut self, list: &SkipList, turn: Turn) {
        debug_assert!(self.is_idle());
        (self.collected, self.turn) = (turn.top, turn);
        let last = self.before[0];
        let Some(first) = self.turn.sorted.first() else { return };
        // SAFETY: a position other than the head is a linked node.
        if last != list.head && unsafe { key_of(last) } > first.key() {
            self.before = [list.head; HEIGHT_MAX];
        }
    }

    /// Forgets the handles. The memory of a few is kept for the next turn.
    fn end_turn(&mut self) {
        self.next = 0;
        if self.turn.reservation.take().is_some() {
            self.turn.sorted = Vec::new();
        } else {
            self.turn.sorted.clear();
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

    /// Links the next node after `before`, which is its place.
    fn link(&mut self, list: &SkipList, handle: Handle) {
        if let Some(ahead) = self.turn.sorted.get(self.next + PREFETCH_DISTANCE) {
            prefetch(ahead.node.as_ptr());
        }
        list.link(handle.node, &mut self.before);
        self.next += 1;
    }
}

impl Sorted {
    /// The node at `position`; `None` behind the last one. Those that follow are fetched.
    #[inline]
    pub(super) fn get(&self, position: usize) -> Option<NodePtr> {
        if let Some(ahead) = self.handles.get(position + PREFETCH_DISTANCE) {
            prefetch(ahead.node.as_ptr());
        }
        // By now the header of a nearer one is there, and says how long it is.
        if let Some(near) = self.handles.get(position + PREFETCH_DISTANCE / 2) {
            let begin = near.node.as_ptr().cast::<u8>();
            // SAFETY: handles are made from published nodes, and belong to a list that is alive.
            let bytes = unsafe { bytes_of(near.node) }.min(PREFETCHED_BYTES_MAX);
            for offset in (CACHE_LINE_BYTES..bytes).step_by(CACHE_LINE_BYTES) {
                prefetch(begin.wrapping_add(offset));
            }
            prefetch(begin.wrapping_add(bytes - 1));
        }
        self.handles.get(position).map(|handle| handle.node)
    }

    /// The position of the first node at or after `target`.
    pub(super) fn seek(&self, target: InternalKeyRef<'_>) -> usize {
        self.handles.partition_point(|handle| handle.key() < target)
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
    /// A turn of the nodes from `top` down, to be collected in `handles`, which are none yet.
    fn new(top: *mut NodeHeader, handles: Vec<Handle>) -> Turn {
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
