//! Lanes: what a thread needs for being sampled, from a pool that is there for ever.
//!
//! Invariants:
//! 1. A lane is taken with one exchange of its owner, from 0 to a thread's number, by the thread
//!    itself (at its first synchronous sample) or by the drain (before it starts the thread's
//!    timer). It is the thread's until the thread has ended, also from one session to the next, and
//!    only then is given back, by the drain. So nobody else ever writes into a thread's rings,
//!    however late a signal comes.
//! 2. If both take one at the same time, a thread may have two: signals go to the one that the
//!    drain took, all else to the other. The drain empties all lanes, so nothing is lost.
//! 3. Lanes below [`PREPARED_COUNT`] have memory.
//!
//! Threads: any finds and takes lanes; one at a time (a session's drain) prepares them and gives
//! them back.

use super::ring::{RING_WORDS, Ring};
use super::stack::Stack;
use super::timer::Pace;
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::{io, ptr, slice};

/// Threads beyond this many are not sampled.
pub(super) const LANES_MAX: usize = 1024;
/// Lanes that are kept ready for threads that take one themselves.
const SPARE_COUNT: usize = 8;
/// The owner of a lane that is nobody's, and of one that is being given back: no thread has these
/// numbers.
const FREE: u32 = 0;
const RESERVED: u32 = u32::MAX;
/// Two rings.
const LANE_WORDS: usize = 2 * RING_WORDS;

static LANES: [Lane; LANES_MAX] = [const { Lane::new() }; LANES_MAX];
/// The numbers of the threads that have lanes: apart from the lanes, so that a search reads little
/// memory.
static OWNERS: [AtomicU32; LANES_MAX] = [const { AtomicU32::new(FREE) }; LANES_MAX];
static PREPARED_COUNT: AtomicUsize = AtomicUsize::new(0);
/// How many words of a ring the session uses.
static RING_WORDS_MAX: AtomicU64 = AtomicU64::new(RING_WORDS as u64);
/// Synchronous samples of threads for which there was no lane.
static LANELESS_COUNT: AtomicU64 = AtomicU64::new(0);

thread_local! {
    // Constant and without a destructor: using it never allocates.
    static OWN: Cell<Option<&'static Lane>> = const { Cell::new(None) };
}

/// What belongs to one thread.
pub(super) struct Lane {
    /// Written by the thread's signal handler.
    pub(super) signal: Ring,
    /// Written by all other code of the thread.
    pub(super) synchronous: Ring,
    /// How far the thread's stack can be read.
    pub(super) stack: Stack,
    /// CPU time of the thread at its last sample.
    pub(super) sampled_cpu_ns: AtomicU64,
    /// Of the thread's timer, if it has one.
    pub(super) pace: Pace,
    /// The memory that the kernel writes samples of this thread into; null without. The signal
    /// handler uses it only while `is_page_in_use`.
    pub(super) perf_page: AtomicPtr<u8>,
    /// Whether the signal handler may be using the memory.
    pub(super) is_page_in_use: AtomicBool,
}

impl Lane {
    const fn new() -> Lane {
        Lane {
            signal: Ring::new(),
            synchronous: Ring::new(),
            stack: Stack::new(),
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

    /// The number of the thread that owns it.
    pub(super) fn owner(&self) -> u32 {
        self.owner_slot().load(Ordering::Acquire)
    }

    /// Drain: gives the lane back if `has_ended` says that there is no thread with its owner's
    /// number. `last_look` is called when nobody can write into it any more.
    pub(super) fn release(&self, has_ended: impl FnOnce() -> bool, last_look: impl FnOnce()) {
        let slot = self.owner_slot();
        // Numbers are given out again: nobody shall find the lane by its number from now on.
        // Whoever found it before still lives.
        let owner = slot.swap(RESERVED, Ordering::AcqRel);
        if !has_ended() {
            slot.store(owner, Ordering::Release);
            return;
        }
        last_look();
        self.stack.forget();
        slot.store(FREE, Ordering::Release);
    }
}

/// The calling thread's lane for synchronous samples; takes one if it has none. `None`, and
/// counted, when there is none left.
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

/// The kernel's number of the calling thread.
pub(super) fn own_thread_id() -> u32 {
    rustix::thread::gettid().as_raw_nonzero().get().cast_unsigned()
}

/// The lane of a thread, a free one if it has none yet; `None` when there is none left.
pub(super) fn take(thread_id: u32) -> Option<&'static Lane> {
    let owners = &OWNERS[..PREPARED_COUNT.load(Ordering::Acquire)];
    let is_own = |owner: &AtomicU32| owner.load(Ordering::Acquire) == thread_id;
    let take = |owner: &AtomicU32| {
        let before = owner.compare_exchange(FREE, thread_id, Ordering::AcqRel, Ordering::Acquire);
        // The drain may have been faster, for the same thread.
        before.is_ok() || before == Err(thread_id)
    };
    let index = owners.iter().position(is_own).or_else(|| owners.iter().position(take))?;
    Some(&LANES[index])
}

/// The lane at an address that came with a signal; `None` if there is none there.
pub(super) fn at(address: usize) -> Option<&'static Lane> {
    let offset_bytes = address.checked_sub(LANES.as_ptr() as usize)?;
    let index = offset_bytes / size_of::<Lane>();
    LANES.get(index).filter(|_| offset_bytes.is_multiple_of(size_of::<Lane>()))
}

/// The lane of the calling thread that the kernel writes samples into.
pub(super) fn of_this_thread_with_page() -> Option<&'static Lane> {
    let thread_id = own_thread_id();
    owned()
        .find(|lane| lane.owner() == thread_id && !lane.perf_page.load(Ordering::Relaxed).is_null())
}

/// All lanes that threads have.
pub(super) fn owned() -> impl Iterator<Item = &'static Lane> {
    let owners = &OWNERS[..PREPARED_COUNT.load(Ordering::Acquire)];
    let is_owned = |owner: &AtomicU32| owner.load(Ordering::Acquire) != FREE;
    let pairs = owners.iter().zip(&LANES);
    pairs.filter(move |(owner, _)| is_owned(owner)).map(|(_, lane)| lane)
}

/// Drain: sees to it that `free_count` lanes are free, and some for threads that take one
/// themselves.
///
/// # Errors
/// When the system has no memory for them.
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

/// Memory for the rings of a lane, for ever. The system gives real memory to what is used of it.
fn map_words() -> io::Result<&'static [AtomicU64]> {
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    let bytes = LANE_WORDS * size_of::<AtomicU64>();
    // SAFETY: a new private mapping, anywhere.
    let start = unsafe { libc::mmap(ptr::null_mut(), bytes, protection, flags, -1, 0) };
    if start == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the mapping is that long, zeroed, aligned to pages, and never unmapped.
    Ok(unsafe { slice::from_raw_parts(start.cast(), LANE_WORDS) })
}

/// How many words of its rings a thread may use.
#[inline]
pub(super) fn ring_words_max() -> u64 {
    RING_WORDS_MAX.load(Ordering::Relaxed)
}

/// A session wants rings of that size; they are never larger than [`super::ring::RING_BYTES`].
pub(super) fn limit_rings(bytes: usize) {
    RING_WORDS_MAX.store((bytes / size_of::<u64>()) as u64, Ordering::Relaxed);
}

/// How many synchronous samples found no lane since this was asked last.
pub(super) fn take_laneless_count() -> u64 {
    LANELESS_COUNT.swap(0, Ordering::Relaxed)
}

#[cfg(test)]
mod tests;
