//! The bounds of a thread's stack.
//!
//! A thread must find them in its signal handler, without a system call. So:
//!
//! 1. The end of the main thread's stack comes from `/proc/self/maps`, which is read when a session
//!    starts.
//! 2. The C libraries of Linux (glibc, musl, bionic) place the control block of any other thread
//!    above its stack, in the same mapping; the thread pointer leads there. [`learn`] verifies this
//!    with the calling thread's own stack.
//! 3. Otherwise the thread stores its stack pointer, reads no further than to the end of that page,
//!    and the drain looks up the mapping.
//!
//! Threads: each uses its own stack; the drain learns and looks up.

use super::arch;
use crate::maps::Mapping;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

const PAGE_BYTES: usize = 4096;
/// Larger than any of our stacks. The main thread's stack may grow up to here without meeting
/// another mapping; one of those may be an alternate signal stack.
const STACK_BYTES_MAX: usize = 64 << 20;

/// The end of the main thread's stack; 0 while unknown.
static MAIN_END: AtomicUsize = AtomicUsize::new(0);
static IS_CONTROL_BLOCK_ABOVE: AtomicBool = AtomicBool::new(false);

/// The used part of the calling thread's stack.
#[derive(Clone, Copy, Debug)]
pub(super) struct Extent {
    pub(super) start: usize,
    /// The address after the highest.
    pub(super) end: usize,
}

pub(super) struct StackBounds {
    end: AtomicUsize,
    /// The stack pointer of a sample while the end was unknown; 0 if there is nothing to look up.
    probe: AtomicUsize,
}

impl StackBounds {
    pub(super) const fn new() -> StackBounds {
        StackBounds { end: AtomicUsize::new(0), probe: AtomicUsize::new(0) }
    }

    /// The used part of the calling thread's stack, which must be this one, from `start` on.
    pub(super) fn extent_from(&self, start: usize) -> Extent {
        let mut end = self.end.load(Ordering::Relaxed);
        if end == 0 {
            end = end_by_convention().unwrap_or(0);
            self.end.store(end, Ordering::Relaxed);
        }
        if end == 0 {
            self.probe.store(start, Ordering::Relaxed);
        }
        if start < end && end - start <= STACK_BYTES_MAX {
            return Extent { start, end };
        }
        let end = (start + 1).next_multiple_of(PAGE_BYTES);
        Extent { start, end }
    }

    /// Drain: looks up the end if the thread could not determine it.
    pub(super) fn resolve(&self) {
        let probe = self.probe.swap(0, Ordering::Relaxed);
        if probe != 0 && self.end.load(Ordering::Relaxed) == 0 {
            let end = mapping_of(&mappings(), probe).map_or(0, |mapping| mapping.end);
            self.end.store(end, Ordering::Relaxed);
        }
    }

    /// Drain: forgets the stack, as the lane will get another owner.
    pub(super) fn forget(&self) {
        self.end.store(0, Ordering::Relaxed);
        self.probe.store(0, Ordering::Relaxed);
    }
}

/// The end of the calling thread's stack, if [`learn`] has found out enough.
fn end_by_convention() -> Option<usize> {
    if is_main_thread() {
        let end = MAIN_END.load(Ordering::Relaxed);
        (end != 0).then_some(end)
    } else {
        let is_above = IS_CONTROL_BLOCK_ABOVE.load(Ordering::Relaxed);
        is_above.then(arch::thread_pointer)
    }
}

/// Learns what the calling thread can determine about stacks, unless it is known.
pub(super) fn learn() {
    let is_main = is_main_thread();
    let is_convention_known = IS_CONTROL_BLOCK_ABOVE.load(Ordering::Relaxed);
    if MAIN_END.load(Ordering::Relaxed) != 0 && (is_main || is_convention_known) {
        return;
    }
    let maps = mappings();
    if let Some(main) = maps.iter().find(|mapping| mapping.name == "[stack]") {
        MAIN_END.store(main.end, Ordering::Relaxed);
    }
    if !is_main {
        let (here, control_block) = (arch::stack_pointer(), arch::thread_pointer());
        let is_above = here < control_block
            && mapping_of(&maps, here).is_some_and(|mapping| mapping.contains(control_block));
        IS_CONTROL_BLOCK_ABOVE.store(is_above, Ordering::Relaxed);
    }
}

/// The main thread's id is the process id.
fn is_main_thread() -> bool {
    rustix::thread::gettid() == rustix::process::getpid()
}

fn mapping_of(mappings: &[Mapping], address: usize) -> Option<&Mapping> {
    mappings.iter().find(|mapping| mapping.contains(address))
}

/// All mappings; none without `/proc`, so that stacks stay unknown.
fn mappings() -> Vec<Mapping> {
    Mapping::read_all().unwrap_or_default()
}

#[cfg(test)]
mod tests;
