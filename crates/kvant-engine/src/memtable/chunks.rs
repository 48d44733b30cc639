//! Chunks for the arenas of memtables: prepared before a writer needs one, and reused.
//!
//! The first touch of a chunk makes the system find and clear its memory: 0.1 to several
//! milliseconds, during which the writer holds up all others. A chunk of the pool has been touched:
//! by the memtable that used it before, or by the task that calls [`ChunkPool::tend`]
//! (`docs/decisions/0013-chunks-are-prepared-and-reused.md`).
//!
//! Invariants:
//! 1. every chunk here has [`CHUNK_BYTES`], all of them provided by the system, and is counted to
//!    [`Consumer::Memtables`];
//! 2. there are at most `kept_max` of them. Those that no memtable needed for [`WINDOW_NS`] are
//!    released, down to `ready_count`. While writes go on, memtables and pool together are as large
//!    as the memtables at most were, so that the block cache keeps its size between two flushes.
//!
//! Threads: any; one task calls [`ChunkPool::tend`].

use kvant_base::lock::NamedMutex;
use kvant_base::{Consumer, MemoryBudget, Reservation};
use kvant_env::Step;
use kvant_env::posix::Mapping;
use std::alloc::{Layout, handle_alloc_error};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

/// A huge page of x86-64: a search in the list touches many pages, and translating their addresses
/// costs as much as fetching them. Larger chunks would save system calls and leave more memory
/// unused at the end of a memtable.
pub(super) const CHUNK_BYTES: usize = 2 << 20;
/// Chunks prepared ahead of the writer. Preparing one takes less time than filling one.
const READY_COUNT_MAX: usize = 2;
/// How long chunks of former memtables are kept although no memtable needs them.
const WINDOW_NS: u64 = 1_000_000_000;

/// The budget and the chunks that the memtables of a database share.
pub(crate) struct ChunkPool {
    memory: Arc<MemoryBudget>,
    ready_count: usize,
    kept_max: usize,
    spare: NamedMutex<Spare>,
    /// Set when a memtable has grown so far that the next chunk it takes comes from here.
    is_used: AtomicBool,
    wake: OnceLock<Box<dyn Fn() + Send + Sync>>,
}

pub(crate) struct ChunkStats {
    pub(crate) spare_bytes: u64,
    pub(crate) taken_count: u64,
    /// Of these, chunks that were not prepared in time.
    pub(crate) unprepared_count: u64,
}

struct Spare {
    chunks: Vec<Mapping>,
    reservation: Reservation,
    taken_count: u64,
    unprepared_count: u64,
    /// The fewest chunks there were in the current window.
    fewest: usize,
    /// When the window ends; `None` while there are too few chunks to release any.
    window_end_ns: Option<u64>,
}

impl Spare {
    fn count_memory(&mut self) {
        self.reservation.resize((self.chunks.len() * CHUNK_BYTES) as u64);
    }
}

impl ChunkPool {
    /// A pool that keeps up to `kept_bytes`, for memtables whose memory is counted in `memory`.
    pub(crate) fn new(memory: &Arc<MemoryBudget>, kept_bytes: u64) -> Arc<ChunkPool> {
        let kept_max = usize::try_from(kept_bytes / CHUNK_BYTES as u64).unwrap_or(usize::MAX);
        let spare = Spare {
            chunks: Vec::new(),
            reservation: memory.reserve(Consumer::Memtables, 0),
            taken_count: 0,
            unprepared_count: 0,
            fewest: 0,
            window_end_ns: None,
        };
        Arc::new(ChunkPool {
            memory: Arc::clone(memory),
            ready_count: kept_max.min(READY_COUNT_MAX),
            kept_max,
            spare: NamedMutex::new("spare_chunks", spare),
            is_used: AtomicBool::new(false),
            wake: OnceLock::new(),
        })
    }

    /// Memory of a memtable, none yet.
    pub(super) fn reserve(&self) -> Reservation {
        self.memory.reserve(Consumer::Memtables, 0)
    }

    /// Calls `wake` when [`ChunkPool::tend`] has work, with no lock held. Set once; a later call
    /// has no effect.
    pub(crate) fn on_work(&self, wake: impl Fn() + Send + Sync + 'static) {
        self.wake.get_or_init(|| Box::new(wake));
        self.wake();
    }

    fn wake(&self) {
        if let Some(wake) = self.wake.get() {
            wake();
        }
    }

    /// Has chunks prepared: [`ChunkPool::take`] is going to be called.
    pub(super) fn expect_use(&self) {
        if self.ready_count > 0 && !self.is_used.swap(true, Ordering::Relaxed) {
            self.wake();
        }
    }

    /// A chunk with any contents. Its memory may not have been provided yet.
    pub(super) fn take(&self) -> Mapping {
        let mut spare = self.spare.lock();
        spare.taken_count += 1;
        let chunk = spare.chunks.pop();
        spare.unprepared_count += u64::from(chunk.is_none());
        spare.fewest = spare.fewest.min(spare.chunks.len());
        spare.count_memory();
        let is_low = spare.chunks.len() < self.ready_count;
        drop(spare);
        if is_low {
            self.wake();
        }
        chunk.unwrap_or_else(|| map(CHUNK_BYTES))
    }

    /// Keeps those of `chunks` for which there is room, and unmaps the others.
    pub(super) fn put_back(&self, chunks: Vec<Mapping>) {
        let mut chunks = chunks.into_iter().filter(|chunk| chunk.bytes() == CHUNK_BYTES);
        let mut spare = self.spare.lock();
        let room = self.kept_max.saturating_sub(spare.chunks.len());
        spare.chunks.extend(chunks.by_ref().take(room));
        spare.count_memory();
        let is_over = spare.chunks.len() > self.ready_count;
        drop(spare);
        if is_over {
            self.wake();
        }
    }

    /// Prepares a chunk if there are too few, or releases those that were not needed.
    pub(crate) fn tend(&self, now_ns: u64) -> Step {
        let mut spare = self.spare.lock();
        if spare.chunks.len() < self.ready_count {
            drop(spare);
            return if self.is_used.load(Ordering::Relaxed) { self.prepare() } else { Step::Idle };
        }
        let count = spare.chunks.len();
        let unneeded_count = match spare.window_end_ns {
            Some(end_ns) if now_ns < end_ns => return Step::IdleUntil(end_ns),
            Some(_) => spare.fewest.saturating_sub(self.ready_count),
            None => 0,
        };
        let unneeded = spare.chunks.split_off(count - unneeded_count);
        spare.count_memory();
        spare.fewest = spare.chunks.len();
        spare.window_end_ns = (spare.fewest > self.ready_count).then_some(now_ns + WINDOW_NS);
        let step = spare.window_end_ns.map_or(Step::Idle, Step::IdleUntil);
        drop(spare);
        drop(unneeded);
        step
    }

    fn prepare(&self) -> Step {
        // Without memory for it, the writer finds out, and ends the process.
        let Ok(mut chunk) = Mapping::new(CHUNK_BYTES) else { return Step::Idle };
        chunk.touch();
        self.put_back(vec![chunk]);
        Step::Worked
    }

    pub(crate) fn stats(&self) -> ChunkStats {
        let spare = self.spare.lock();
        ChunkStats {
            spare_bytes: spare.reservation.bytes(),
            taken_count: spare.taken_count,
            unprepared_count: spare.unprepared_count,
        }
    }
}

/// Maps memory, whole huge pages where there is room for one.
pub(super) fn map(bytes: usize) -> Mapping {
    Mapping::new(bytes).unwrap_or_else(|_| {
        let layout = Layout::array::<u8>(bytes);
        handle_alloc_error(layout.expect("a chunk is far smaller than the address space"))
    })
}

#[cfg(test)]
mod tests;
