//! The entries of a memtable, as readers see them: by the hash index, or in key order.
//!
//! Threads: any.

use super::arena::Arena;
use super::index::{HashIndex, Known};
use super::node::{NodePtr, key_of, next_of, older_of, value_of};
use super::order::{Order, Sorted};
use super::skiplist::height_for;
use crate::cursor::InternalIterator;
use crate::format::{InternalKeyRef, SeqNum};
use crate::prefetch::prefetch;
use bytes::Bytes;
use kvant_base::Result;
use std::marker::PhantomData;
use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Versions of one key that a point read steps over before it searches in key order.
const VERSIONS_WALKED_MAX: usize = 8;

pub(super) struct Entries {
    arena: Arc<Arena>,
    pub(super) index: HashIndex,
    pub(super) order: Order,
    /// Set by the first read in key order.
    is_read_in_order: AtomicBool,
}

/// An entry that is borrowed for `'a`.
#[derive(Clone, Copy)]
pub(super) struct Node<'a> {
    node: NodePtr,
    entries: PhantomData<&'a Entries>,
}

impl<'a> Node<'a> {
    pub(super) fn key(self) -> InternalKeyRef<'a> {
        // SAFETY: a `Node` is made from published nodes of entries that outlive `'a`.
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
        older.map(|node| Node { node, entries: PhantomData })
    }
}

impl Entries {
    pub(super) fn new(arena: &Arc<Arena>, index: HashIndex, order: Order) -> Entries {
        Entries { arena: Arc::clone(arena), index, order, is_read_in_order: AtomicBool::new(false) }
    }

    pub(super) fn memory_bytes(&self) -> u64 {
        self.arena.memory_bytes()
    }

    /// A value of an entry, which keeps its memory. `None` when it shares that with others.
    pub(super) fn pin(&self, value: &[u8]) -> Option<Bytes> {
        self.arena.pin(value)
    }

    pub(super) fn is_read_in_order(&self) -> bool {
        self.is_read_in_order.load(Ordering::Relaxed)
    }

    /// Links all entries whose insertion has returned, for a read in key order.
    fn order_for_read(&self) {
        self.order.put_in_order(&mut || {});
        if !self.is_read_in_order() {
            self.is_read_in_order.store(true, Ordering::Relaxed);
        }
    }

    /// The first entry in key order.
    fn first(&self) -> Option<Node<'_>> {
        self.order_for_read();
        self.order.list.first().map(|node| self.node(node))
    }

    /// The first entry at or after `target`.
    pub(super) fn seek(&self, target: InternalKeyRef<'_>) -> Option<Node<'_>> {
        self.order_for_read();
        self.order.list.seek(target).map(|node| self.node(node))
    }

    /// Fetches what [`Entries::get`] reads first.
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
        Node { node, entries: PhantomData }
    }

    fn node(&self, node: NodePtr) -> Node<'_> {
        Node { node, entries: PhantomData }
    }
}

/// A cursor over entries that it keeps alive.
pub(crate) struct MemtableIter {
    entries: Arc<Entries>,
    node: Option<NodePtr>,
}

// SAFETY: the node belongs to `entries`, which is `Send` and `Sync` and is moved along.
unsafe impl Send for MemtableIter {}

impl MemtableIter {
    /// A cursor without a position.
    pub(super) fn new(entries: Arc<Entries>) -> MemtableIter {
        MemtableIter { entries, node: None }
    }

    fn node(&self) -> Node<'_> {
        Node { node: self.node.expect("the cursor is valid"), entries: PhantomData }
    }
}

impl InternalIterator for MemtableIter {
    fn valid(&self) -> bool {
        self.node.is_some()
    }

    fn seek_to_first(&mut self) -> Result<()> {
        self.node = self.entries.first().map(|found| found.node);
        Ok(())
    }

    fn seek(&mut self, target: InternalKeyRef<'_>) -> Result<()> {
        self.node = self.entries.seek(target).map(|found| found.node);
        Ok(())
    }

    fn next(&mut self) -> Result<()> {
        // SAFETY: the node is linked in level 0 of `entries`.
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

/// A cursor over all entries of a memtable that is complete, as [`Order::sort`] found them.
pub(super) struct SortedIter {
    entries: Arc<Entries>,
    sorted: Sorted,
    position: usize,
    node: Option<NodePtr>,
}

// SAFETY: as for `MemtableIter`.
unsafe impl Send for SortedIter {}

impl SortedIter {
    /// A cursor without a position over `sorted`, all nodes of `entries`.
    pub(super) fn new(entries: Arc<Entries>, sorted: Sorted) -> SortedIter {
        SortedIter { entries, sorted, position: 0, node: None }
    }

    fn node(&self) -> Node<'_> {
        self.entries.node(self.node.expect("the cursor is valid"))
    }

    fn move_to(&mut self, position: usize) {
        self.position = position;
        self.node = self.sorted.get(position);
    }
}

impl InternalIterator for SortedIter {
    fn valid(&self) -> bool {
        self.node.is_some()
    }

    fn seek_to_first(&mut self) -> Result<()> {
        self.move_to(0);
        Ok(())
    }

    fn seek(&mut self, target: InternalKeyRef<'_>) -> Result<()> {
        self.move_to(self.sorted.seek(target));
        Ok(())
    }

    fn next(&mut self) -> Result<()> {
        self.move_to(self.position + 1);
        Ok(())
    }

    fn key(&self) -> InternalKeyRef<'_> {
        self.node().key()
    }

    fn value(&self) -> &[u8] {
        self.node().value()
    }
}
