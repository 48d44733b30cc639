//! Memory by the page, for buffers that nearly fill one, blocks of a cache, and for what can be in
//! parts, filters.
//!
//! What a cache frees in the heaps of the C library lies scattered between what it keeps, and
//! returns to the system only by a call that locks the heaps for tens of milliseconds. Each page
//! returns by itself.
//!
//! Pages come from chunks. A prepared chunk is one huge page of the system, if that has any: reads
//! at random places then find the address of their memory in the processor's tables more often.
//! Where it is not ready in time, a short chunk takes its place, whose pages the system provides
//! one by one.
//!
//! Invariants:
//! 1. A page belongs to one [`Page`], or is in `free` or `released`. Those in `free` may be
//!    resident; those in `released` were given to the system, or never used.
//! 2. Chunks are never unmapped: what is not used of them is address space only. Prepared ones are
//!    parts of long mappings: Linux allows a process 65,530 of them.
//! 3. The system makes no huge page of pages of which some were released: all of it would be
//!    resident.
//!
//! Threads: any. The lock is held for a few instructions, or while memory is mapped.

use super::memory::{Mapping, page_bytes, provide, refuse_huge_pages};
use kvant_base::lock::NamedMutex;
use std::mem::{self, ManuallyDrop};
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::slice;
use std::sync::OnceLock;

const PAGE_BYTES: usize = 4096;
/// A prepared chunk: a huge page.
const CHUNK_BYTES: usize = 2 << 20;
/// The mapping that prepared chunks are parts of.
const RANGE_BYTES: usize = 32 << 20;
/// A chunk that was not prepared. By the time it is used up, the next one may be.
const SHORT_CHUNK_BYTES: usize = 256 << 10;

static HEAP: NamedMutex<Heap> = NamedMutex::new("page_heap", Heap::new());
/// Called when [`prepare_pages`] has work.
static WAKE: OnceLock<Box<dyn Fn() + Send + Sync>> = OnceLock::new();

struct Heap {
    free: Vec<NonNull<u8>>,
    released: Vec<NonNull<u8>>,
    /// How many chunks have been begun.
    chunk_count: usize,
    /// A chunk that was touched, and is not used yet.
    prepared: Option<NonNull<u8>>,
    /// Chunks of the last long mapping that were not touched.
    fresh: Vec<NonNull<u8>>,
}

// SAFETY: the pages belong to the heap, and are reached through it alone.
unsafe impl Send for Heap {}

impl Heap {
    const fn new() -> Heap {
        Heap {
            free: Vec::new(),
            released: Vec::new(),
            chunk_count: 0,
            prepared: None,
            fresh: Vec::new(),
        }
    }

    fn pop(&mut self) -> Option<NonNull<u8>> {
        self.free.pop().or_else(|| self.released.pop())
    }

    /// Begins a chunk.
    fn grow(&mut self) -> Option<()> {
        if page_bytes() != PAGE_BYTES {
            return None;
        }
        let (start, bytes, pages) = match self.prepared.take() {
            Some(start) => (start, CHUNK_BYTES, &mut self.free),
            None => {
                let start = map_and_keep(SHORT_CHUNK_BYTES)?;
                // SAFETY: a new mapping.
                unsafe { refuse_huge_pages(start, SHORT_CHUNK_BYTES) };
                (start, SHORT_CHUNK_BYTES, &mut self.released)
            }
        };
        pages.extend(parts(start, bytes, PAGE_BYTES));
        self.chunk_count += 1;
        Some(())
    }

    /// A chunk that was not touched. `None` if the system has no more memory.
    fn take_fresh(&mut self) -> Option<NonNull<u8>> {
        if self.fresh.is_empty() {
            self.fresh.extend(parts(map_and_keep(RANGE_BYTES)?, RANGE_BYTES, CHUNK_BYTES));
        }
        self.fresh.pop()
    }
}

/// Maps memory that is never unmapped.
fn map_and_keep(bytes: usize) -> Option<NonNull<u8>> {
    let mapping = ManuallyDrop::new(Mapping::new(bytes).ok()?);
    Some(mapping.start())
}

/// The parts of a mapping, of `part_bytes` each.
fn parts(start: NonNull<u8>, bytes: usize, part_bytes: usize) -> impl Iterator<Item = NonNull<u8>> {
    // SAFETY: offsets within the mapping.
    (0..bytes).step_by(part_bytes).map(move |offset| unsafe { start.add(offset) })
}

/// Has `wake` called, without the heap's lock, when [`prepare_pages`] has work. Set once; a later
/// call has no effect.
pub fn on_pages_wanted(wake: impl Fn() + Send + Sync + 'static) {
    WAKE.get_or_init(|| Box::new(wake));
}

/// Prepares a chunk for the next pages, if none is prepared, and if any pages were taken yet: takes
/// 0.3 to 6 ms. Called by one thread.
pub fn prepare_pages() {
    let mut heap = HEAP.lock();
    if heap.chunk_count == 0 || heap.prepared.is_some() {
        return;
    }
    // Without memory for it, pages come from short chunks.
    let Some(start) = heap.take_fresh() else { return };
    drop(heap);
    // SAFETY: a part of a mapping, which nothing else uses yet. Rule 3: a huge page that has been
    // provided stays one.
    unsafe {
        provide(start, CHUNK_BYTES);
        refuse_huge_pages(start, CHUNK_BYTES);
    }
    HEAP.lock().prepared = Some(start);
}

/// Memory of free pages, which is resident.
pub fn free_page_bytes() -> u64 {
    (HEAP.lock().free.len() * PAGE_BYTES) as u64
}

/// Gives the memory of free pages to the system.
pub fn release_free_pages() {
    let mut pages = mem::take(&mut HEAP.lock().free);
    pages.sort_unstable();
    for run in pages.chunk_by(|&page, &next| page.addr().get() + PAGE_BYTES == next.addr().get()) {
        // SAFETY: neighbouring pages, which nothing uses. After a failure they stay resident.
        unsafe {
            libc::madvise(run[0].as_ptr().cast(), run.len() * PAGE_BYTES, libc::MADV_DONTNEED);
        }
    }
    HEAP.lock().released.append(&mut pages);
}

/// A page of memory.
pub struct Page(NonNull<u8>);

// SAFETY: the page belongs to this value alone.
unsafe impl Send for Page {}
// SAFETY: as above.
unsafe impl Sync for Page {}

impl Page {
    /// The length.
    pub const BYTES: usize = PAGE_BYTES;

    /// A page with any contents. `None` where the system's pages have another length, or it has no
    /// memory.
    pub fn new() -> Option<Page> {
        let mut heap = HEAP.lock();
        if let Some(page) = heap.pop() {
            return Some(Page(page));
        }
        heap.grow()?;
        let page = heap.pop();
        drop(heap);
        if let Some(wake) = WAKE.get() {
            wake();
        }
        page.map(Page)
    }
}

impl Deref for Page {
    type Target = [u8; PAGE_BYTES];

    #[inline]
    fn deref(&self) -> &[u8; PAGE_BYTES] {
        // SAFETY: the memory of the page, which is initialized: pages come zeroed from the system.
        unsafe { self.0.cast().as_ref() }
    }
}

impl DerefMut for Page {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8; PAGE_BYTES] {
        // SAFETY: as above.
        unsafe { self.0.cast().as_mut() }
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        HEAP.lock().free.push(self.0);
    }
}

/// Bytes in a page of their own, or in the heap of the C library: less than 4 GiB. As long as a
/// vector, and with room in its representation for the tag of an enumeration that has it.
pub struct Buffer {
    /// The page, or the memory of a vector.
    start: NonNull<u8>,
    len: u32,
    capacity: u32,
    place: Place,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Page,
    Heap,
}

// SAFETY: the memory belongs to the buffer, and is reached through it alone.
unsafe impl Send for Buffer {}
// SAFETY: as above.
unsafe impl Sync for Buffer {}

impl Buffer {
    /// An empty buffer without memory.
    pub const fn new() -> Buffer {
        Buffer { start: NonNull::dangling(), len: 0, capacity: 0, place: Place::Heap }
    }

    /// Bytes of its memory.
    #[inline]
    pub fn capacity(&self) -> usize {
        self.capacity as usize
    }

    /// Gives the buffer a length, and any contents. What it holds is not zeroed anew.
    pub fn set_len(&mut self, len: usize) {
        if len > self.capacity() {
            *self = Buffer::from(vec![0; len]);
        } else if self.place == Place::Page {
            self.len = len as u32;
        } else {
            let mut bytes = mem::take(self).into_vec();
            bytes.resize(len, 0);
            *self = Buffer::from(bytes);
        }
    }

    /// The memory, if it is in the heap; else none.
    pub fn into_vec(self) -> Vec<u8> {
        if self.place == Place::Page {
            return Vec::new();
        }
        let this = ManuallyDrop::new(self);
        // SAFETY: the parts of a vector, which nothing else has.
        unsafe { Vec::from_raw_parts(this.start.as_ptr(), this.len as usize, this.capacity()) }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        if self.place == Place::Page {
            let _page = Page(self.start);
        } else {
            let _bytes = mem::take(self).into_vec();
        }
    }
}

impl Default for Buffer {
    fn default() -> Buffer {
        Buffer::new()
    }
}

impl From<Page> for Buffer {
    /// An empty buffer.
    fn from(page: Page) -> Buffer {
        let start = ManuallyDrop::new(page).0;
        Buffer { start, len: 0, capacity: Page::BYTES as u32, place: Place::Page }
    }
}

impl From<Vec<u8>> for Buffer {
    fn from(bytes: Vec<u8>) -> Buffer {
        const LONG: &str = "a buffer has less than 4 GiB";
        let mut bytes = ManuallyDrop::new(bytes);
        let start = NonNull::new(bytes.as_mut_ptr()).expect("vectors have a pointer");
        let capacity = u32::try_from(bytes.capacity()).expect(LONG);
        Buffer { start, len: bytes.len() as u32, capacity, place: Place::Heap }
    }
}

impl Deref for Buffer {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        // SAFETY: the first `len` bytes of the memory, which are initialized: pages come zeroed
        // from the system. They do not move while the buffer has them.
        unsafe { slice::from_raw_parts(self.start.as_ptr(), self.len as usize) }
    }
}

impl DerefMut for Buffer {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above.
        unsafe { slice::from_raw_parts_mut(self.start.as_ptr(), self.len as usize) }
    }
}

#[cfg(test)]
mod tests;
