//! The writer's end of a memtable: makes nodes, pushes them for the key order, and indexes them.
//!
//! Threads: one writer.

use super::arena::ArenaWriter;
use super::chunks::ChunkPool;
use super::entries::{Entries, Node};
use super::index::HashIndex;
use super::node::new_node;
use super::order::Order;
use super::skiplist::{HEIGHT_MAX, height_for};
use crate::format::{InternalKeyRef, key_hash};
use std::sync::Arc;

/// Memory of a memtable for which its index has one slot. An entry with the smallest key and value
/// takes 40 bytes on average: a full one fills at most three quarters of its index.
const BYTES_PER_SLOT: usize = 32;
/// For memtables that are full by their entries: they fill half of the index.
const SLOTS_PER_ENTRY: usize = 2;
/// A first chunk of one part in this many keeps a memtable small that is hardly used.
const CHUNKS_PER_MEMTABLE: usize = 16;
/// Keys that are looked up side by side: while one waits for memory, the others proceed.
pub(super) const BATCH_LEN_MAX: usize = 16;

pub(super) struct Inserter {
    entries: Arc<Entries>,
    arena: ArenaWriter,
    /// Whether entries are linked as they come, because the memtable before was read in key order.
    keeps_order: bool,
}

impl Inserter {
    /// A new memtable for about `target_bytes` and at most about `entries_max`.
    pub(super) fn new(
        chunks: &Arc<ChunkPool>,
        target_bytes: usize,
        entries_max: usize,
        keeps_order: bool,
    ) -> Inserter {
        let slot_count =
            (target_bytes / BYTES_PER_SLOT).min(entries_max.saturating_mul(SLOTS_PER_ENTRY));
        let index = HashIndex::new(slot_count, chunks);
        let mut reservation = chunks.reserve();
        reservation.resize(index.memory_bytes());
        let mut arena = ArenaWriter::new(chunks, reservation, target_bytes / CHUNKS_PER_MEMTABLE);
        let no_key = InternalKeyRef { user_key: &[], trailer: 0 };
        let head = new_node(&mut arena, HEIGHT_MAX, no_key, &[], None);
        let order = Order::new(head, chunks);
        let entries = Arc::new(Entries::new(arena.arena(), index, order));
        Inserter { entries, arena, keeps_order }
    }

    pub(super) fn entries(&self) -> &Arc<Entries> {
        &self.entries
    }

    /// Inserts up to [`BATCH_LEN_MAX`] entries, of one key the oldest first. Their cache misses
    /// overlap. The same internal key must not be inserted twice.
    pub(super) fn insert(&mut self, entries: &[(InternalKeyRef<'_>, &[u8])]) {
        let mut hashes = [0; BATCH_LEN_MAX];
        for (hash, (key, _)) in hashes.iter_mut().zip(entries) {
            *hash = key_hash(key.user_key);
            self.entries.prefetch(*hash);
        }
        for ((key, value), hash) in entries.iter().zip(hashes) {
            self.insert_one(*key, hash, value);
        }
        self.entries.order.note_inserted(entries.len());
        if self.keeps_order || self.entries.is_read_in_order() {
            self.entries.order.link_newest();
        }
    }

    fn insert_one(&mut self, key: InternalKeyRef<'_>, hash: u64, value: &[u8]) {
        assert!(key.kind().is_some(), "a key that is only good for seeking");
        let Entries { index, order, .. } = &*self.entries;
        let place = index.place(hash, |address| self.entries.has_key(address, key.user_key));
        let older = place.newest.map(|address| self.entries.node_at(address));
        assert!(
            older.is_none_or(|older| older.key().trailer < key.trailer),
            "versions of a key are inserted oldest first"
        );
        let node = new_node(&mut self.arena, height_for(key), key, value, older.map(Node::ptr));
        order.push(node);
        index.publish(&place, hash, node.as_ptr().expose_provenance() as u64);
    }
}
