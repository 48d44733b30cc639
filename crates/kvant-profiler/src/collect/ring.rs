//! Rings of words, by which a thread hands records to the drain without locking or waiting.
//!
//! Invariants:
//! 1. `tail <= head <= tail + capacity`; both only grow. The words between them are whole records.
//! 2. Only the producer writes words and `head`, and publishes a whole record with one store; only
//!    the consumer writes `tail`.
//! 3. A ring has one producer at a time. Of a thread's two rings one belongs to its signal handler
//!    and one to all its other code, so a signal in the middle of a record finds its own ring
//!    consistent.
//! 4. A ring's memory is never unmapped: a late producer writes into memory that no reader uses.
//!
//! Threads: one producer, one consumer.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// Words of a ring, of 128 KiB. At 304 bytes for a stack of 30 callers it holds the allocations of
/// one thread at 1 GB/s until the next drain, and the CPU samples of four seconds at the default
/// rate.
pub(super) const RING_WORDS: usize = (128 << 10) / size_of::<u64>();
const _: () = assert!(RING_WORDS.is_power_of_two());

/// Frames of user space beyond this many, counted from the innermost, are omitted.
pub(super) const FRAMES_MAX: usize = 256;

/// The code of a record of a free. Smaller codes are those of [`Kind`](crate::recording::Kind).
pub(super) const FREE_CODE: u8 = u8::MAX;

/// A record without its frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Header {
    /// A kind's code, or [`FREE_CODE`].
    pub(super) code: u8,
    /// Whether the first user frame is the instruction that a signal interrupted; all others are
    /// return addresses.
    pub(super) has_interrupted_frame: bool,
    /// Number of kernel frames; they are the innermost.
    pub(super) kernel_frame_count: u8,
    /// [`Tag::code`](kvant_base::tag::Tag::code).
    pub(super) tag: u16,
    pub(super) time_mono_ns: u64,
    pub(super) weight: u64,
    pub(super) duration_ns: u64,
    pub(super) name: &'static str,
    pub(super) address: usize,
}

/// Words before the frames: the small fields packed; time; weight; duration; address of the name;
/// its length; address.
const HEADER_WORDS: u64 = 7;

pub(super) struct Ring {
    /// Set before the first producer.
    words: OnceLock<&'static [AtomicU64]>,
    /// Total number of words written.
    head: AtomicU64,
    /// Total number of words read.
    tail: AtomicU64,
    /// Records for which there was no room, since the consumer last took the count.
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

    /// Gives the ring its memory: a power of two of words.
    pub(super) fn prepare(&self, words: &'static [AtomicU64]) {
        assert!(words.len().is_power_of_two());
        self.words.get_or_init(|| words);
    }

    pub(super) fn begin(&self) -> Entry<'_> {
        let words = self.words.get().copied().unwrap_or_default();
        let start = self.head.load(Ordering::Relaxed);
        let used = start - self.tail.load(Ordering::Acquire);
        Entry { ring: self, words, start, frame_count: 0, free_words: words.len() as u64 - used }
    }

    /// Producer or consumer: records were lost.
    pub(super) fn count_dropped(&self, count: u64) {
        self.dropped_count.fetch_add(count, Ordering::Relaxed);
    }

    /// Consumer: takes the number of lost records.
    pub(super) fn take_dropped_count(&self) -> u64 {
        self.dropped_count.swap(0, Ordering::Relaxed)
    }

    pub(super) fn clear(&self) {
        self.tail.store(self.head.load(Ordering::Acquire), Ordering::Release);
        self.dropped_count.store(0, Ordering::Relaxed);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.tail.load(Ordering::Relaxed) == self.head.load(Ordering::Acquire)
    }

    /// Consumer: passes all records to `take`, each with its frames, innermost first.
    pub(super) fn drain(&self, frames: &mut Vec<u64>, mut take: impl FnMut(&Header, &[u64])) {
        let words = self.words.get().copied().unwrap_or_default();
        let head = self.head.load(Ordering::Acquire);
        let mut at = self.tail.load(Ordering::Relaxed);
        while at < head {
            let word = |index: u64| load(words, at + index);
            let packed = word(0);
            let frame_count = packed >> 16 & 0xffff;
            // SAFETY: `commit` wrote address and length of a static string (invariants 1 and 2).
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

/// A record under construction.
pub(super) struct Entry<'a> {
    ring: &'a Ring,
    words: &'static [AtomicU64],
    start: u64,
    frame_count: u64,
    free_words: u64,
}

impl Entry<'_> {
    /// Adds a frame. Returns false if it was the last one wanted.
    #[inline]
    pub(super) fn push_frame(&mut self, address: u64) -> bool {
        let index = HEADER_WORDS + self.frame_count;
        self.frame_count += 1;
        if index >= self.free_words {
            // `commit` notices the overflow.
            return false;
        }
        store(self.words, self.start + index, address);
        self.frame_count < FRAMES_MAX as u64
    }

    /// Publishes the record, or counts it as dropped if there was no room.
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
