//! The global allocator of a program that profiles itself: the system's, and a look at some of what
//! it gives out.
//!
//! One allocation in so many bytes is sampled: sample points lie on the line of all bytes that a
//! thread allocates, with exponential gaps of mean R between them, and an allocation that holds one
//! is a sample. So an allocation of `s` bytes is one with probability `1 - exp(-s/R)`, and stands
//! for `s / (1 - exp(-s/R))` bytes: sums of weights are unbiased, whatever the sizes.
//!
//! A reallocation is the free of the old and the allocation of all of the new: that is what the
//! system may have to do, and what is live afterwards has one stack.
//!
//! Invariants:
//! 1. While nobody profiles, allocating and freeing cost one relaxed load and a branch more than
//!    the system's.
//! 2. Nothing here allocates, locks or has a destructor: it runs at any time in any thread's life.
//! 3. A sampled address is known ([`live`]) before its owner has it, and forgotten before the
//!    system may give it out again.
//!
//! Threads: any.

mod live;

use super::anchor::anchored;
use super::chance::{SamplePoints, unbiased};
use super::clock::monotonic_ns;
use super::ring::{self, Observation};
use crate::recording::Kind;
use live::LIVE;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes between two samples, on average; 0 while nobody profiles, [`NO_SAMPLES`] while somebody
/// profiles something else.
static MEAN_BYTES: AtomicU64 = AtomicU64::new(0);
/// No thread ever allocates that much: the distance to the first sample point.
const NO_SAMPLES: u64 = u64::MAX;

thread_local! {
    static POINTS: SamplePoints = const { SamplePoints::new() };
    /// Whether what the thread allocates is no sample.
    static IS_PAUSED: Cell<bool> = const { Cell::new(false) };
}

/// A session begins: one allocation in `mean_bytes` is sampled; none if that is not given, but
/// stacks can be followed through the system's allocator all the same.
pub(super) fn begin(mean_bytes: Option<u64>) {
    LIVE.clear();
    let mean_bytes = mean_bytes.map_or(NO_SAMPLES, |mean| mean.max(1));
    MEAN_BYTES.store(mean_bytes, Ordering::Release);
}

/// It ends.
pub(super) fn end() {
    MEAN_BYTES.store(0, Ordering::Release);
}

/// What the calling thread allocates until this is dropped is the profiler's own, and no sample.
#[must_use = "the pause ends when this is dropped"]
pub(super) struct Pause {
    was_paused: bool,
}

impl Pause {
    pub(super) fn begin() -> Pause {
        Pause { was_paused: IS_PAUSED.replace(true) }
    }
}

impl Drop for Pause {
    fn drop(&mut self) {
        IS_PAUSED.set(self.was_paused);
    }
}

/// The system's allocator, sampled while somebody profiles. For `#[global_allocator]`.
#[derive(Debug, Default)]
pub struct Allocator(());

impl Allocator {
    /// The allocator. A program has one.
    pub const fn new() -> Allocator {
        Allocator(())
    }
}

// SAFETY: every call goes to `System`, once, with the arguments as they came, and its answer goes
// back as it is; what is done besides neither allocates nor unwinds.
unsafe impl GlobalAlloc for Allocator {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let mean_bytes = MEAN_BYTES.load(Ordering::Relaxed);
        if mean_bytes == 0 {
            // SAFETY: the caller's promise.
            return unsafe { System.alloc(layout) };
        }
        // SAFETY: the caller's promise.
        watched(layout.size(), mean_bytes, || unsafe { System.alloc(layout) })
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        let mean_bytes = MEAN_BYTES.load(Ordering::Relaxed);
        if mean_bytes == 0 {
            // SAFETY: the caller's promise.
            return unsafe { System.alloc_zeroed(layout) };
        }
        // SAFETY: the caller's promise.
        watched(layout.size(), mean_bytes, || unsafe { System.alloc_zeroed(layout) })
    }

    #[inline]
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        if MEAN_BYTES.load(Ordering::Relaxed) == 0 {
            // SAFETY: the caller's promise.
            return unsafe { System.dealloc(pointer, layout) };
        }
        freed(pointer);
        // SAFETY: the caller's promise.
        anchored(|| unsafe { System.dealloc(pointer, layout) });
    }

    #[inline]
    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, new_bytes: usize) -> *mut u8 {
        let mean_bytes = MEAN_BYTES.load(Ordering::Relaxed);
        if mean_bytes == 0 {
            // SAFETY: the caller's promise.
            return unsafe { System.realloc(pointer, layout, new_bytes) };
        }
        // Before the call: after it another thread may have the address. Should the system refuse,
        // the old memory, which goes on living, is taken for freed.
        freed(pointer);
        // SAFETY: the caller's promise.
        watched(new_bytes, mean_bytes, || unsafe { System.realloc(pointer, layout, new_bytes) })
    }
}

/// Allocates by `allocate`, and takes a sample when it is time for one.
#[inline]
fn watched(bytes: usize, mean_bytes: u64, allocate: impl FnOnce() -> *mut u8) -> *mut u8 {
    let pointer = anchored(allocate);
    if POINTS.with(|points| points.pass(bytes as u64, mean_bytes)) {
        sample(pointer, bytes, mean_bytes);
    }
    pointer
}

/// An allocation holds a sample point.
#[cold]
#[inline(never)]
fn sample(pointer: *mut u8, bytes: usize, mean_bytes: u64) {
    if pointer.is_null() || IS_PAUSED.get() {
        return;
    }
    let address = pointer as usize;
    ring::record(&Observation {
        kind: Kind::Alloc,
        time_mono_ns: monotonic_ns(),
        duration_ns: 0,
        weight: unbiased(bytes as u64, mean_bytes),
        name: None,
        address: if LIVE.insert(address) { address } else { 0 },
        frames_to_skip: 1,
    });
}

/// Memory is about to be freed.
#[inline]
fn freed(pointer: *mut u8) {
    let address = pointer as usize;
    if LIVE.may_contain(address) {
        freed_sample(address);
    }
}

#[cold]
#[inline(never)]
fn freed_sample(address: usize) {
    if LIVE.remove(address) {
        ring::record_free(address);
    }
}
