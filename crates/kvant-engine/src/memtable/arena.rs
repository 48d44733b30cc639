//! An arena: memory handed out piece by piece by several threads at once, and freed as a whole.
//!
//! The arena maps chunks, so that all of their memory goes back to the system at its end. The
//! common allocation is one `fetch_add` in the current chunk; a lock is taken only to add a chunk.
//! The idea of many threads bumping one counter is that of Pebble's `arenaskl` (after Badger's),
//! which cannot grow; LevelDB's arena grows, but has one writer.
//!
//! Invariants:
//! 1. a piece handed out is aligned to [`ALIGN`], disjoint from all other pieces, and stays where
//!    it is until the arena is dropped;
//! 2. a chunk never moves and is unmapped only by `drop`: pointers to chunks that a slow thread
//!    still holds stay good. A chunk with a single piece is unmapped when nothing pins it any more;
//! 3. `used` of a chunk only grows; what it counts beyond the chunk's size was never handed out;
//! 4. every chunk, its header included, is counted in the reservation;
//! 5. every piece longer than [`PIECE_BYTES_SHARED_MAX`] has a chunk of its own.
//!
//! Threads: all methods from any thread.

use bytes::Bytes;
use kvant_base::Reservation;
use kvant_base::limits::VALUE_BYTES_COPIED_MAX;
use kvant_base::lock::NamedMutex;
use kvant_env::posix::Mapping;
use std::alloc::{Layout, handle_alloc_error};
use std::collections::BTreeMap;
use std::ops::{Deref, Range};
use std::ptr::NonNull;
use std::slice;
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering};

/// Alignment of every piece.
pub(super) const ALIGN: usize = 8;
const CHUNK_BYTES_MIN: usize = 4 << 10;
/// Chunks double up to this size: a huge page of x86-64 and most others. A search in the list
/// touches many pages, and translating their addresses costs as much as fetching them. Larger:
/// fewer system calls, more memory unused at the end.
const CHUNK_BYTES_MAX: usize = 2 << 20;
/// A piece of more than one part in this many of a shared chunk gets a chunk of its own, so that
/// little is lost at the end of shared ones.
const SHARED_PARTS_MIN: usize = 4;
/// The longest piece of a shared chunk: longer values are pinned one by one.
const PIECE_BYTES_SHARED_MAX: usize = VALUE_BYTES_COPIED_MAX;

/// Start of a chunk; the pieces follow it.
#[repr(C, align(64))]
struct ChunkHeader {
    /// Bytes handed out, this header included.
    used: AtomicUsize,
    /// Bytes of the chunk, this header included.
    bytes: usize,
}

const HEADER_BYTES: usize = size_of::<ChunkHeader>();
const _: () = assert!(HEADER_BYTES.is_multiple_of(ALIGN));
const _: () = assert!(CHUNK_BYTES_MIN / SHARED_PARTS_MIN > HEADER_BYTES);

pub(super) struct Arena {
    current: AtomicPtr<ChunkHeader>,
    allocated_bytes: AtomicU64,
    chunks: NamedMutex<Chunks>,
}

struct Chunks {
    shared: Vec<Mapping>,
    /// Chunks of one piece each, by their addresses.
    single: BTreeMap<usize, Arc<Mapping>>,
    /// Size of the next shared chunk.
    next_bytes: usize,
    reservation: Reservation,
}

// SAFETY: the raw pointers are to chunks that the arena owns alone (invariant 2); chunk headers are
// only used through atomics and the lock, or read after they were published.
unsafe impl Send for Arena {}
// SAFETY: as above.
unsafe impl Sync for Arena {}

impl Arena {
    /// An arena whose chunks are counted in `reservation`, with a first chunk of about
    /// `first_bytes`.
    pub(super) fn new(reservation: Reservation, first_bytes: usize) -> Arena {
        let first_bytes = first_bytes.clamp(CHUNK_BYTES_MIN, CHUNK_BYTES_MAX);
        let mut chunks = Chunks {
            shared: Vec::new(),
            single: BTreeMap::new(),
            next_bytes: (first_bytes * 2).min(CHUNK_BYTES_MAX),
            reservation,
        };
        let first = chunks.add_shared(first_bytes, HEADER_BYTES);
        Arena {
            current: AtomicPtr::new(first.as_ptr()),
            allocated_bytes: AtomicU64::new(chunks.reservation.bytes()),
            chunks: NamedMutex::new("memtable_arena", chunks),
        }
    }

    /// Uninitialised memory of at least `bytes`, which must not be 0. It may be written and read
    /// through the pointer until the arena is dropped.
    #[inline]
    pub(super) fn allocate(&self, bytes: usize) -> NonNull<u8> {
        let bytes = bytes
            .checked_next_multiple_of(ALIGN)
            .expect("an entry is far smaller than the address space");
        let current = self.current.load(Ordering::Acquire);
        // SAFETY: `current` is a chunk that was published after its header was written, and chunks
        // live as long as `self`.
        match unsafe { bump(current, bytes) } {
            Some(piece) => piece,
            None => self.allocate_in_new_chunk(current, bytes),
        }
    }

    #[cold]
    fn allocate_in_new_chunk(&self, full: *mut ChunkHeader, bytes: usize) -> NonNull<u8> {
        let mut chunks = self.chunks.lock();
        let current = self.current.load(Ordering::Acquire);
        if current != full {
            // SAFETY: as in `allocate`.
            if let Some(piece) = unsafe { bump(current, bytes) } {
                return piece;
            }
        }
        let is_single = bytes > piece_bytes_max(chunks.next_bytes);
        let piece = if is_single {
            chunks.add_single(bytes)
        } else {
            let chunk_bytes = chunks.next_bytes;
            let chunk = chunks.add_shared(chunk_bytes, HEADER_BYTES + bytes);
            chunks.next_bytes = (chunk_bytes * 2).min(CHUNK_BYTES_MAX);
            self.current.store(chunk.as_ptr(), Ordering::Release);
            // SAFETY: the chunk has at least `HEADER_BYTES + bytes` bytes, and its `used` was set
            // to that before anyone else saw it.
            unsafe { chunk.cast::<u8>().add(HEADER_BYTES) }
        };
        self.allocated_bytes.store(chunks.reservation.bytes(), Ordering::Relaxed);
        piece
    }

    /// Bytes of a piece, which keep its chunk beyond the end of the arena. `None` unless the chunk
    /// is its own. The piece must not change any more.
    pub(super) fn pin(&self, bytes: &[u8]) -> Option<Bytes> {
        let start = bytes.as_ptr().addr();
        let chunks = self.chunks.lock();
        let (_, chunk) = chunks.single.range(..=start).next_back()?;
        let first = start - chunk.start().addr().get();
        let within = first..first.checked_add(bytes.len())?;
        let pinned = Pinned { chunk: Arc::clone(chunk), within };
        (pinned.within.end <= chunk.bytes()).then(|| Bytes::from_owner(pinned))
    }

    /// Bytes allocated from the system.
    pub(super) fn memory_bytes(&self) -> u64 {
        self.allocated_bytes.load(Ordering::Relaxed)
    }
}

/// The longest piece that goes into a shared chunk.
#[inline]
fn piece_bytes_max(chunk_bytes: usize) -> usize {
    (chunk_bytes / SHARED_PARTS_MIN).min(PIECE_BYTES_SHARED_MAX)
}

/// A part of a piece, and the chunk of that piece.
struct Pinned {
    chunk: Arc<Mapping>,
    /// Not beyond the chunk's end.
    within: Range<usize>,
}

impl AsRef<[u8]> for Pinned {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: within the chunk, which is mapped as long as `self`. Who pins a piece sees to it
        // that it was written and stays as it is.
        unsafe {
            let start = self.chunk.start().add(self.within.start);
            slice::from_raw_parts(start.as_ptr(), self.within.len())
        }
    }
}

/// Takes `bytes` (a multiple of [`ALIGN`]) from a shared chunk, if it has them and they are no
/// large part of it.
///
/// # Safety
/// `chunk` points to a live chunk with a written header, and may be used as long as the returned
/// piece.
#[inline]
unsafe fn bump(chunk: *mut ChunkHeader, bytes: usize) -> Option<NonNull<u8>> {
    // SAFETY: the caller promises a live chunk; the header is only ever accessed shared from here
    // on.
    let header = unsafe { &*chunk };
    if bytes > piece_bytes_max(header.bytes) {
        return None;
    }
    let start = header.used.fetch_add(bytes, Ordering::Relaxed);
    // The sum cannot overflow: `used` grows by one failed attempt of each thread at a time, and
    // attempts are far below 2^63.
    if start + bytes > header.bytes {
        return None;
    }
    // SAFETY: `start + bytes` is within the chunk, and `fetch_add` gave this range to nobody else.
    NonNull::new(unsafe { chunk.cast::<u8>().add(start) })
}

impl Chunks {
    /// Maps a chunk of `bytes` of which `used_bytes` are taken.
    fn add_shared(&mut self, bytes: usize, used_bytes: usize) -> NonNull<ChunkHeader> {
        let mapping = map(bytes);
        let chunk = mapping.start().cast::<ChunkHeader>();
        // SAFETY: the mapping is large enough and aligned to pages, and not shared yet.
        unsafe { chunk.write(ChunkHeader { used: AtomicUsize::new(used_bytes), bytes }) };
        self.count(&mapping);
        self.shared.push(mapping);
        chunk
    }

    /// Maps a chunk for one piece.
    fn add_single(&mut self, bytes: usize) -> NonNull<u8> {
        let mapping = map(bytes);
        let piece = mapping.start();
        self.count(&mapping);
        self.single.insert(piece.addr().get(), Arc::new(mapping));
        piece
    }

    fn count(&mut self, mapping: &Mapping) {
        let bytes = self.reservation.bytes() + mapping.bytes() as u64;
        self.reservation.resize(bytes);
    }
}

/// Maps memory, whole huge pages where there is room for one.
fn map(bytes: usize) -> Mapping {
    Mapping::new(bytes).unwrap_or_else(|_| {
        let layout = Layout::from_size_align(bytes, ALIGN);
        handle_alloc_error(layout.expect("a chunk is far smaller than the address space"))
    })
}

/// Slots of value 0, whose memory the system provides when they are touched.
pub(super) struct Slots {
    mapping: Mapping,
    count: usize,
}

impl Slots {
    pub(super) fn new(count: usize) -> Slots {
        Slots { mapping: map(count * size_of::<AtomicU64>()), count }
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
