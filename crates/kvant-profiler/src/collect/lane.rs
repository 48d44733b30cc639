//! Lanes: the per-thread data of the samplers, from a static pool.
//!
//! Invariants:
//! 1. A lane is taken by one exchange of its owner, from 0 to a thread's id: by the thread itself
//!    (at its first synchronous sample) or by the drain (before it starts the thread's timer). The
//!    thread keeps it until it has ended, across sessions, and the drain then releases it. So no
//!    other thread writes into its rings, however late a signal arrives.
//! 2. If both take a lane at the same time, the thread may have two: signals go to the drain's,
//!    synchronous samples to the other. The drain empties all lanes, so nothing is lost.
//! 3. Lanes below [`PREPARED_COUNT`] have memory.
//!
//! Threads: any finds and takes lanes; one at a time (a session's drain) prepares and releases
//! them.

use super::pace::Pace;
use super::ring::{RING_WORDS, Ring};
use super::stack::StackBounds;
use kvant_env::posix::Mapping;
use std::cell::Cell;
use std::ffi::c_int;
use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::{io, ptr, slice};

/// The signal by which a lane's owner is sampled: the one reserved for profilers.
pub(super) const SIGNAL: c_int = libc::SIGPROF;
/// Threads beyond this many are not sampled.
pub(super) const LANES_MAX: usize = 1024;
/// Free lanes that are kept for threads that take one themselves.
const SPARE_COUNT: usize = 8;
/// The owners of a free lane and of one that is being released: no thread has these ids.
const FREE: u32 = 0;
const RESERVED: u32 = u32::MAX;
const LANE_WORDS: usize = 2 * RING_WORDS;

static LANES: [Lane; LANES_MAX] = [const { Lane::new() }; LANES_MAX];
/// The ids of the lanes' owners, in an array of their own so that a search reads little memory.
static OWNERS: [AtomicU32; LANES_MAX] = [const { AtomicU32::new(FREE) }; LANES_MAX];
static PREPARED_COUNT: AtomicUsize = AtomicUsize::new(0);
/// Synchronous samples lost because no lane was free.
static LANELESS_COUNT: AtomicU64 = AtomicU64::new(0);

thread_local! {
    // Constant and without a destructor: access never allocates.
    static OWN: Cell<Option<&'static Lane>> = const { Cell::new(None) };
}

/// The data of one thread.
pub(super) struct Lane {
    /// Written by the thread's signal handler.
    pub(super) signal: Ring,
    /// Written by the thread's other code.
    pub(super) synchronous: Ring,
    pub(super) stack: StackBounds,
    pub(super) sampled_cpu_ns: AtomicU64,
    pub(super) pace: Pace,
    /// Memory into which the kernel writes samples of this thread, or null. The signal handler uses
    /// it only while `is_page_in_use`.
    pub(super) perf_page: AtomicPtr<u8>,
    pub(super) is_page_in_use: AtomicBool,
}

impl Lane {
    const fn new() -> Lane {
        Lane {
            signal: Ring::new(),
            synchronous: Ring::new(),
            stack: StackBounds::new(),
            sampled_cpu_ns: AtomicU64::new(0),
            pace: Pace::new(),
            perf_page: AtomicPtr::new(ptr::null_mut()),
            is_page_in_use: AtomicBool::new(false),
        }
    }

    fn owner_slot(&self) -> &'static AtomicU32 {
        let offset_bytes = ptr::from_ref(self) as usize - LANES.as_ptr() as usize;
        &OWNERS[offset_bytes / size_of::<Lane>()]
    }

    pub(super) fn owner(&self) -> u32 {
        self.owner_slot().load(Ordering::Acquire)
    }

    /// Drain: releases the lane if `has_ended` confirms that its owner has ended. `last_drain` is
    /// called when no thread can write into it any more.
    pub(super) fn release(&self, has_ended: impl FnOnce() -> bool, last_drain: impl FnOnce()) {
        let slot = self.owner_slot();
        // Thread ids are reused: from now on no thread finds the lane by its id. A thread that
        // found it before has not ended.
        let owner = slot.swap(RESERVED, Ordering::AcqRel);
        if !has_ended() {
            slot.store(owner, Ordering::Release);
            return;
        }
        last_drain();
        self.stack.forget();
        slot.store(FREE, Ordering::Release);
    }
}

/// The calling thread's lane for synchronous samples; takes one if it has none. If none is free the
/// sample is counted as lost.
#[inline]
pub(super) fn of_this_thread() -> Option<&'static Lane> {
    OWN.get().or_else(take_for_this_thread)
}

#[cold]
fn take_for_this_thread() -> Option<&'static Lane> {
    let lane = take(own_thread_id());
    OWN.set(lane);
    if lane.is_none() {
        LANELESS_COUNT.fetch_add(1, Ordering::Relaxed);
    }
    lane
}

pub(super) fn own_thread_id() -> u32 {
    rustix::thread::gettid().as_raw_nonzero().get().cast_unsigned()
}

/// The lane of a thread; takes one if it has none. `None` if none is free.
pub(super) fn take(thread_id: u32) -> Option<&'static Lane> {
    let owners = &OWNERS[..PREPARED_COUNT.load(Ordering::Acquire)];
    let is_own = |owner: &AtomicU32| owner.load(Ordering::Acquire) == thread_id;
    let take = |owner: &AtomicU32| {
        let before = owner.compare_exchange(FREE, thread_id, Ordering::AcqRel, Ordering::Acquire);
        // The drain may have taken it first, for the same thread.
        before.is_ok() || before == Err(thread_id)
    };
    let index = owners.iter().position(is_own).or_else(|| owners.iter().position(take))?;
    Some(&LANES[index])
}

/// The lane at the address that a signal carries; `None` if there is none.
pub(super) fn at(address: usize) -> Option<&'static Lane> {
    let offset_bytes = address.checked_sub(LANES.as_ptr() as usize)?;
    let index = offset_bytes / size_of::<Lane>();
    LANES.get(index).filter(|_| offset_bytes.is_multiple_of(size_of::<Lane>()))
}

/// The calling thread's lane with memory for the kernel's samples.
pub(super) fn of_this_thread_with_page() -> Option<&'static Lane> {
    let thread_id = own_thread_id();
    owned()
        .find(|lane| lane.owner() == thread_id && !lane.perf_page.load(Ordering::Relaxed).is_null())
}

pub(super) fn owned() -> impl Iterator<Item = &'static Lane> {
    let owners = &OWNERS[..PREPARED_COUNT.load(Ordering::Acquire)];
    let is_owned = |owner: &AtomicU32| owner.load(Ordering::Acquire) != FREE;
    let pairs = owners.iter().zip(&LANES);
    pairs.filter(move |(owner, _)| is_owned(owner)).map(|(_, lane)| lane)
}

/// Drain: prepares lanes until `free_count` are free, and some more for threads that take one
/// themselves.
pub(super) fn keep_ready(free_count: usize) -> io::Result<()> {
    let prepared_count = PREPARED_COUNT.load(Ordering::Relaxed);
    let owners = &OWNERS[..prepared_count];
    let ready_count = owners.iter().filter(|owner| owner.load(Ordering::Relaxed) == FREE).count();
    let missing_count = (free_count + SPARE_COUNT).saturating_sub(ready_count);
    for lane in LANES.iter().skip(prepared_count).take(missing_count) {
        let (signal, synchronous) = map_words()?.split_at(RING_WORDS);
        lane.signal.prepare(signal);
        lane.synchronous.prepare(synchronous);
        PREPARED_COUNT.fetch_add(1, Ordering::Release);
    }
    Ok(())
}

/// Maps memory for the rings of a lane. The system commits pages when they are used.
fn map_words() -> io::Result<&'static [AtomicU64]> {
    let mapping = ManuallyDrop::new(Mapping::new(LANE_WORDS * size_of::<AtomicU64>())?);
    // SAFETY: the mapping is that long, zeroed, aligned to pages, and never unmapped.
    Ok(unsafe { slice::from_raw_parts(mapping.start().as_ptr().cast(), LANE_WORDS) })
}

/// Takes the number of synchronous samples that found no free lane.
pub(super) fn take_laneless_count() -> u64 {
    LANELESS_COUNT.swap(0, Ordering::Relaxed)
}

#[cfg(test)]
mod tests;
