//! A run: operations in the order of the log, put into key order and inserted into a memtable.
//!
//! Sorted are not the operations but a place for each: 16 bytes, of which eight are key. What all
//! keys of a group start with tells none of them apart, so those eight are the bytes that follow
//! it.
//!
//! Invariants:
//! 1. what is in the run is in no memtable yet, and `insert_into` leaves it empty;
//! 2. what it may take is counted to [`Consumer::Memtables`] from the start.

use crate::format::{InternalKeyRef, key_prefix};
use crate::memtable::Memtable;
use kvant_base::tag::{self, Stage};
use kvant_base::{Consumer, MemoryBudget, Reservation};
use std::sync::Arc;

/// Trailer (8 bytes), length of the key (4), length of the value (4).
const HEADER_BYTES: usize = 16;
/// Groups of at most this many are sorted by comparing whole keys.
const SMALL_GROUP: usize = 16;
/// How often a group is divided by eight more bytes of its keys before whole keys are compared:
/// bounds the recursion. Keys that differ only later are rare enough.
const ROUNDS_MAX: u32 = 8;
/// Operations that are looked up before they are inserted: side by side, their cache misses
/// overlap. An insert ends with an atomic instruction, which the next miss would have to wait for.
const AHEAD_COUNT: usize = 16;

pub(super) struct Run {
    bytes_max: usize,
    /// One after the other: header, key, value.
    ops: Vec<u8>,
    op_count: usize,
    /// Kept between runs for its memory.
    places: Vec<Place>,
    _reservation: Reservation,
}

/// Where an operation is, and eight bytes of its key in front of that, in one integer that compares
/// without a branch. The newer of two operations is the lesser, as in the order of internal keys.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Place(u128);

impl Place {
    fn new(prefix: u64, offset: usize) -> Place {
        Place(u128::from(prefix) << 64 | u128::from(!(offset as u64)))
    }

    fn prefix(self) -> u64 {
        (self.0 >> 64) as u64
    }

    fn offset(self) -> usize {
        !(self.0 as u64) as usize
    }
}

impl Run {
    /// An empty run, to be inserted when it takes `bytes_max`.
    pub(super) fn new(memory: &Arc<MemoryBudget>, bytes_max: usize) -> Run {
        Run {
            bytes_max,
            ops: Vec::new(),
            op_count: 0,
            places: Vec::new(),
            _reservation: memory.reserve(Consumer::Memtables, bytes_max as u64),
        }
    }

    pub(super) fn push(&mut self, key: InternalKeyRef<'_>, stored_value: &[u8]) {
        let key_bytes = u32::try_from(key.user_key.len()).expect("keys are at most 16 KiB");
        let value_bytes = u32::try_from(stored_value.len()).expect("values are at most 1 GiB");
        let header =
            u128::from(key.trailer) | u128::from(key_bytes) << 64 | u128::from(value_bytes) << 96;
        self.ops.extend_from_slice(&header.to_le_bytes());
        self.ops.extend_from_slice(key.user_key);
        self.ops.extend_from_slice(stored_value);
        self.op_count += 1;
    }

    /// Whether the run has the size that was asked for, its places included.
    pub(super) fn is_full(&self) -> bool {
        self.ops.len() + self.op_count * size_of::<Place>() >= self.bytes_max
    }

    /// Empties the run into `memtable`.
    pub(super) fn insert_into(&mut self, memtable: &Memtable) {
        let _tag = tag::stage(Stage::Memtable);
        let mut places = std::mem::take(&mut self.places);
        places.reserve_exact(self.op_count);
        let mut offset = 0;
        while offset < self.ops.len() {
            places.push(Place::new(0, offset));
            let (key, value) = self.op(offset);
            offset += HEADER_BYTES + key.user_key.len() + value.len();
        }
        self.sort(&mut places, ROUNDS_MAX);
        let mut inserter = memtable.inserter();
        for places in places.chunks(AHEAD_COUNT) {
            let mut ahead = [self.op(0); AHEAD_COUNT];
            for (op, place) in ahead.iter_mut().zip(places) {
                *op = self.op(place.offset());
                inserter.prefetch(op.0.user_key);
            }
            for &(key, value) in &ahead[..places.len()] {
                inserter.insert(key, value);
            }
        }
        places.clear();
        self.places = places;
        self.ops.clear();
        self.op_count = 0;
    }

    /// Sorts `group`, places in the order of the log or in any other, into the order of internal
    /// keys.
    fn sort(&self, group: &mut [Place], rounds: u32) {
        let shared_bytes = self.shared_bytes(group);
        for place in &mut *group {
            let offset = place.offset();
            *place = Place::new(key_prefix(&self.key(offset).user_key[shared_bytes..]), offset);
        }
        group.sort_unstable();
        for tied in group.chunk_by_mut(|a, b| a.prefix() == b.prefix()) {
            if tied.len() > SMALL_GROUP && rounds > 0 {
                self.sort(tied, rounds - 1);
            } else if tied.len() > 1 {
                tied.sort_unstable_by_key(|place| self.key(place.offset()));
            }
        }
    }

    /// How many bytes at their start the keys of `group` have in common.
    fn shared_bytes(&self, group: &[Place]) -> usize {
        let mut keys = group.iter().map(|place| self.key(place.offset()).user_key);
        let mut shared = keys.next().unwrap_or(&[]);
        for key in keys {
            if !key.starts_with(shared) {
                let same = shared.iter().zip(key).take_while(|(a, b)| a == b);
                shared = &shared[..same.count()];
            }
        }
        shared.len()
    }

    fn key(&self, offset: usize) -> InternalKeyRef<'_> {
        self.op(offset).0
    }

    /// The operation at `offset`: internal key and stored value.
    fn op(&self, offset: usize) -> (InternalKeyRef<'_>, &[u8]) {
        let (header, data) = self.ops[offset..]
            .split_first_chunk::<HEADER_BYTES>()
            .expect("an operation was pushed whole");
        let number = u128::from_le_bytes(*header);
        let (key_bytes, value_bytes) = ((number >> 64) as u32 as usize, (number >> 96) as usize);
        let (user_key, rest) = data.split_at(key_bytes);
        let trailer = number as u64;
        (InternalKeyRef { user_key, trailer }, &rest[..value_bytes])
    }
}

#[cfg(test)]
mod tests;
