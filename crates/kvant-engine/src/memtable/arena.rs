//! An arena: memory handed out piece by piece by several threads at once, and freed as a whole.
//!
//! The arena allocates chunks. The common allocation is one `fetch_add` in the current chunk; a lock is taken
//! only to add a chunk. The idea of many threads bumping one counter is that of Pebble's `arenaskl` (after
//! Badger's), which cannot grow; LevelDB's arena grows, but has one writer.
//!
//! Invariants:
//! 1. a piece handed out is aligned to [`ALIGN`], disjoint from all other pieces, and stays where it is until
//!    the arena is dropped;
//! 2. a chunk never moves and is freed only by `drop`: pointers to chunks that a slow thread still holds stay
//!    good;
//! 3. `used` of a chunk only grows; what it counts beyond the chunk's size was never handed out;
//! 4. every chunk, its header included, is counted in the reservation.
//!
//! Threads: all methods from any thread.

use kvant_base::Reservation;
use kvant_base::lock::NamedMutex;
use kvant_env::posix::advise_huge_pages;
use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering};

/// Alignment of every piece.
pub(super) const ALIGN: usize = 8;
/// Alignment of chunks: a cache line.
const CHUNK_ALIGN: usize = 64;
/// A huge page of x86-64 and most others: a search in the list touches many pages, and translating their
/// addresses costs as much as fetching them.
const HUGE_PAGE_BYTES: usize = 2 << 20;
const CHUNK_BYTES_MIN: usize = 4 << 10;
/// Chunks double up to this size. Larger: fewer allocations, more memory unused at the end.
const CHUNK_BYTES_MAX: usize = HUGE_PAGE_BYTES;
/// A piece of more than one part in this many of a shared chunk gets a chunk of its own, so that little is
/// lost at the end of shared ones.
const SHARED_PARTS_MIN: usize = 4;

/// Start of a chunk; the pieces follow it.
#[repr(C, align(64))]
struct ChunkHeader {
    /// Bytes handed out, this header included.
    used: AtomicUsize,
    /// Bytes of the chunk, this header included.
    bytes: usize,
}

const HEADER_BYTES: usize = size_of::<ChunkHeader>();
const _: () = assert!(HEADER_BYTES.is_multiple_of(ALIGN) && align_of::<ChunkHeader>() == CHUNK_ALIGN);
const _: () = assert!(CHUNK_BYTES_MIN / SHARED_PARTS_MIN > HEADER_BYTES);

pub(super) struct Arena {
    current: AtomicPtr<ChunkHeader>,
    allocated_bytes: AtomicU64,
    chunks: NamedMutex<Chunks>,
}

struct Chunks {
    all: Vec<NonNull<ChunkHeader>>,
    /// Size of the next shared chunk.
    next_bytes: usize,
    reservation: Reservation,
}

// SAFETY: the raw pointers are to chunks that the arena owns alone (invariant 2); chunk headers are only used
// through atomics and the lock, or read after they were published.
unsafe impl Send for Arena {}
// SAFETY: as above.
unsafe impl Sync for Arena {}

impl Arena {
    /// An arena whose chunks are counted in `reservation`, with a first chunk of about `first_bytes`.
    pub(super) fn new(reservation: Reservation, first_bytes: usize) -> Arena {
        let first_bytes = first_bytes.clamp(CHUNK_BYTES_MIN, CHUNK_BYTES_MAX);
        let mut chunks = Chunks {
            all: Vec::new(),
            next_bytes: (first_bytes * 2).min(CHUNK_BYTES_MAX),
            reservation,
        };
        let first = chunks.add(first_bytes, HEADER_BYTES);
        Arena {
            current: AtomicPtr::new(first.as_ptr()),
            allocated_bytes: AtomicU64::new(chunks.reservation.bytes()),
            chunks: NamedMutex::new("memtable_arena", chunks),
        }
    }

    /// Uninitialised memory of at least `bytes`, which must not be 0. It may be written and read through the
    /// pointer until the arena is dropped.
    #[inline]
    pub(super) fn allocate(&self, bytes: usize) -> NonNull<u8> {
        let bytes = bytes
            .checked_next_multiple_of(ALIGN)
            .expect("an entry is far smaller than the address space");
        let current = self.current.load(Ordering::Acquire);
        // SAFETY: `current` is a chunk that was published after its header was written, and chunks live as
        // long as `self`.
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
        let own = bytes > chunks.next_bytes / SHARED_PARTS_MIN;
        let chunk_bytes = if own {
            HEADER_BYTES + bytes
        } else {
            chunks.next_bytes
        };
        let chunk = chunks.add(chunk_bytes, HEADER_BYTES + bytes);
        self.allocated_bytes
            .store(chunks.reservation.bytes(), Ordering::Relaxed);
        if !own {
            chunks.next_bytes = (chunks.next_bytes * 2).min(CHUNK_BYTES_MAX);
            self.current.store(chunk.as_ptr(), Ordering::Release);
        }
        // SAFETY: the chunk has at least `HEADER_BYTES + bytes` bytes, and its `used` was set to that before
        // anyone else saw it.
        unsafe { chunk.cast::<u8>().add(HEADER_BYTES) }
    }

    /// Bytes allocated from the system.
    pub(super) fn memory_bytes(&self) -> u64 {
        self.allocated_bytes.load(Ordering::Relaxed)
    }
}

/// Takes `bytes` (a multiple of [`ALIGN`]) from a shared chunk, if it has them and they are no large part of
/// it.
///
/// # Safety
/// `chunk` points to a live chunk with a written header, and may be used as long as the returned piece.
#[inline]
unsafe fn bump(chunk: *mut ChunkHeader, bytes: usize) -> Option<NonNull<u8>> {
    // SAFETY: the caller promises a live chunk; the header is only ever accessed shared from here on.
    let header = unsafe { &*chunk };
    if bytes > header.bytes / SHARED_PARTS_MIN {
        return None;
    }
    let start = header.used.fetch_add(bytes, Ordering::Relaxed);
    // The sum cannot overflow: `used` grows by one failed attempt of each thread at a time, and attempts are
    // far below 2^63.
    if start + bytes > header.bytes {
        return None;
    }
    // SAFETY: `start + bytes` is within the chunk, and `fetch_add` gave this range to nobody else.
    NonNull::new(unsafe { chunk.cast::<u8>().add(start) })
}

impl Chunks {
    /// Allocates a chunk of `bytes` of which `used_bytes` are taken.
    fn add(&mut self, bytes: usize, used_bytes: usize) -> NonNull<ChunkHeader> {
        let layout = chunk_layout(bytes);
        // SAFETY: the layout is not of size 0.
        let Some(chunk) = NonNull::new(unsafe { alloc(layout) }.cast::<ChunkHeader>()) else {
            handle_alloc_error(layout);
        };
        advise_huge_pages(chunk.as_ptr().cast(), bytes);
        // SAFETY: the allocation is large enough and aligned for a header, and nobody else knows it yet.
        unsafe {
            chunk.write(ChunkHeader {
                used: AtomicUsize::new(used_bytes),
                bytes,
            })
        };
        self.all.push(chunk);
        self.reservation.resize(self.reservation.bytes() + bytes as u64);
        chunk
    }
}

impl Drop for Chunks {
    fn drop(&mut self) {
        for &chunk in &self.all {
            // SAFETY: the chunk is live until the next line, and the header was written by `add`.
            let layout = chunk_layout(unsafe { chunk.as_ref() }.bytes);
            // SAFETY: allocated by `add` with the same layout; the arena is being dropped, so no piece is
            // used any more.
            unsafe { dealloc(chunk.as_ptr().cast(), layout) };
        }
    }
}

fn chunk_layout(bytes: usize) -> Layout {
    let align = if bytes >= HUGE_PAGE_BYTES {
        HUGE_PAGE_BYTES
    } else {
        CHUNK_ALIGN
    };
    Layout::from_size_align(bytes, align).expect("a chunk is far smaller than the address space")
}

/// Slots of value 0, whose memory the system provides when they are touched.
pub(super) fn zeroed_slots(count: usize) -> Box<[AtomicU64]> {
    let zeros = Box::into_raw(vec![0u64; count].into_boxed_slice());
    advise_huge_pages(zeros.cast::<u8>(), count * size_of::<u64>());
    // SAFETY: the pointer is a box's, and `AtomicU64` has the size, alignment and bit patterns of `u64`.
    unsafe { Box::from_raw(zeros as *mut [AtomicU64]) }
}
