//! A skip list (Pugh, CACM 1990) without removal, which is put in order on demand.
//!
//! The writer pushes nodes onto a stack and into the index: that is all that writes and point reads
//! need. Whoever reads in key order first has them sorted and linked ([`super::order`]).
//!
//! As in LevelDB's `skiplist.h`, a node is linked by one release store per level, so that readers
//! need no lock.
//!
//! Invariants:
//! 1. everything in a node but its links is written before the node is pushed, and never again;
//! 2. a node is linked from the lowest level up, by release stores: a reader that finds it
//!    (acquire) sees all of it;
//! 3. a node that is found in level `i` has a height above `i`, and is in all levels below `i`;
//! 4. each level is sorted by internal key, and nodes are never unlinked;
//! 5. nodes live in the arena, which lives as long as the list;
//! 6. only the [`Inserter`](super::inserter::Inserter), of which a list has one, pushes nodes; only
//!    the holder of `order` changes links and height. The lowest link of a node that is not linked
//!    leads down the stack.

use super::arena::Arena;
use super::index::{HashIndex, Known};
use super::node::{NodeHeader, NodePtr, key_of, next_of, older_of, value_of};
use super::order::Order;
use crate::cursor::InternalIterator;
use crate::format::{InternalKeyRef, SeqNum, key_prefix};
use crate::prefetch::prefetch;
use bytes::Bytes;
use kvant_base::Result;
use kvant_base::lock::NamedMutex;
use std::marker::PhantomData;
use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};

/// One node in two goes a level up, so that 20 levels suffice for 2^20 = 1 M entries, and for many
/// times as many. (One in four would save 7 bytes per entry, but a search would follow half as many
/// nodes more, each a cache miss.)
pub(super) const HEIGHT_MAX: usize = 20;
/// Versions of one key that a point read steps over before it searches in key order.
const VERSIONS_WALKED_MAX: usize = 8;

/// A key that is searched for, with the prefix that decides most comparisons.
#[derive(Clone, Copy)]
pub(super) struct Target<'a> {
    pub(super) key: InternalKeyRef<'a>,
    prefix: u64,
}

impl<'a> From<InternalKeyRef<'a>> for Target<'a> {
    fn from(key: InternalKeyRef<'a>) -> Target<'a> {
        Target { key, prefix: key_prefix(key.user_key) }
    }
}

pub(super) struct SkipList {
    arena: Arc<Arena>,
    pub(super) index: HashIndex,
    /// Precedes every key; has all levels.
    pub(super) head: NodePtr,
    /// Levels in use. A reader that sees an older value starts lower and finds the same.
    pub(super) height: AtomicUsize,
    /// The top of the stack of nodes, from where the lowest links lead to the first one that is
    /// linked. Null while there is no node.
    pub(super) newest: AtomicPtr<NodeHeader>,
    /// Nodes whose insertion has returned.
    pub(super) inserted_count: AtomicUsize,
    pub(super) linked_count: AtomicUsize,
    pub(super) order: NamedMutex<Order>,
    /// Set by the first read in key order.
    is_read_in_order: AtomicBool,
}

// SAFETY: the raw pointers lead into the arena, which is `Send` and `Sync`; nodes are shared under
// invariants 1, 2 and 6.
unsafe impl Send for SkipList {}
// SAFETY: as above.
unsafe impl Sync for SkipList {}

/// A node of a list that is borrowed for `'a`.
#[derive(Clone, Copy)]
pub(super) struct Node<'a> {
    node: NodePtr,
    list: PhantomData<&'a SkipList>,
}

impl<'a> Node<'a> {
    pub(super) fn key(self) -> InternalKeyRef<'a> {
        // SAFETY: a `Node` is made from published nodes of a list that outlives `'a`.
        unsafe { key_of(self.node) }
    }

    pub(super) fn value(self) -> &'a [u8] {
        // SAFETY: as above.
        unsafe { value_of(self.node) }
    }

    pub(super) fn ptr(self) -> NodePtr {
        self.node
    }

    /// The version of the key before this one.
    fn older(self) -> Option<Node<'a>> {
        // SAFETY: as above. The older node was published before this one was made.
        let older = unsafe { older_of(self.node, height_for(self.key())) };
        older.map(|node| Node { node, list: PhantomData })
    }
}

impl SkipList {
    /// An empty list.
    pub(super) fn new(
        arena: &Arc<Arena>,
        index: HashIndex,
        head: NodePtr,
        order: Order,
    ) -> SkipList {
        SkipList {
            arena: Arc::clone(arena),
            index,
            head,
            height: AtomicUsize::new(1),
            newest: AtomicPtr::new(ptr::null_mut()),
            inserted_count: AtomicUsize::new(0),
            linked_count: AtomicUsize::new(0),
            order: NamedMutex::new("memtable_order", order),
            is_read_in_order: AtomicBool::new(false),
        }
    }

    pub(super) fn memory_bytes(&self) -> u64 {
        self.arena.memory_bytes()
    }

    /// A value of the list, which keeps its memory. `None` when it shares that with others.
    pub(super) fn pin(&self, value: &[u8]) -> Option<Bytes> {
        self.arena.pin(value)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.newest.load(Ordering::Acquire).is_null()
    }

    pub(super) fn is_read_in_order(&self) -> bool {
        self.is_read_in_order.load(Ordering::Relaxed)
    }

    /// Links all entries whose insertion has returned, for a read in key order.
    fn order_for_read(&self) {
        self.put_in_order(&mut || {});
        if !self.is_read_in_order() {
            self.is_read_in_order.store(true, Ordering::Relaxed);
        }
    }

    /// The first entry in key order.
    fn first(&self) -> Option<Node<'_>> {
        self.order_for_read();
        // SAFETY: the head has all levels.
        self.node(unsafe { next_of(self.head, 0) })
    }

    /// The first entry at or after `target`.
    pub(super) fn seek(&self, target: InternalKeyRef<'_>) -> Option<Node<'_>> {
        self.order_for_read();
        let target = Target::from(target);
        let (mut before, mut after) = (self.head, ptr::null_mut());
        for level in (0..self.height.load(Ordering::Relaxed)).rev() {
            // SAFETY: `before` is the head, or was found in this level or one above.
            (before, after) = unsafe { find(before, after, level, target) };
        }
        self.node(after)
    }

    /// Fetches what [`SkipList::get`] reads first.
    #[inline]
    pub(super) fn prefetch(&self, hash: u64) {
        prefetch(self.index.first_slot(hash));
    }

    /// The newest entry of `user_key` that is visible at `visible_at`. `hash` is the key's.
    pub(super) fn get(&self, user_key: &[u8], hash: u64, visible_at: SeqNum) -> Option<Node<'_>> {
        let newest = match self.index.find(hash, |address| self.has_key(address, user_key)) {
            Known::Absent => return None,
            Known::Node(address) => Some(self.node_at(address)),
            Known::Nothing => None,
        };
        // Mostly the newest version is visible itself, or one of the next few is.
        let target = InternalKeyRef::seek(user_key, visible_at);
        let mut version = newest;
        for _ in 0..VERSIONS_WALKED_MAX {
            match version {
                Some(node) if node.key() < target => version = node.older(),
                Some(node) => return Some(node),
                None if newest.is_some() => return None,
                None => break,
            }
        }
        self.seek(target).filter(|found| found.key().user_key == user_key)
    }

    /// Whether the node at an address that the index has is of `user_key`.
    #[inline]
    pub(super) fn has_key(&self, address: u64, user_key: &[u8]) -> bool {
        self.node_at(address).key().user_key == user_key
    }

    /// The node at an address that the index has.
    #[inline]
    pub(super) fn node_at(&self, address: u64) -> Node<'_> {
        let node = NonNull::new(ptr::with_exposed_provenance_mut(address as usize))
            .expect("the index holds addresses of nodes");
        Node { node, list: PhantomData }
    }

    fn node(&self, node: *mut NodeHeader) -> Option<Node<'_>> {
        Some(Node { node: NonNull::new(node)?, list: PhantomData })
    }
}

/// A cursor over a list that it keeps alive.
pub(crate) struct MemtableIter {
    list: Arc<SkipList>,
    node: Option<NodePtr>,
}

// SAFETY: the node belongs to `list`, which is `Send` and `Sync` and is moved along.
unsafe impl Send for MemtableIter {}

impl MemtableIter {
    /// A cursor without a position.
    pub(super) fn new(list: Arc<SkipList>) -> MemtableIter {
        MemtableIter { list, node: None }
    }

    fn node(&self) -> Node<'_> {
        Node { node: self.node.expect("the cursor is valid"), list: PhantomData }
    }
}

impl InternalIterator for MemtableIter {
    fn valid(&self) -> bool {
        self.node.is_some()
    }

    fn seek_to_first(&mut self) -> Result<()> {
        self.node = self.list.first().map(|found| found.node);
        Ok(())
    }

    fn seek(&mut self, target: InternalKeyRef<'_>) -> Result<()> {
        self.node = self.list.seek(target).map(|found| found.node);
        Ok(())
    }

    fn next(&mut self) -> Result<()> {
        // SAFETY: the node is linked in level 0 of `list`.
        self.node = NonNull::new(unsafe { next_of(self.node().node, 0) });
        if let Some(node) = self.node {
            // While the caller has this entry, the next one comes from memory.
            // SAFETY: as above.
            prefetch(unsafe { next_of(node, 0) });
        }
        Ok(())
    }

    fn key(&self) -> InternalKeyRef<'_> {
        self.node().key()
    }

    fn value(&self) -> &[u8] {
        self.node().value()
    }
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
pub(super) unsafe fn is_before(node: NodePtr, target: Target<'_>) -> bool {
    // SAFETY: the caller's promise.
    let node_key = unsafe { key_of(node) };
    // The first eight bytes decide most comparisons, without a call.
    match key_prefix(node_key.user_key).cmp(&target.prefix) {
        std::cmp::Ordering::Equal => node_key < target.key,
        order => order.is_lt(),
    }
}
