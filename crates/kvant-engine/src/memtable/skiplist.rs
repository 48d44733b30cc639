//! A concurrent skip list (Pugh, "Skip lists: a probabilistic alternative to balanced trees", CACM
//! 1990) without removal.
//!
//! Ideas taken from elsewhere: publishing a node by one release store per level so that readers
//! need no lock (LevelDB's `skiplist.h`); inserting side by side by compare-and-swap level by level
//! (Pebble's `arenaskl`, after Badger); pointers in front of the key, so that the lowest one shares
//! its cache line (RocksDB's `InlineSkipList`).
//!
//! A node is one piece of the arena:
//!
//! ```text
//! next[height-1] ... next[1] next[0] | trailer  value_bytes  key_bytes | key ... | value ...
//!                                    ^ NodePtr
//! ```
//!
//! Invariants:
//! 1. everything of a node but its `next` pointers is written before the node is linked, and never
//!    again;
//! 2. a node is linked from the lowest level up, by compare-and-swaps with release order; who finds
//!    it (acquire) sees it whole;
//! 3. a node that is found in level `i` has a height above `i`, and is in all levels below `i`;
//! 4. each level is sorted by internal key, and nodes are never unlinked: a node that precedes a
//!    key does so for ever;
//! 5. nodes live in the arena, which lives as long as the list.
//!
//! Threads: all methods from any thread.

use super::arena::{ALIGN, Arena};
use super::index::{HashIndex, Known};
use crate::format::{InternalKeyRef, SeqNum, key_hash, key_prefix};
use bytes::Bytes;
use kvant_base::Reservation;
use std::marker::PhantomData;
use std::ptr::{self, NonNull};
use std::slice;
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

/// Levels at most. One node in two goes a level up, so that this suffices for 2^20 = 1 M entries
/// and is good for many times that. (One in four would save 7 bytes an entry, but a search would
/// follow half as many nodes more, each a cache miss.)
const HEIGHT_MAX: usize = 20;
/// Memory of a list for which its index has one slot. An entry with the smallest key and value
/// takes 40 bytes on average: the index is never more than three quarters full before the list is.
const BYTES_PER_SLOT: usize = 32;
/// Of lists that are full by their entries: the index is half full then.
const SLOTS_PER_ENTRY: usize = 2;
/// A first chunk of one part in this many keeps a list that is hardly used small.
const CHUNKS_PER_LIST: usize = 16;
/// Keys whose places are searched for side by side: while one waits for memory, the others go on.
pub(super) const ABREAST_MAX: usize = 8;
/// Versions of one key that a read steps over before it searches.
const VERSIONS_WALKED_MAX: usize = 8;

/// The fixed part of a node. Handled by raw pointers only, because a reference to it would not
/// cover what lies before and behind.
#[repr(C)]
struct NodeHeader {
    trailer: u64,
    value_bytes: u32,
    key_bytes: u32,
}

/// A key that is searched for, with what most comparisons need of it.
#[derive(Clone, Copy)]
struct Target<'a> {
    key: InternalKeyRef<'a>,
    prefix: u64,
}

impl<'a> From<InternalKeyRef<'a>> for Target<'a> {
    fn from(key: InternalKeyRef<'a>) -> Target<'a> {
        Target { key, prefix: key_prefix(key.user_key) }
    }
}

type NodePtr = NonNull<NodeHeader>;
type Link = AtomicPtr<NodeHeader>;

const _: () = assert!(align_of::<NodeHeader>() <= ALIGN && align_of::<Link>() <= ALIGN);
const _: () = assert!(size_of::<Link>().is_multiple_of(align_of::<NodeHeader>()));

pub(super) struct SkipList {
    arena: Arena,
    index: HashIndex,
    /// Precedes every key; has all levels.
    head: NodePtr,
    /// Levels in use. A hint: a level above it holds nothing that is not also below.
    height: AtomicUsize,
}

// SAFETY: the raw pointers lead into the arena, which is `Send` and `Sync`; nodes are shared under
// invariants 1 and 2.
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
        // SAFETY: a `Node` is made from linked nodes of a list that outlives `'a`.
        unsafe { key_of(self.node) }
    }

    pub(super) fn value(self) -> &'a [u8] {
        // SAFETY: as above: the header, key and value were written before the node was linked, and
        // stay.
        unsafe {
            let NodeHeader { value_bytes, key_bytes, .. } = self.node.read();
            slice::from_raw_parts(data_of(self.node).add(key_bytes as usize), value_bytes as usize)
        }
    }
}

impl SkipList {
    /// An empty list for about `target_bytes` and at most about `entries_max`.
    pub(super) fn new(
        mut reservation: Reservation,
        target_bytes: usize,
        entries_max: usize,
    ) -> SkipList {
        let index = HashIndex::new(
            (target_bytes / BYTES_PER_SLOT).min(entries_max.saturating_mul(SLOTS_PER_ENTRY)),
        );
        reservation.resize(index.memory_bytes());
        let arena = Arena::new(reservation, target_bytes / CHUNKS_PER_LIST);
        let head = new_node(&arena, HEIGHT_MAX, InternalKeyRef { user_key: &[], trailer: 0 }, &[]);
        SkipList { arena, index, head, height: AtomicUsize::new(1) }
    }

    pub(super) fn memory_bytes(&self) -> u64 {
        self.arena.memory_bytes()
    }

    /// A value of the list, which keeps its memory. `None` when it shares that with others.
    pub(super) fn pin(&self, value: &[u8]) -> Option<Bytes> {
        self.arena.pin(value)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.first().is_none()
    }

    /// The first entry.
    fn first(&self) -> Option<Node<'_>> {
        // SAFETY: the head has all levels.
        self.node(unsafe { next_of(self.head, 0) })
    }

    /// The first entry at or after `target`.
    pub(super) fn seek(&self, target: InternalKeyRef<'_>) -> Option<Node<'_>> {
        let target = Target::from(target);
        let mut before = self.head;
        let mut after = ptr::null_mut();
        for level in (0..self.height.load(Ordering::Relaxed)).rev() {
            // SAFETY: `before` is the head, or was found in this level or one above, and so has
            // this level.
            (before, after) = unsafe { find(before, after, level, target) };
        }
        self.node(after)
    }

    /// The newest entry of `user_key` that is visible at `visible_at`. `hash` is the key's.
    pub(super) fn get(&self, user_key: &[u8], hash: u64, visible_at: SeqNum) -> Option<Node<'_>> {
        let target = InternalKeyRef::seek(user_key, visible_at);
        let newest =
            match self.index.find(hash, |address| self.node_at(address).key().user_key == user_key)
            {
                Known::Absent => return None,
                Known::Node(address) => Some(self.node_at(address)),
                Known::Nothing => None,
            };
        // Older versions follow the newest in the list: mostly it is visible itself, or one soon
        // after it.
        let mut node = newest;
        for _ in 0..VERSIONS_WALKED_MAX {
            let Some(version) = node else { break };
            if version.key() >= target {
                return (version.key().user_key == user_key).then_some(version);
            }
            // SAFETY: the node is linked in level 0.
            node = self.node(unsafe { next_of(version.node, 0) });
        }
        self.seek(target).filter(|found| found.key().user_key == user_key)
    }

    /// The node at an address from the index.
    #[inline]
    fn node_at(&self, address: u64) -> Node<'_> {
        let node = NonNull::new(ptr::with_exposed_provenance_mut(address as usize))
            .expect("the index holds addresses of nodes");
        Node { node, list: PhantomData }
    }

    /// A place to insert at, not yet near any key.
    pub(super) fn splice(&self) -> Splice<'_> {
        Splice { list: self, before: [self.head; HEIGHT_MAX], after: [ptr::null_mut(); HEIGHT_MAX] }
    }

    fn node(&self, node: *mut NodeHeader) -> Option<Node<'_>> {
        Some(Node { node: NonNull::new(node)?, list: PhantomData })
    }

    /// Begins to fetch the slot of `user_key` in the index.
    #[inline]
    fn prefetch(&self, user_key: &[u8]) {
        prefetch(self.index.first_slot(key_hash(user_key)));
    }
}

/// Where the last insert of one inserter took place: on each level, the node before it and the one
/// that followed.
pub(super) struct Splice<'a> {
    list: &'a SkipList,
    before: [NodePtr; HEIGHT_MAX],
    after: [*mut NodeHeader; HEIGHT_MAX],
}

impl Splice<'_> {
    /// Inserts an entry. The same internal key must not be inserted twice.
    pub(super) fn insert(&mut self, key: InternalKeyRef<'_>, value: &[u8]) {
        let target = Target::from(key);
        if !self.is_just_before(target) {
            self.search(target);
        }
        self.link(target, value);
    }

    /// As several inserts, of at most [`ABREAST_MAX`] entries in any order.
    pub(super) fn insert_abreast(&mut self, entries: &[(InternalKeyRef<'_>, &[u8])]) {
        let list = self.list;
        let mut splices = [const { None }; ABREAST_MAX];
        for (splice, (key, _)) in splices.iter_mut().zip(entries) {
            list.prefetch(key.user_key);
            *splice = Some(Searching::new(list, Target::from(*key)));
        }
        let searching = &mut splices[..entries.len()];
        // One step of each in turn: what a step needs was asked for a round before.
        let mut any_left = true;
        while any_left {
            any_left = false;
            for one in searching.iter_mut().flatten() {
                any_left |= one.step();
            }
        }
        for (one, (_, value)) in searching.iter_mut().flatten().zip(entries) {
            // Where an entry before went in at the same place, linking looks on from there.
            one.splice.link(one.target, value);
        }
    }

    /// Puts an entry where the splice is, which is its place, or was when it was searched for.
    fn link(&mut self, target: Target<'_>, value: &[u8]) {
        let Target { key, .. } = target;
        assert!(key.kind().is_some(), "a key that is only good for seeking");
        debug_assert!(!self.holds(key), "{key:?} is inserted twice");
        let list = self.list;
        let height = height_for(key);
        let node = new_node(&list.arena, height, key, value);
        for level in 0..height {
            let (mut before, mut after) = (self.before[level], self.after[level]);
            loop {
                // SAFETY: `node` has `height` levels, and so has `before`, which came from this
                // level.
                let (own_link, link) = unsafe { (link_of(node, level), link_of(before, level)) };
                own_link.store(after, Ordering::Relaxed);
                if link
                    .compare_exchange(after, node.as_ptr(), Ordering::Release, Ordering::Relaxed)
                    .is_ok()
                {
                    break;
                }
                // Something else went in after `before`: look on from there (invariant 4).
                // SAFETY: `before` has this level.
                (before, after) = unsafe { find(before, ptr::null_mut(), level, target) };
            }
            self.before[level] = node;
            self.after[level] = after;
        }
        if height > list.height.load(Ordering::Relaxed) {
            list.height.fetch_max(height, Ordering::Relaxed);
        }
        // Last: from the node that the index names, all older versions can be reached.
        list.index.publish(
            key_hash(key.user_key),
            node.as_ptr().expose_provenance() as u64,
            |address| {
                let other = list.node_at(address).key();
                (other.user_key == key.user_key).then_some(other.trailer < key.trailer)
            },
        );
    }

    /// Begins to fetch the slot of `user_key` in the index.
    #[inline]
    pub(super) fn prefetch(&self, user_key: &[u8]) {
        self.list.prefetch(user_key);
    }

    /// Whether `key` is what follows the splice.
    fn holds(&self, key: InternalKeyRef<'_>) -> bool {
        self.list.node(self.after[0]).is_some_and(|after| after.key() == key)
    }

    /// Whether `target` belongs directly behind the entry that was inserted last, which makes a
    /// search needless: keys that ascend.
    ///
    /// When nothing lies between `before[0]` and `after[0]` now, then nothing that was seen on a
    /// higher level before now lies between them either (invariant 3): all of `after` is still at
    /// or behind `target`.
    fn is_just_before(&self, target: Target<'_>) -> bool {
        let (before, after) = (self.before[0], self.after[0]);
        if before == self.list.head {
            return false;
        }
        // SAFETY: both are linked in level 0 of a list that is borrowed.
        unsafe {
            is_before(before, target)
                && next_of(before, 0) == after
                && NonNull::new(after).is_none_or(|after| !is_before(after, target))
        }
    }

    /// Finds the place of `target` on all levels of which its node will be a part.
    fn search(&mut self, target: Target<'_>) {
        let list = self.list;
        let height = height_for(target.key);
        let mut before = list.head;
        let mut after = ptr::null_mut();
        for level in (0..list.height.load(Ordering::Relaxed).max(height)).rev() {
            // SAFETY: `before` is the head, or was found in this level or one above, and so has
            // this level.
            (before, after) = unsafe { find(before, after, level, target) };
            (self.before[level], self.after[level]) = (before, after);
        }
    }
}

/// [`Splice::search`], step by step.
struct Searching<'a, 'k> {
    splice: Splice<'a>,
    target: Target<'k>,
    before: NodePtr,
    /// A node known not to precede the target, or null.
    bound: *mut NodeHeader,
    /// Levels that are left.
    levels: usize,
}

impl<'a, 'k> Searching<'a, 'k> {
    fn new(list: &'a SkipList, target: Target<'k>) -> Searching<'a, 'k> {
        Searching {
            splice: list.splice(),
            target,
            before: list.head,
            bound: ptr::null_mut(),
            levels: list.height.load(Ordering::Relaxed).max(height_for(target.key)),
        }
    }

    /// Goes one node along or one level down, and begins to fetch what comes then. False when the
    /// place is found.
    #[inline]
    fn step(&mut self) -> bool {
        let Some(level) = self.levels.checked_sub(1) else {
            return false;
        };
        // SAFETY: `before` is the head, or was found in this level or one above, and so has this
        // level.
        let after = unsafe { next_of(self.before, level) };
        match NonNull::new(after) {
            // SAFETY: what is found in a level is linked in it.
            Some(node) if after != self.bound && unsafe { is_before(node, self.target) } => {
                self.before = node;
            }
            _ => {
                self.bound = after;
                (self.splice.before[level], self.splice.after[level]) = (self.before, after);
                self.levels = level;
            }
        }
        let Some(level) = self.levels.checked_sub(1) else {
            return false;
        };
        // SAFETY: as above.
        prefetch(unsafe { next_of(self.before, level) });
        true
    }
}

/// A position in a list that it keeps alive.
pub(super) struct Cursor {
    list: Arc<SkipList>,
    node: Option<NodePtr>,
}

// SAFETY: the node belongs to `list`, which is `Send` and `Sync` and goes along.
unsafe impl Send for Cursor {}

impl Cursor {
    /// A cursor that stands nowhere.
    pub(super) fn new(list: Arc<SkipList>) -> Cursor {
        Cursor { list, node: None }
    }

    /// The entry at the cursor.
    pub(super) fn node(&self) -> Option<Node<'_>> {
        self.node.map(|node| Node { node, list: PhantomData })
    }

    pub(super) fn seek_to_first(&mut self) {
        self.node = self.list.first().map(|found| found.node);
    }

    pub(super) fn seek(&mut self, target: InternalKeyRef<'_>) {
        self.node = self.list.seek(target).map(|found| found.node);
    }

    /// Moves to the next entry, or nowhere behind the last.
    pub(super) fn next(&mut self) {
        // SAFETY: the node is linked in level 0 of `list`.
        self.node = self.node.and_then(|node| NonNull::new(unsafe { next_of(node, 0) }));
    }
}

/// The height of the node for `key`: geometric, from a hash of its sequence number, which no other
/// entry has. Unlike a shared generator this needs no write that all inserters contend for, and it
/// makes the same list from the same entries.
#[inline]
fn height_for(key: InternalKeyRef<'_>) -> usize {
    // The finalizer of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014).
    let mut z = key.trailer ^ 0x9e37_79b9_7f4a_7c15;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^= z >> 31;
    (1 + z.trailing_zeros() as usize).min(HEIGHT_MAX)
}

/// Writes a node that is not linked anywhere.
fn new_node(arena: &Arena, height: usize, key: InternalKeyRef<'_>, value: &[u8]) -> NodePtr {
    let key_bytes = u32::try_from(key.user_key.len()).expect("keys are at most 16 KiB");
    let value_bytes = u32::try_from(value.len()).expect("values are at most 1 GiB");
    let tower_bytes = height * size_of::<Link>();
    let piece =
        arena.allocate(tower_bytes + size_of::<NodeHeader>() + key.user_key.len() + value.len());
    // SAFETY: the piece is ours alone until the node is linked, and is as large as what is written:
    // tower, header, key, value. It is aligned for links, and the tower's size keeps the header
    // aligned.
    unsafe {
        for level in 0..height {
            piece.cast::<Link>().add(level).write(Link::new(ptr::null_mut()));
        }
        let node = piece.add(tower_bytes).cast::<NodeHeader>();
        node.write(NodeHeader { trailer: key.trailer, value_bytes, key_bytes });
        let data = node.as_ptr().add(1).cast::<u8>();
        ptr::copy_nonoverlapping(key.user_key.as_ptr(), data, key.user_key.len());
        ptr::copy_nonoverlapping(value.as_ptr(), data.add(key.user_key.len()), value.len());
        node
    }
}

/// Goes along `level` from `before`, which precedes `target`, and returns the last node before
/// `target` and what follows it there. `bound` is a node known not to precede `target`, or null.
///
/// # Safety
/// `before` is linked in `level`, or is the head.
#[inline]
unsafe fn find(
    mut before: NodePtr,
    bound: *mut NodeHeader,
    level: usize,
    target: Target<'_>,
) -> (NodePtr, *mut NodeHeader) {
    loop {
        // SAFETY: the caller's promise, kept by each step: what is found in a level is linked in
        // it.
        let after = unsafe { next_of(before, level) };
        if level > 0 {
            // Where the search goes on when `after` is too far. Fetched while `after` is compared,
            // the two misses overlap. SAFETY: who has a level has all below it.
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
    // The order of most pairs shows in their first eight bytes: cheaper than a call that compares
    // any number.
    match key_prefix(node_key.user_key).cmp(&target.prefix) {
        std::cmp::Ordering::Equal => node_key < target.key,
        order => order.is_lt(),
    }
}

/// Asks the processor to fetch a cache line, if it knows how.
#[inline]
fn prefetch<T>(address: *const T) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: a hint that reads nothing and may name any address.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(address.cast());
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _unused = address;
}

/// The key of a node.
///
/// # Safety
/// `node` is a linked node of a list that is alive for `'a`.
#[inline]
unsafe fn key_of<'a>(node: NodePtr) -> InternalKeyRef<'a> {
    // SAFETY: header and key were written before the node was linked, and stay as they are
    // (invariants 1 and 5).
    unsafe {
        let NodeHeader { trailer, key_bytes, .. } = node.read();
        InternalKeyRef {
            user_key: slice::from_raw_parts(data_of(node), key_bytes as usize),
            trailer,
        }
    }
}

/// Where the key starts; the value follows it.
///
/// # Safety
/// `node` is a node of a list that is alive.
#[inline]
unsafe fn data_of(node: NodePtr) -> *const u8 {
    // SAFETY: key and value follow the header in the same piece of the arena.
    unsafe { node.as_ptr().add(1).cast::<u8>() }
}

/// What follows a node in `level`.
///
/// # Safety
/// As for [`link_of`].
#[inline]
unsafe fn next_of(node: NodePtr, level: usize) -> *mut NodeHeader {
    // SAFETY: the caller's promise. Acquire pairs with the release of the insert: what is found is
    // whole.
    unsafe { link_of(node, level) }.load(Ordering::Acquire)
}

/// The link of a node in `level`.
///
/// # Safety
/// `node` is a node of a list that is alive for `'a`, with a height above `level`.
#[inline]
unsafe fn link_of<'a>(node: NodePtr, level: usize) -> &'a Link {
    // SAFETY: the links lie in front of the header, lowest last, in the same piece of the arena,
    // and were written by `new_node`.
    unsafe { node.cast::<Link>().sub(level + 1).as_ref() }
}
