//! Memory for memtables, chunks of their arenas and hash indexes: prepared before a writer needs
//! it, and reused.
//!
//! The first touch of a chunk makes the system find and clear its memory: 0.1 to several
//! milliseconds, during which the writer holds up all others. A chunk of the pool has been touched:
//! by the memtable that used it before, or by the task that calls [`ChunkPool::tend`]
//! (`docs/decisions/0013-chunks-are-prepared-and-reused.md`). That task also zeroes the index of
//! the next memtable.
//!
//! Invariants:
//! 1. every shared chunk here has [`CHUNK_BYTES`], all of them provided by the system; a single
//!    chunk, which is for one piece, has any length, and so has an index;
//! 2. all memory here is counted to [`Consumer::Memtables`]. That of former memtables is at most
//!    `kept_bytes`;
//! 3. what no memtable needed for [`WINDOW_NS`] is released, except `ready_count` shared chunks and
//!    the prepared index. While writes go on, memtables and pool together are as
//!    large as the memtables at most were, so that the block cache keeps its size between two
//!    flushes.
//!
//! Threads: any; one task calls [`ChunkPool::tend`].

use kvant_base::lock::NamedMutex;
use kvant_base::{Consumer, MemoryBudget, Reservation};
use kvant_env::Step;
use kvant_env::posix::Mapping;
use std::alloc::{Layout, handle_alloc_error};
use std::collections::BTreeMap;
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
/// A single chunk that is reused may be longer than its piece by one part in this many.
const SINGLE_EXCESS_PARTS: usize = 4;
/// Shorter indexes are not prepared: the system provides their memory in small pages, each of which
/// takes microseconds.
const INDEX_BYTES_MIN: usize = 2 << 20;

/// The budget and the chunks that the memtables of a database share.
pub(crate) struct ChunkPool {
    memory: Arc<MemoryBudget>,
    ready_count: usize,
    kept_bytes: usize,
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
    shared: Stack,
    /// By length.
    single: BTreeMap<usize, Stack>,
    /// The memory of an index of a former memtable, of `index_bytes`: at most one.
    used_index: Stack,
    /// Zeroed memory of `index_bytes`.
    ready_index: Option<Mapping>,
    /// Length of the last index that was taken; 0 before the first.
    index_bytes: usize,
    reservation: Reservation,
    taken_count: u64,
    unprepared_count: u64,
    /// When the window ends; `None` while there are no chunks to release.
    window_end_ns: Option<u64>,
}

/// Chunks of one length.
#[derive(Default)]
struct Stack {
    chunks: Vec<Mapping>,
    /// The fewest there were in the current window.
    fewest: usize,
}

impl Stack {
    fn take(&mut self) -> Option<Mapping> {
        let chunk = self.chunks.pop();
        self.fewest = self.fewest.min(self.chunks.len());
        chunk
    }

    /// Removes what was not needed in the window that ends now, beyond `ready_count`.
    fn end_window(&mut self, ready_count: usize) -> Vec<Mapping> {
        let unneeded_count = self.fewest.saturating_sub(ready_count);
        let unneeded = self.chunks.split_off(self.chunks.len() - unneeded_count);
        self.fewest = self.chunks.len();
        unneeded
    }
}

impl Spare {
    fn bytes(&self) -> usize {
        self.reservation.bytes() as usize
    }

    /// Counts `taken`, a chunk of this pool, or that there was none for a memtable.
    fn note_taken(&mut self, taken: Option<&Mapping>) {
        self.taken_count += 1;
        self.unprepared_count += u64::from(taken.is_none());
        self.uncount(taken);
    }

    fn count(&mut self, added: &Mapping) {
        self.reservation.resize((self.bytes() + added.bytes()) as u64);
    }

    fn uncount<'a>(&mut self, removed: impl IntoIterator<Item = &'a Mapping>) {
        let bytes: usize = removed.into_iter().map(Mapping::bytes).sum();
        self.reservation.resize((self.bytes() - bytes) as u64);
    }

    fn keep(&mut self, chunk: Mapping, is_single: bool) {
        self.count(&chunk);
        let stack = match is_single {
            true => self.single.entry(chunk.bytes()).or_default(),
            false => &mut self.shared,
        };
        stack.chunks.push(chunk);
    }

    /// Removes what was not needed in the window that ends now, and begins the next one, if there
    /// may be something to release then.
    fn end_window(&mut self, ready_count: usize, now_ns: u64) -> Vec<Mapping> {
        let mut unneeded = self.shared.end_window(ready_count);
        unneeded.extend(self.used_index.end_window(0));
        unneeded.extend(self.single.values_mut().flat_map(|stack| stack.end_window(0)));
        self.single.retain(|_, stack| !stack.chunks.is_empty());
        self.uncount(&unneeded);
        self.window_end_ns = self.has_more(ready_count).then_some(now_ns + WINDOW_NS);
        unneeded
    }

    /// Whether there are chunks beyond those that are kept ready.
    fn has_more(&self, ready_count: usize) -> bool {
        self.shared.chunks.len() > ready_count
            || !self.single.is_empty()
            || !self.used_index.chunks.is_empty()
    }
}

impl ChunkPool {
    /// A pool that keeps up to `kept_bytes`, for memtables whose memory is counted in `memory`.
    pub(crate) fn new(memory: &Arc<MemoryBudget>, kept_bytes: u64) -> Arc<ChunkPool> {
        let kept_bytes = usize::try_from(kept_bytes).unwrap_or(usize::MAX);
        let spare = Spare {
            shared: Stack::default(),
            single: BTreeMap::new(),
            used_index: Stack::default(),
            ready_index: None,
            index_bytes: 0,
            reservation: memory.reserve(Consumer::Memtables, 0),
            taken_count: 0,
            unprepared_count: 0,
            window_end_ns: None,
        };
        Arc::new(ChunkPool {
            memory: Arc::clone(memory),
            ready_count: (kept_bytes / CHUNK_BYTES).min(READY_COUNT_MAX),
            kept_bytes,
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

    /// A shared chunk with any contents. Its memory may not have been provided yet.
    pub(super) fn take(&self) -> Mapping {
        let mut spare = self.spare.lock();
        let chunk = spare.shared.take();
        spare.note_taken(chunk.as_ref());
        let is_low = spare.shared.chunks.len() < self.ready_count;
        drop(spare);
        if is_low {
            self.wake();
        }
        chunk.unwrap_or_else(|| map(CHUNK_BYTES))
    }

    /// A chunk for one piece of `bytes`, as [`ChunkPool::take`].
    pub(super) fn take_single(&self, bytes: usize) -> Mapping {
        let mut spare = self.spare.lock();
        let mut fitting = spare.single.range_mut(bytes..=bytes + bytes / SINGLE_EXCESS_PARTS);
        let chunk = fitting.find_map(|(_, stack)| stack.take());
        spare.note_taken(chunk.as_ref());
        drop(spare);
        chunk.unwrap_or_else(|| map(bytes))
    }

    /// Zeroed memory for an index of `bytes`.
    pub(super) fn take_index(&self, bytes: usize) -> Mapping {
        if bytes < INDEX_BYTES_MIN || self.ready_count == 0 {
            return map(bytes);
        }
        let mut spare = self.spare.lock();
        let ready = spare.ready_index.take();
        let has_changed = spare.index_bytes != bytes;
        let unfit = if has_changed { spare.used_index.take() } else { None };
        spare.index_bytes = bytes;
        spare.uncount(ready.iter().chain(&unfit));
        drop(spare);
        drop(unfit);
        self.wake();
        ready.filter(|ready| ready.bytes() == bytes).unwrap_or_else(|| map(bytes))
    }

    /// Keeps the memory of an index for the next one, if there is room, or unmaps it.
    pub(super) fn put_back_index(&self, index: Mapping) {
        let mut spare = self.spare.lock();
        let is_kept = index.bytes() == spare.index_bytes
            && spare.used_index.chunks.is_empty()
            && spare.bytes() + index.bytes() <= self.kept_bytes;
        if is_kept {
            spare.count(&index);
            spare.used_index.chunks.push(index);
            drop(spare);
            self.wake();
        }
    }

    /// Keeps those of the chunks for which there is room, and unmaps the others. Of `shared`, only
    /// those of full length.
    pub(super) fn put_back(&self, shared: Vec<Mapping>, single: Vec<Mapping>) {
        let shared = shared.into_iter().filter(|chunk| chunk.bytes() == CHUNK_BYTES);
        let all = shared.map(|chunk| (chunk, false));
        let all = all.chain(single.into_iter().map(|chunk| (chunk, true)));
        let mut left_over = Vec::new();
        let mut spare = self.spare.lock();
        for (chunk, is_single) in all {
            if spare.bytes() + chunk.bytes() <= self.kept_bytes {
                spare.keep(chunk, is_single);
            } else {
                left_over.push(chunk);
            }
        }
        let has_more = spare.has_more(self.ready_count);
        drop(spare);
        drop(left_over);
        if has_more {
            self.wake();
        }
    }

    /// Prepares a chunk or an index if there are too few, or releases those that were not needed.
    pub(crate) fn tend(&self, now_ns: u64) -> Step {
        let mut spare = self.spare.lock();
        if self.is_used.load(Ordering::Relaxed) {
            if spare.shared.chunks.len() < self.ready_count {
                drop(spare);
                return self.prepare();
            }
            if spare.ready_index.is_none() && spare.index_bytes > 0 {
                let (used, bytes) = (spare.used_index.take(), spare.index_bytes);
                spare.uncount(&used);
                drop(spare);
                return self.prepare_index(used, bytes);
            }
        }
        if let Some(end_ns) = spare.window_end_ns.filter(|&end_ns| now_ns < end_ns) {
            return Step::IdleUntil(end_ns);
        }
        let unneeded = spare.end_window(self.ready_count, now_ns);
        let step = spare.window_end_ns.map_or(Step::Idle, Step::IdleUntil);
        drop(spare);
        drop(unneeded);
        step
    }

    fn prepare(&self) -> Step {
        let Some(chunk) = map_touched(CHUNK_BYTES) else { return Step::Idle };
        self.spare.lock().keep(chunk, false);
        Step::Worked
    }

    fn prepare_index(&self, used: Option<Mapping>, bytes: usize) -> Step {
        let zeroed = used.map(|mut used| {
            used.zero();
            used
        });
        let Some(index) = zeroed.or_else(|| map_touched(bytes)) else { return Step::Idle };
        let mut spare = self.spare.lock();
        // A memtable may have taken an index of another length meanwhile.
        if index.bytes() == spare.index_bytes {
            spare.count(&index);
            spare.ready_index = Some(index);
        }
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

/// Maps memory and has the system provide it. `None` if there is none: the writer that needs it
/// finds out, and ends the process.
fn map_touched(bytes: usize) -> Option<Mapping> {
    let mut mapping = Mapping::new(bytes).ok()?;
    mapping.touch();
    Some(mapping)
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
