//! Rings of words: how a thread hands over what it saw, without a lock and without waiting.
//!
//! Invariants:
//! 1. `tail <= head <= tail + capacity`; both only grow. The words between them are whole records.
//! 2. Only the producer writes words and `head`, and makes records visible by one store when they
//!    are whole; only the consumer writes `tail`.
//! 3. A ring has one producer at a time: of a thread's two rings one belongs to its signal handler
//!    and one to all its other code, so that a signal in the middle of a record finds nothing half
//!    done in its own ring.
//! 4. Memory of rings is never given back: a late producer writes where nobody minds.
//!
//! Threads: one producer, one consumer. [`record`] and [`record_free`] are called on the thread
//! that they tell of, not in signal handlers; they neither allocate nor lock.

use super::anchor;
use super::arch;
use super::clock;
use super::lane;
use super::walk;
use crate::recording::Kind;
use kvant_base::tag::Tag;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes of a ring. At 304 bytes for a stack of 30 callers it holds the allocations of one thread
/// at 1 GB/s until the next drain, and CPU samples of four seconds at the usual rate.
pub(super) const RING_BYTES: usize = 128 << 10;
pub(super) const RING_WORDS: usize = RING_BYTES / size_of::<u64>();
const _: () = assert!(RING_WORDS.is_power_of_two());

/// Frames of the process beyond this many, counted from the innermost, are left out.
pub(super) const FRAMES_MAX: usize = 256;

/// Something that one thread saw outside of a signal handler.
#[derive(Clone, Copy, Debug)]
pub struct Observation {
    /// What it is a sample of.
    pub kind: Kind,
    /// When it began: [`clock::monotonic_ns`](super::clock::monotonic_ns).
    pub time_mono_ns: u64,
    /// How long it lasted.
    pub duration_ns: u64,
    /// How much it stands for, in the unit of its kind.
    pub weight: u64,
    /// What was waited for.
    pub name: Option<&'static str>,
    /// Where the allocation is, for [`record_free`]; 0 for what is no allocation.
    pub address: usize,
    /// Callers to leave out, from that of [`record`] on: the sampler's own functions.
    pub frames_to_skip: usize,
}

/// Takes down an observation with the caller's stack. Counts it as dropped if there is no room.
#[inline(never)]
pub fn record(observation: &Observation) {
    let Some(lane) = lane::of_this_thread() else {
        return;
    };
    let header = Header {
        code: observation.kind.code(),
        has_interrupted_frame: false,
        kernel_frame_count: 0,
        tag: Tag::current_code(),
        time_mono_ns: observation.time_mono_ns,
        weight: observation.weight,
        duration_ns: observation.duration_ns,
        name: observation.name.unwrap_or(""),
        address: observation.address,
    };
    let mut entry = lane.synchronous.begin();
    let frame = arch::frame_pointer();
    let stack = lane.stack.from(frame);
    let mut skip_count = observation.frames_to_skip;
    let mut take = |address: usize| {
        if skip_count > 0 {
            skip_count -= 1;
            return true;
        }
        entry.push_frame(address as u64)
    };
    // SAFETY: the lane is that of the calling thread, and this function's frame is on its stack.
    unsafe { walk::from_frame(frame, stack, anchor::innermost(), &mut take) };
    entry.commit(&header);
}

/// Takes down that the allocation at `address`, of which a sample was taken, is freed.
pub fn record_free(address: usize) {
    let Some(lane) = lane::of_this_thread() else {
        return;
    };
    let header = Header {
        code: FREE_CODE,
        has_interrupted_frame: false,
        kernel_frame_count: 0,
        tag: 0,
        time_mono_ns: clock::monotonic_ns(),
        weight: 0,
        duration_ns: 0,
        name: "",
        address,
    };
    lane.synchronous.begin().commit(&header);
}

/// The code of a record that tells of a freed allocation; below are those of [`Kind`].
pub(super) const FREE_CODE: u8 = u8::MAX;

/// A record but for its frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    /// [`Kind::code`] or [`FREE_CODE`].
    pub(super) code: u8,
    /// Whether the first frame of the process is where a signal interrupted it; all others are
    /// return addresses.
    pub(super) has_interrupted_frame: bool,
    /// How many of the frames, the innermost, are the kernel's.
    pub(super) kernel_frame_count: u8,
    /// [`Tag::code`].
    pub(super) tag: u16,
    pub(super) time_mono_ns: u64,
    pub(super) weight: u64,
    pub(super) duration_ns: u64,
    pub(super) name: &'static str,
    pub(super) address: usize,
}

/// Words before the frames: what is small, packed; time; weight; duration; address of the name; its
/// length; address.
const HEADER_WORDS: u64 = 7;

pub(super) struct Ring {
    /// Set before the ring has its first producer.
    words: OnceLock<&'static [AtomicU64]>,
    /// Words that were ever written.
    head: AtomicU64,
    /// Words that were ever read.
    tail: AtomicU64,
    /// Records for which there was no room, since the consumer asked last.
    dropped_count: AtomicU64,
}

impl Ring {
    pub(super) const fn new() -> Ring {
        Ring {
            words: OnceLock::new(),
            head: AtomicU64::new(0),
            tail: AtomicU64::new(0),
            dropped_count: AtomicU64::new(0),
        }
    }

    /// Gives the ring its memory, a power of two of words.
    pub(super) fn prepare(&self, words: &'static [AtomicU64]) {
        assert!(words.len().is_power_of_two());
        self.words.get_or_init(|| words);
    }

    /// Producer: begins a record.
    pub(super) fn begin(&self) -> Entry<'_> {
        let words = self.words.get().copied().unwrap_or_default();
        let start = self.head.load(Ordering::Relaxed);
        let used = start - self.tail.load(Ordering::Acquire);
        // Less than the whole ring when a session wants smaller ones than there are.
        let capacity = lane::ring_words_max().min(words.len() as u64);
        Entry {
            ring: self,
            words,
            start,
            frame_count: 0,
            free_words: capacity.saturating_sub(used),
        }
    }

    /// Producer or consumer: records were lost.
    pub(super) fn count_dropped(&self, count: u64) {
        self.dropped_count.fetch_add(count, Ordering::Relaxed);
    }

    /// Consumer: how many records were lost since it asked last.
    pub(super) fn take_dropped_count(&self) -> u64 {
        self.dropped_count.swap(0, Ordering::Relaxed)
    }

    /// Consumer: forgets what is there.
    pub(super) fn clear(&self) {
        self.tail.store(self.head.load(Ordering::Acquire), Ordering::Release);
        self.dropped_count.store(0, Ordering::Relaxed);
    }

    /// Consumer: whether there is no record.
    pub(super) fn is_empty(&self) -> bool {
        self.tail.load(Ordering::Relaxed) == self.head.load(Ordering::Acquire)
    }

    /// Consumer: passes on all records that are there, each with its frames, the innermost first.
    pub(super) fn drain(&self, frames: &mut Vec<u64>, mut take: impl FnMut(&Header, &[u64])) {
        let words = self.words.get().copied().unwrap_or_default();
        let head = self.head.load(Ordering::Acquire);
        let mut at = self.tail.load(Ordering::Relaxed);
        while at < head {
            let word = |index: u64| load(words, at + index);
            let packed = word(0);
            let frame_count = packed >> 16 & 0xffff;
            // SAFETY: `commit` wrote the address and the length of a name that lives for ever
            // (invariants 1 and 2).
            let name = unsafe {
                let bytes = std::slice::from_raw_parts(word(4) as *const u8, word(5) as usize);
                std::str::from_utf8_unchecked(bytes)
            };
            let header = Header {
                code: packed as u8,
                kernel_frame_count: (packed >> 8) as u8,
                tag: (packed >> 32) as u16,
                has_interrupted_frame: packed >> 48 & 1 == 1,
                time_mono_ns: word(1),
                weight: word(2),
                duration_ns: word(3),
                name,
                address: word(6) as usize,
            };
            frames.clear();
            frames.extend((0..frame_count).map(|index| word(HEADER_WORDS + index)));
            take(&header, frames);
            at += HEADER_WORDS + frame_count;
        }
        self.tail.store(at, Ordering::Release);
    }
}

/// A record that is being written.
pub(super) struct Entry<'a> {
    ring: &'a Ring,
    words: &'static [AtomicU64],
    start: u64,
    frame_count: u64,
    free_words: u64,
}

impl Entry<'_> {
    /// Adds a frame. False when it was the last one that is wanted.
    #[inline]
    pub(super) fn push_frame(&mut self, address: u64) -> bool {
        let index = HEADER_WORDS + self.frame_count;
        self.frame_count += 1;
        if index >= self.free_words {
            // `commit` will see that it was too much.
            return false;
        }
        store(self.words, self.start + index, address);
        self.frame_count < FRAMES_MAX as u64
    }

    /// Makes the record visible, or counts it as dropped if there was no room for it.
    pub(super) fn commit(self, header: &Header) {
        let word_count = HEADER_WORDS + self.frame_count;
        if word_count > self.free_words {
            self.ring.count_dropped(1);
            return;
        }
        let packed = u64::from(header.code)
            | u64::from(header.kernel_frame_count) << 8
            | self.frame_count << 16
            | u64::from(header.tag) << 32
            | u64::from(header.has_interrupted_frame) << 48;
        let fixed = [
            packed,
            header.time_mono_ns,
            header.weight,
            header.duration_ns,
            header.name.as_ptr() as u64,
            header.name.len() as u64,
            header.address as u64,
        ];
        for (index, word) in (0..HEADER_WORDS).zip(fixed) {
            store(self.words, self.start + index, word);
        }
        self.ring.head.store(self.start + word_count, Ordering::Release);
    }
}

#[inline]
fn load(words: &[AtomicU64], position: u64) -> u64 {
    words[position as usize & (words.len() - 1)].load(Ordering::Relaxed)
}

#[inline]
fn store(words: &[AtomicU64], position: u64, word: u64) {
    words[position as usize & (words.len() - 1)].store(word, Ordering::Relaxed);
}

#[cfg(test)]
mod tests;
