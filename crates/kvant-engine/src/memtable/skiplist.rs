//! A skip list (Pugh, CACM 1990) with one writer, any number of readers, and no removal.
//!
//! As in LevelDB's `skiplist.h`, the writer publishes a node by one release store per level, so
//! that readers need no lock.
//!
//! Invariants:
//! 1. everything in a node but its links is written before the node is linked, and never again;
//! 2. a node is linked from the lowest level up, by release stores: a reader that finds it
//!    (acquire) sees all of it;
//! 3. a node that is found in level `i` has a height above `i`, and is in all levels below `i`;
//! 4. each level is sorted by internal key, and nodes are never unlinked;
//! 5. nodes live in the arena, which lives as long as the list;
//! 6. only the [`Inserter`], of which a list has one, changes links and height.

use super::arena::{Arena, ArenaWriter};
use super::chunks::ChunkPool;
use super::index::{HashIndex, Known};
use super::node::{NodeHeader, NodePtr, key_of, link_of, new_node, next_of, value_of};
use crate::cursor::InternalIterator;
use crate::format::{InternalKeyRef, SeqNum, key_hash, key_prefix};
use crate::prefetch::prefetch;
use bytes::Bytes;
use kvant_base::Result;
use std::marker::PhantomData;
use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// One node in two goes a level up, so that 20 levels suffice for 2^20 = 1 M entries, and for many
/// times as many. (One in four would save 7 bytes per entry, but a search would follow half as many
/// nodes more, each a cache miss.)
const HEIGHT_MAX: usize = 20;
/// Memory of a list for which its index has one slot. An entry with the smallest key and value
/// takes 40 bytes on average: a full list fills at most three quarters of its index.
const BYTES_PER_SLOT: usize = 32;
/// For lists that are full by their entries: they fill half of the index.
const SLOTS_PER_ENTRY: usize = 2;
/// A first chunk of one part in this many keeps a list small that is hardly used.
const CHUNKS_PER_LIST: usize = 16;
/// Keys that are searched for side by side: while one waits for memory, the others proceed.
pub(super) const BATCH_LEN_MAX: usize = 16;
/// Versions of one key that a read steps over before it searches.
const VERSIONS_WALKED_MAX: usize = 8;

/// A key that is searched for, with the prefix that decides most comparisons.
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

pub(super) struct SkipList {
    arena: Arc<Arena>,
    index: HashIndex,
    /// Precedes every key; has all levels.
    head: NodePtr,
    /// Levels in use. A reader that sees an older value starts lower and finds the same.
    height: AtomicUsize,
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
        // SAFETY: a `Node` is made from linked nodes of a list that outlives `'a`.
        unsafe { key_of(self.node) }
    }

    pub(super) fn value(self) -> &'a [u8] {
        // SAFETY: as above.
        unsafe { value_of(self.node) }
    }
}

impl SkipList {
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

    fn first(&self) -> Option<Node<'_>> {
        // SAFETY: the head has all levels.
        self.node(unsafe { next_of(self.head, 0) })
    }

    /// The first entry at or after `target`.
    pub(super) fn seek(&self, target: InternalKeyRef<'_>) -> Option<Node<'_>> {
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
        let target = InternalKeyRef::seek(user_key, visible_at);
        let newest =
            match self.index.find(hash, |address| self.node_at(address).key().user_key == user_key)
            {
                Known::Absent => return None,
                Known::Node(address) => Some(self.node_at(address)),
                Known::Nothing => None,
            };
        // Older versions follow the newest in the list. Mostly it is visible itself, or one of the
        // next few is.
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

    #[inline]
    fn node_at(&self, address: u64) -> Node<'_> {
        let node = NonNull::new(ptr::with_exposed_provenance_mut(address as usize))
            .expect("the index holds addresses of nodes");
        Node { node, list: PhantomData }
    }

    fn node(&self, node: *mut NodeHeader) -> Option<Node<'_>> {
        Some(Node { node: NonNull::new(node)?, list: PhantomData })
    }
}

/// The writer's end of a list.
pub(super) struct Inserter {
    list: Arc<SkipList>,
    arena: ArenaWriter,
    /// The last entry, and on levels that it does not have the node before it: where an ascending
    /// key goes. The head where nothing is known, and on levels that no node has.
    before: [NodePtr; HEIGHT_MAX],
}

// SAFETY: the nodes belong to `list`, which is `Send` and `Sync` and is moved along.
unsafe impl Send for Inserter {}

impl Inserter {
    /// A new list for about `target_bytes` and at most about `entries_max`.
    pub(super) fn new(
        chunks: &Arc<ChunkPool>,
        target_bytes: usize,
        entries_max: usize,
    ) -> Inserter {
        let index = HashIndex::new(
            (target_bytes / BYTES_PER_SLOT).min(entries_max.saturating_mul(SLOTS_PER_ENTRY)),
        );
        let mut reservation = chunks.reserve();
        reservation.resize(index.memory_bytes());
        let mut arena = ArenaWriter::new(chunks, reservation, target_bytes / CHUNKS_PER_LIST);
        let no_key = InternalKeyRef { user_key: &[], trailer: 0 };
        let head = new_node(&mut arena, HEIGHT_MAX, no_key, &[]);
        let height = AtomicUsize::new(1);
        let list = Arc::new(SkipList { arena: Arc::clone(arena.arena()), index, head, height });
        Inserter { list, arena, before: [head; HEIGHT_MAX] }
    }

    pub(super) fn list(&self) -> &Arc<SkipList> {
        &self.list
    }

    /// Inserts up to [`BATCH_LEN_MAX`] entries. Their cache misses overlap. The same internal key
    /// must not be inserted twice.
    pub(super) fn insert(&mut self, entries: &[(InternalKeyRef<'_>, &[u8])]) {
        let mut hashes = [0; BATCH_LEN_MAX];
        for (hash, (key, _)) in hashes.iter_mut().zip(entries) {
            *hash = key_hash(key.user_key);
            self.list.prefetch(*hash);
        }
        if entries.is_sorted_by(|(a, _), (b, _)| a < b) {
            // Mostly each key belongs directly after the one before it.
            for ((key, value), hash) in entries.iter().zip(hashes) {
                let target = Target::from(*key);
                if !self.is_at(target) {
                    self.search(target);
                }
                self.link(target.key, hash, value);
            }
        } else {
            self.insert_unsorted(entries, hashes);
        }
    }

    fn insert_unsorted(
        &mut self,
        entries: &[(InternalKeyRef<'_>, &[u8])],
        hashes: [u64; BATCH_LEN_MAX],
    ) {
        let mut searches = [const { None }; BATCH_LEN_MAX];
        for (search, (key, _)) in searches.iter_mut().zip(entries) {
            *search = Some(Search::new(&self.list, Target::from(*key)));
        }
        let searches = &mut searches[..entries.len()];
        // One step of each in turn: the previous round has prefetched what a step needs.
        let mut any_left = true;
        while any_left {
            any_left = false;
            for search in searches.iter_mut().flatten() {
                any_left |= search.step();
            }
        }
        for ((search, (_, value)), hash) in searches.iter_mut().flatten().zip(entries).zip(hashes) {
            let (target, height) = (search.target, height_for(search.target.key));
            for (level, before) in search.before[..height].iter_mut().enumerate() {
                // An entry of this batch may have been linked after `before`.
                // SAFETY: `before` was found in this level.
                (*before, _) = unsafe { find(*before, ptr::null_mut(), level, target) };
            }
            self.before = search.before;
            self.link(target.key, hash, value);
        }
        // An entry of the batch may lie after `before` on a level that the last one does not have.
        self.before = [self.list.head; HEIGHT_MAX];
    }

    /// Links a new node after `before`, which is its place on all levels that it has.
    fn link(&mut self, key: InternalKeyRef<'_>, hash: u64, value: &[u8]) {
        assert!(key.kind().is_some(), "a key that is only good for seeking");
        let list = &*self.list;
        let height = height_for(key);
        let node = new_node(&mut self.arena, height, key, value);
        for (level, before) in self.before[..height].iter_mut().enumerate() {
            // SAFETY: `node` has `height` levels; `before` was found in this level, or is the head.
            let (own_link, link) = unsafe { (link_of(node, level), link_of(*before, level)) };
            let after = link.load(Ordering::Relaxed);
            debug_assert!(
                list.node(after).is_none_or(|after| after.key() > key),
                "{key:?} is inserted twice, or at the wrong place"
            );
            own_link.store(after, Ordering::Relaxed);
            link.store(node.as_ptr(), Ordering::Release);
            *before = node;
        }
        if height > list.height.load(Ordering::Relaxed) {
            list.height.store(height, Ordering::Relaxed);
        }
        // Last: all older versions can be reached from the node that the index names.
        list.index.publish(hash, node.as_ptr().expose_provenance() as u64, |address| {
            let other = list.node_at(address).key();
            (other.user_key == key.user_key).then_some(other.trailer < key.trailer)
        });
    }

    /// Whether `target` belongs directly after the last entry, as ascending keys do: then a search
    /// is unnecessary, because on higher levels nothing lies between `before` and the last entry.
    fn is_at(&self, target: Target<'_>) -> bool {
        let before = self.before[0];
        // SAFETY: the node is linked in level 0 of a list that is alive.
        before != self.list.head
            && unsafe {
                is_before(before, target)
                    && NonNull::new(next_of(before, 0))
                        .is_none_or(|after| !is_before(after, target))
            }
    }

    /// Finds the place of `target` on all levels of the list and of the node to come.
    fn search(&mut self, target: Target<'_>) {
        let (mut before, mut after) = (self.list.head, ptr::null_mut());
        for level in (0..self.list.levels_for(target.key)).rev() {
            // SAFETY: `before` is the head, or was found in this level or one above.
            (before, after) = unsafe { find(before, after, level, target) };
            self.before[level] = before;
        }
    }
}

impl SkipList {
    /// The levels to search before `key` is inserted.
    fn levels_for(&self, key: InternalKeyRef<'_>) -> usize {
        self.height.load(Ordering::Relaxed).max(height_for(key))
    }
}

/// [`Inserter::search`], step by step.
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
fn height_for(key: InternalKeyRef<'_>) -> usize {
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
unsafe fn find(
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
