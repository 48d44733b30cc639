//! An arena: memory that one writer allocates piece by piece, freed as a whole.
//!
//! Chunks are mapped, so that all of their memory returns to the system with the arena, or to the
//! [`ChunkPool`].
//!
//! Invariants:
//! 1. a piece is aligned to [`ALIGN`], disjoint from all other pieces, and stays in place until the
//!    arena is dropped;
//! 2. a chunk never moves. The arena gives it up when it is dropped; a chunk of a single piece also
//!    lives as long as a [`Bytes`] pins it;
//! 3. every chunk is counted in the reservation;
//! 4. every piece longer than [`PIECE_BYTES_SHARED_MAX`] has a chunk of its own.
//!
//! Threads: one [`ArenaWriter`] allocates; [`Arena`] is for any thread.

use super::chunks::{CHUNK_BYTES, ChunkPool, map};
use bytes::Bytes;
use kvant_base::Reservation;
use kvant_base::limits::VALUE_BYTES_COPIED_MAX;
use kvant_base::lock::NamedMutex;
use kvant_env::posix::Mapping;
use std::collections::BTreeMap;
use std::mem::ManuallyDrop;
use std::ops::{Deref, Range};
use std::ptr::NonNull;
use std::slice;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Alignment of every piece.
pub(super) const ALIGN: usize = 8;
/// Chunks double from here up to [`CHUNK_BYTES`].
const CHUNK_BYTES_MIN: usize = 4 << 10;
/// A piece of more than one part in this many of the next chunk gets a chunk of its own, which
/// bounds what is lost at the end of shared chunks.
const SHARED_PARTS_MIN: usize = 4;
/// The longest piece of a shared chunk: longer values are pinned one by one.
const PIECE_BYTES_SHARED_MAX: usize = VALUE_BYTES_COPIED_MAX;

pub(super) struct Arena {
    allocated_bytes: AtomicU64,
    chunks: NamedMutex<Chunks>,
}

struct Chunks {
    shared: Vec<Mapping>,
    /// Chunks of one piece each, by their addresses.
    single: BTreeMap<usize, Arc<Mapping>>,
    reservation: Reservation,
    pool: Arc<ChunkPool>,
}

impl Drop for Chunks {
    fn drop(&mut self) {
        // Uncounted before the pool counts them. Pinned ones are unmapped by the last pin.
        self.reservation.resize(0);
        let single = std::mem::take(&mut self.single).into_values();
        let unpinned = single.filter_map(Arc::into_inner).collect();
        self.pool.put_back(std::mem::take(&mut self.shared), unpinned);
    }
}

impl Arena {
    /// Bytes of a piece, which keep its chunk beyond the end of the arena. `None` unless the piece
    /// has a chunk of its own. It must not change any more.
    pub(super) fn pin(&self, bytes: &[u8]) -> Option<Bytes> {
        let start = bytes.as_ptr().addr();
        let chunks = self.chunks.lock();
        let (_, chunk) = chunks.single.range(..=start).next_back()?;
        let first = start - chunk.start().addr().get();
        let within = first..first.checked_add(bytes.len())?;
        let pinned = Pinned { chunk: Arc::clone(chunk), within };
        (pinned.within.end <= chunk.bytes()).then(|| Bytes::from_owner(pinned))
    }

    pub(super) fn memory_bytes(&self) -> u64 {
        self.allocated_bytes.load(Ordering::Relaxed)
    }

    /// Adds a chunk, which is counted, and returns its start.
    fn add_chunk(&self, mapping: Mapping, is_single: bool) -> NonNull<u8> {
        let start = mapping.start();
        let mut chunks = self.chunks.lock();
        let allocated_bytes = chunks.reservation.bytes() + mapping.bytes() as u64;
        chunks.reservation.resize(allocated_bytes);
        self.allocated_bytes.store(allocated_bytes, Ordering::Relaxed);
        if is_single {
            chunks.single.insert(start.addr().get(), Arc::new(mapping));
        } else {
            chunks.shared.push(mapping);
        }
        start
    }
}

pub(super) struct ArenaWriter {
    arena: Arc<Arena>,
    pool: Arc<ChunkPool>,
    /// The unused rest of the current shared chunk.
    free: NonNull<u8>,
    free_bytes: usize,
    /// Size of the next shared chunk.
    next_bytes: usize,
}

// SAFETY: `free` points into a chunk of `arena`, and nothing else writes to that part of it.
unsafe impl Send for ArenaWriter {}

impl ArenaWriter {
    /// A new arena whose chunks are counted in `reservation`, with a first chunk of about
    /// `first_bytes`. Long chunks come from `pool`.
    pub(super) fn new(
        pool: &Arc<ChunkPool>,
        reservation: Reservation,
        first_bytes: usize,
    ) -> ArenaWriter {
        let pool = Arc::clone(pool);
        let chunks = Chunks {
            shared: Vec::new(),
            single: BTreeMap::new(),
            reservation,
            pool: Arc::clone(&pool),
        };
        let arena = Arc::new(Arena {
            allocated_bytes: AtomicU64::new(0),
            chunks: NamedMutex::new("memtable_arena", chunks),
        });
        let next_bytes = first_bytes.clamp(CHUNK_BYTES_MIN, CHUNK_BYTES);
        let mut writer =
            ArenaWriter { arena, pool, free: NonNull::dangling(), free_bytes: 0, next_bytes };
        writer.begin_chunk();
        writer
    }

    pub(super) fn arena(&self) -> &Arc<Arena> {
        &self.arena
    }

    /// Uninitialised memory of at least `bytes`, which must not be 0. It may be written and read
    /// through the pointer until the arena is dropped.
    #[inline]
    pub(super) fn allocate(&mut self, bytes: usize) -> NonNull<u8> {
        let bytes = bytes
            .checked_next_multiple_of(ALIGN)
            .expect("an entry is far smaller than the address space");
        if bytes > self.free_bytes.min(PIECE_BYTES_SHARED_MAX) {
            if bytes > (self.next_bytes / SHARED_PARTS_MIN).min(PIECE_BYTES_SHARED_MAX) {
                return self.arena.add_chunk(self.pool.take_single(bytes), true);
            }
            self.begin_chunk();
        }
        let piece = self.free;
        // SAFETY: `free_bytes`, which is at least `bytes`, follow `free` in its chunk.
        self.free = unsafe { piece.add(bytes) };
        self.free_bytes -= bytes;
        piece
    }

    #[cold]
    fn begin_chunk(&mut self) {
        let chunk =
            if self.next_bytes == CHUNK_BYTES { self.pool.take() } else { map(self.next_bytes) };
        self.free = self.arena.add_chunk(chunk, false);
        self.free_bytes = self.next_bytes;
        self.next_bytes = (self.next_bytes * 2).min(CHUNK_BYTES);
        if self.next_bytes == CHUNK_BYTES {
            self.pool.expect_use();
        }
    }
}

/// A part of a piece, and the chunk of that piece.
struct Pinned {
    chunk: Arc<Mapping>,
    /// Not beyond the chunk's end.
    within: Range<usize>,
}

impl AsRef<[u8]> for Pinned {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: within the chunk, which is mapped as long as `self`. The caller of `pin` promises
        // that the piece was written and does not change.
        unsafe {
            let start = self.chunk.start().add(self.within.start);
            slice::from_raw_parts(start.as_ptr(), self.within.len())
        }
    }
}

/// Slots of value 0. The pool has prepared their memory, or the system provides it when they are
/// first touched.
pub(super) struct Slots {
    mapping: ManuallyDrop<Mapping>,
    count: usize,
    pool: Arc<ChunkPool>,
}

impl Slots {
    pub(super) fn new(count: usize, pool: &Arc<ChunkPool>) -> Slots {
        let mapping = pool.take_index(count * size_of::<AtomicU64>());
        Slots { mapping: ManuallyDrop::new(mapping), count, pool: Arc::clone(pool) }
    }
}

impl Drop for Slots {
    fn drop(&mut self) {
        // SAFETY: nothing uses the mapping after this.
        let mapping = unsafe { ManuallyDrop::take(&mut self.mapping) };
        self.pool.put_back_index(mapping);
    }
}

impl Deref for Slots {
    type Target = [AtomicU64];

    #[inline]
    fn deref(&self) -> &[AtomicU64] {
        // SAFETY: the mapping holds so many zeroed words, aligned to pages, and is only ever used
        // through this.
        unsafe { slice::from_raw_parts(self.mapping.start().cast().as_ptr(), self.count) }
    }
}
