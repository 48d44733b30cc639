//! Returns memory that the allocator keeps to the system.
//!
//! What is freed stays resident: blocks of the cache, of tables that a compaction has replaced, or
//! that made room for memtables. The budget counts them no more (`docs/decisions/`, 0013 and 0046).
//! It returns only when it is needed: the process is about to exceed the budget, or nothing has
//! taken the memory again for a minute.
//!
//! Free pages of [`posix::Page`] return first, and keep no thread waiting. If that is not enough,
//! the C library returns what it has, which is an event: it locks its heaps, one after the other,
//! and threads that allocate wait for it, 14 to 60 ms for some 200 MiB. What that leaves uncounted
//! is counted from then on, as [`Consumer::Process`], so that the block cache makes room for it.
//! Mapped files are resident too: the program's, and the tables of LevelDB.
//!
//! The same task prepares pages for blocks and filters, so that threads that need some need not.
//!
//! Threads: a task of its own, which looks once per second, 20 times near the limit, and when pages
//! are wanted. It has the priority of a selector, because of these locks.

use crate::{Clock, Env, Step, Task, posix};
use kvant_base::events::{EventKind, Field};
use kvant_base::lock::NamedMutex;
use kvant_base::log::{Level, Log};
use kvant_base::{Consumer, Events, MemoryBudget, Reservation};
use std::sync::Arc;

/// One part in this many of the budget is what the block cache leaves free.
const FREE_PARTS: u64 = 16;
/// The C library releases memory when one part in this many of the budget is neither counted nor
/// expected, and the process has less left than the cache leaves free. Less than that: more is
/// freed between two looks.
const RELEASED_PARTS: u64 = 20;
/// Free pages are released for half of that: they keep no thread waiting.
const PAGES_RELEASED_PARTS: u64 = 40;
/// Or when the uncounted part has been as large for this long. The cache takes the memory of tables
/// that a compaction has replaced again within seconds.
const UNUSED_NS: u64 = 60_000_000_000;
const INTERVAL_NS: u64 = 1_000_000_000;
/// While the process has less left than twice what the cache leaves free: within a second, a
/// compaction frees tens of MiB.
const NEAR_INTERVAL_NS: u64 = 50_000_000;

/// Starts the task, which ends with the process. `memory` is the budget of all that the process
/// holds.
pub fn keep_releasing(
    env: &Env,
    memory: &Arc<MemoryBudget>,
    events: &Arc<Events>,
    log: &Arc<dyn Log>,
) {
    let (memory, events) = (Arc::clone(memory), Arc::clone(events));
    let task = FreedMemory::new(memory, events, Arc::clone(&env.clock), Arc::clone(log));
    let handle = env.spawner.spawn(Arc::new(task));
    posix::on_pages_wanted(move || handle.wake());
}

struct FreedMemory {
    memory: Arc<MemoryBudget>,
    events: Arc<Events>,
    clock: Arc<dyn Clock>,
    log: Arc<dyn Log>,
    state: NamedMutex<State>,
}

/// What is released.
#[derive(Clone, Copy)]
enum Kind {
    /// Free pages of blocks and filters.
    Pages,
    /// Freed memory of the allocator.
    Heaps,
}

impl Kind {
    /// One of so many parts of the budget is worth a release.
    fn parts(self) -> u64 {
        match self {
            Kind::Pages => PAGES_RELEASED_PARTS,
            Kind::Heaps => RELEASED_PARTS,
        }
    }
}

/// What the task knows since the last release.
#[derive(Default)]
struct State {
    /// The least that was resident and counted by no other consumer: it stays. `None` until the
    /// first look.
    expected: Option<Reservation>,
    /// Since when there is more, by what is worth a release, of each kind.
    grown_since_ns: [Option<u64>; 2],
    /// When the C library released memory the last time.
    released_ns: Option<u64>,
}

impl FreedMemory {
    fn new(
        memory: Arc<MemoryBudget>,
        events: Arc<Events>,
        clock: Arc<dyn Clock>,
        log: Arc<dyn Log>,
    ) -> FreedMemory {
        let state = NamedMutex::new("freed memory", State::default());
        FreedMemory { memory, events, clock, log, state }
    }

    /// Whether to release now, with so much resident memory, of which so much is counted by no
    /// other consumer: if at least one part in [`Kind::parts`] of the budget is not expected.
    fn is_due(&self, resident_bytes: u64, uncounted_bytes: u64, kind: Kind) -> bool {
        let mut state = self.state.lock();
        let expected = state
            .expected
            .get_or_insert_with(|| self.memory.reserve(Consumer::Process, uncounted_bytes));
        let expected_bytes = expected.bytes().min(uncounted_bytes);
        expected.resize(expected_bytes);
        let since_ns = &mut state.grown_since_ns[kind as usize];
        if uncounted_bytes - expected_bytes < self.memory.limit_bytes() / kind.parts() {
            *since_ns = None;
            return false;
        }
        let now_ns = self.clock.monotonic_ns();
        let grown_since_ns = *since_ns.get_or_insert(now_ns);
        self.is_near_limit(resident_bytes, 1) || now_ns - grown_since_ns >= UNUSED_NS
    }

    /// Whether the process has less left than `parts` times what the block cache leaves free.
    fn is_near_limit(&self, resident_bytes: u64, parts: u64) -> bool {
        let limit_bytes = self.memory.limit_bytes();
        resident_bytes + limit_bytes / FREE_PARTS * parts > limit_bytes
    }

    /// At most one release per interval keeps threads waiting.
    fn may_release(&self) -> bool {
        let released_ns = self.state.lock().released_ns;
        released_ns.is_none_or(|at_ns| self.clock.monotonic_ns() - at_ns >= INTERVAL_NS)
    }

    fn release(&self, uncounted_bytes: u64) {
        let start_ns = self.clock.monotonic_ns();
        posix::release_freed_memory();
        let end_ns = self.clock.monotonic_ns();
        let left_bytes = uncounted_bytes_of(&self.memory).map_or(uncounted_bytes, |(_, left)| left);
        let mut state = self.state.lock();
        state.grown_since_ns = [None; 2];
        state.released_ns = Some(end_ns);
        if let Some(expected) = &mut state.expected {
            expected.resize(left_bytes);
        }
        drop(state);
        let bytes = uncounted_bytes.saturating_sub(left_bytes);
        let fields = vec![("bytes", Field::Number(bytes))];
        self.events.add_complete(EventKind::Release, start_ns, end_ns, fields);
        let us = (end_ns - start_ns) / 1000;
        self.log.event(Level::Info, "memory_released", &[("bytes", &bytes), ("us", &us)]);
    }
}

/// Resident memory, and what of it no other consumer of `memory` counts; `None` if the system does
/// not tell.
fn uncounted_bytes_of(memory: &MemoryBudget) -> Option<(u64, u64)> {
    let resident_bytes = posix::resident_bytes()?;
    let counted_bytes = memory.used_bytes_total() - memory.used_bytes(Consumer::Process);
    Some((resident_bytes, resident_bytes.saturating_sub(counted_bytes)))
}

impl Task for FreedMemory {
    fn name(&self) -> &str {
        "kvant-memory"
    }

    fn step(&self) -> Step {
        posix::prepare_pages();
        // A system that does not tell is left alone.
        let Some((mut resident_bytes, mut uncounted_bytes)) = uncounted_bytes_of(&self.memory)
        else {
            return Step::Finished;
        };
        // Fewer free pages than that are taken again before they have returned.
        if self.is_due(resident_bytes, uncounted_bytes, Kind::Pages)
            && posix::free_page_bytes() >= self.memory.limit_bytes() / PAGES_RELEASED_PARTS
        {
            posix::release_free_pages();
            self.state.lock().grown_since_ns[Kind::Pages as usize] = None;
            let left = uncounted_bytes_of(&self.memory);
            (resident_bytes, uncounted_bytes) = left.unwrap_or((resident_bytes, uncounted_bytes));
        }
        if self.is_due(resident_bytes, uncounted_bytes, Kind::Heaps) && self.may_release() {
            self.release(uncounted_bytes);
        }
        let is_near = self.is_near_limit(resident_bytes, 2);
        let interval_ns = if is_near { NEAR_INTERVAL_NS } else { INTERVAL_NS };
        Step::IdleUntil(self.clock.monotonic_ns() + interval_ns)
    }
}

#[cfg(test)]
mod tests;
