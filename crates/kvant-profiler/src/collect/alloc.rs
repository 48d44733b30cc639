//! The global allocator of a program that profiles itself: the system's allocator, with sampling.
//!
//! Sample points lie on the line of all bytes that a thread allocates, with exponential gaps of
//! mean R. An allocation that contains a point is a sample. So an allocation of `s` bytes is
//! sampled with probability `1 - exp(-s/R)` and stands for `s / (1 - exp(-s/R))` bytes: sums of
//! weights are unbiased for all sizes.
//!
//! A reallocation counts as a free and an allocation of the new size: the system may have to do
//! both, and live memory then has one stack.
//!
//! Invariants:
//! 1. Without a session, allocating and freeing cost one relaxed load and a branch more than in the
//!    system's allocator.
//! 2. Nothing here allocates, locks or has a destructor, so it may run at any time in a thread's
//!    life.
//! 3. A sampled address is added to [`LIVE`] before its owner has it, and removed before the system
//!    may reuse it.
//!
//! Threads: any.

mod live_set;

use super::anchor::anchored;
use super::chance::{SamplePoints, unbiased};
use super::clock::monotonic_ns;
use super::record::{Observation, record, record_free};
use crate::recording::Kind;
use live_set::LIVE;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

/// Mean number of bytes between two samples; 0 without a session, [`NO_SAMPLES`] in a session that
/// does not sample allocations.
static MEAN_BYTES: AtomicU64 = AtomicU64::new(0);
/// A distance to the first sample point that no thread reaches.
const NO_SAMPLES: u64 = u64::MAX;

thread_local! {
    static POINTS: SamplePoints = const { SamplePoints::new() };
    static IS_PAUSED: Cell<bool> = const { Cell::new(false) };
}

/// Starts a session with one sample in `mean_bytes`. With `None` there are no samples, but CPU
/// samples inside of the system's allocator still find its callers.
pub(super) fn begin(mean_bytes: Option<u64>) {
    LIVE.clear();
    let mean_bytes = mean_bytes.map_or(NO_SAMPLES, |mean| mean.max(1));
    MEAN_BYTES.store(mean_bytes, Ordering::Release);
}

/// Ends the session.
pub(super) fn end() {
    MEAN_BYTES.store(0, Ordering::Release);
}

/// While this exists, allocations of the calling thread are the profiler's own and not sampled.
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

/// The system's allocator, sampled during a session. For `#[global_allocator]`.
#[derive(Debug, Default)]
pub struct Allocator(());

impl Allocator {
    /// Creates the allocator. A program has one.
    pub const fn new() -> Allocator {
        Allocator(())
    }
}

// SAFETY: each call goes to `System` once, with unchanged arguments and result; the additional code
// neither allocates nor unwinds.
unsafe impl GlobalAlloc for Allocator {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's contract.
        allocated(layout.size(), || unsafe { System.alloc(layout) })
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's contract.
        allocated(layout.size(), || unsafe { System.alloc_zeroed(layout) })
    }

    #[inline]
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        if MEAN_BYTES.load(Ordering::Relaxed) == 0 {
            // SAFETY: the caller's contract.
            return unsafe { System.dealloc(pointer, layout) };
        }
        note_free(pointer);
        // SAFETY: the caller's contract.
        anchored(|| unsafe { System.dealloc(pointer, layout) });
    }

    #[inline]
    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, new_bytes: usize) -> *mut u8 {
        let mean_bytes = MEAN_BYTES.load(Ordering::Relaxed);
        if mean_bytes == 0 {
            // SAFETY: the caller's contract.
            return unsafe { System.realloc(pointer, layout, new_bytes) };
        }
        // Before the call: after it another thread may have the address. If the system refuses, the
        // old memory counts as freed although it is still live.
        note_free(pointer);
        // SAFETY: the caller's contract.
        sampled(new_bytes, mean_bytes, || unsafe { System.realloc(pointer, layout, new_bytes) })
    }
}

/// Calls `allocate`, in a session as [`sampled`].
#[inline(always)]
fn allocated(bytes: usize, allocate: impl FnOnce() -> *mut u8) -> *mut u8 {
    match MEAN_BYTES.load(Ordering::Relaxed) {
        0 => allocate(),
        mean_bytes => sampled(bytes, mean_bytes, allocate),
    }
}

/// Calls `allocate`, and samples the allocation if it contains a sample point.
#[inline]
fn sampled(bytes: usize, mean_bytes: u64, allocate: impl FnOnce() -> *mut u8) -> *mut u8 {
    let pointer = anchored(allocate);
    if POINTS.with(|points| points.pass(bytes as u64, mean_bytes)) {
        sample(pointer, bytes, mean_bytes);
    }
    pointer
}

#[cold]
#[inline(never)]
fn sample(pointer: *mut u8, bytes: usize, mean_bytes: u64) {
    if pointer.is_null() || IS_PAUSED.get() {
        return;
    }
    let address = pointer as usize;
    record(&Observation {
        kind: Kind::Alloc,
        time_mono_ns: monotonic_ns(),
        duration_ns: 0,
        weight: unbiased(bytes as u64, mean_bytes),
        name: None,
        address: if LIVE.insert(address) { address } else { 0 },
        frames_to_skip: 1,
    });
}

/// Must be called before memory is freed.
#[inline]
fn note_free(pointer: *mut u8) {
    let address = pointer as usize;
    if LIVE.may_contain(address) {
        note_sample_free(address);
    }
}

#[cold]
#[inline(never)]
fn note_sample_free(address: usize) {
    if LIVE.remove(address) {
        record_free(address);
    }
}
