//! The writer's end of a memtable's list: makes nodes, indexes them and pushes them onto the stack.
//!
//! Threads: one writer.

use super::arena::ArenaWriter;
use super::chunks::ChunkPool;
use super::index::HashIndex;
use super::node::{NodePtr, link_of, new_node};
use super::order::Order;
use super::skiplist::{HEIGHT_MAX, Node, SkipList, height_for};
use crate::format::{InternalKeyRef, key_hash};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Memory of a list for which its index has one slot. An entry with the smallest key and value
/// takes 40 bytes on average: a full list fills at most three quarters of its index.
const BYTES_PER_SLOT: usize = 32;
/// For lists that are full by their entries: they fill half of the index.
const SLOTS_PER_ENTRY: usize = 2;
/// A first chunk of one part in this many keeps a list small that is hardly used.
const CHUNKS_PER_LIST: usize = 16;
/// Keys that are looked up side by side: while one waits for memory, the others proceed.
pub(super) const BATCH_LEN_MAX: usize = 16;

pub(super) struct Inserter {
    list: Arc<SkipList>,
    arena: ArenaWriter,
    /// The top of the stack; `None` while the list is empty.
    newest: Option<NodePtr>,
    inserted_count: usize,
    /// Whether entries are linked as they come, because the memtable before was read in key order.
    keeps_order: bool,
}

// SAFETY: the nodes belong to `list`, which is `Send` and `Sync` and is moved along.
unsafe impl Send for Inserter {}

impl Inserter {
    /// A new list for about `target_bytes` and at most about `entries_max`.
    pub(super) fn new(
        chunks: &Arc<ChunkPool>,
        target_bytes: usize,
        entries_max: usize,
        keeps_order: bool,
    ) -> Inserter {
        let index = HashIndex::new(
            (target_bytes / BYTES_PER_SLOT).min(entries_max.saturating_mul(SLOTS_PER_ENTRY)),
        );
        let mut reservation = chunks.reserve();
        reservation.resize(index.memory_bytes());
        let mut arena = ArenaWriter::new(chunks, reservation, target_bytes / CHUNKS_PER_LIST);
        let no_key = InternalKeyRef { user_key: &[], trailer: 0 };
        let head = new_node(&mut arena, HEIGHT_MAX, no_key, &[], None);
        let order = Order::new(head, chunks);
        let list = Arc::new(SkipList::new(arena.arena(), index, head, order));
        Inserter { list, arena, newest: None, inserted_count: 0, keeps_order }
    }

    pub(super) fn list(&self) -> &Arc<SkipList> {
        &self.list
    }

    /// Inserts up to [`BATCH_LEN_MAX`] entries, of one key the oldest first. Their cache misses
    /// overlap. The same internal key must not be inserted twice.
    pub(super) fn insert(&mut self, entries: &[(InternalKeyRef<'_>, &[u8])]) {
        let mut hashes = [0; BATCH_LEN_MAX];
        for (hash, (key, _)) in hashes.iter_mut().zip(entries) {
            *hash = key_hash(key.user_key);
            self.list.prefetch(*hash);
        }
        for ((key, value), hash) in entries.iter().zip(hashes) {
            self.push(*key, hash, value);
        }
        self.inserted_count += entries.len();
        self.list.inserted_count.store(self.inserted_count, Ordering::Release);
        if self.keeps_order || self.list.is_read_in_order() {
            self.list.link_newest();
        }
    }

    fn push(&mut self, key: InternalKeyRef<'_>, hash: u64, value: &[u8]) {
        assert!(key.kind().is_some(), "a key that is only good for seeking");
        let list = &*self.list;
        let place = list.index.place(hash, |address| list.has_key(address, key.user_key));
        let older = place.newest.map(|address| list.node_at(address));
        assert!(
            older.is_none_or(|older| older.key().trailer < key.trailer),
            "versions of a key are inserted oldest first"
        );
        let node = new_node(&mut self.arena, height_for(key), key, value, older.map(Node::ptr));
        if let Some(below) = self.newest.replace(node) {
            // SAFETY: every node has a lowest level. Nothing else knows this one.
            unsafe { link_of(node, 0) }.store(below.as_ptr(), Ordering::Relaxed);
        }
        list.newest.store(node.as_ptr(), Ordering::Release);
        list.index.publish(&place, hash, node.as_ptr().expose_provenance() as u64);
    }
}
