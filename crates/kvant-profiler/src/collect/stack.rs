//! How far a thread's stack can be read.
//!
//! A thread must find that out in its signal handler, without a system call that could fail it. So:
//!
//! 1. The main thread's stack ends where `/proc/self/maps` says, which is read when a session
//!    starts.
//! 2. The C libraries of Linux (glibc, musl, bionic) put the control block of any other thread
//!    above its stack, into the same mapping; the thread pointer leads there. [`learn`] checks that
//!    this holds, with the calling thread's own stack.
//! 3. Otherwise the thread leaves its stack pointer, reads no further than the page of it, and the
//!    drain looks up the mapping.
//!
//! Threads: each asks for its own stack; the drain learns and looks up.

use super::arch;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// What every page is a multiple of.
const PAGE_BYTES: usize = 4096;
/// No stack of ours is that large. The main thread's may grow so far, and is then still far from
/// all other mappings; among those are the stacks that some signals are handled on.
const STACK_BYTES_MAX: usize = 64 << 20;

/// The end of the stack of the thread that the process began with; 0 while unknown.
static MAIN_END: AtomicUsize = AtomicUsize::new(0);
/// Whether threads have their control blocks above their stacks.
static IS_CONTROL_BLOCK_ABOVE: AtomicBool = AtomicBool::new(false);

/// The part of the calling thread's stack that is in use.
#[derive(Clone, Copy, Debug)]
pub(super) struct Extent {
    /// The lowest address.
    pub(super) start: usize,
    /// After the highest.
    pub(super) end: usize,
}

/// What is known of a thread's stack.
pub(super) struct Stack {
    /// Its end; 0 while unknown.
    end: AtomicUsize,
    /// The stack pointer in a sample while the end was unknown; 0 when there is nothing to look up.
    probe: AtomicUsize,
}

impl Stack {
    pub(super) const fn new() -> Stack {
        Stack { end: AtomicUsize::new(0), probe: AtomicUsize::new(0) }
    }

    /// The calling thread's stack, which this is, from `start` on.
    pub(super) fn from(&self, start: usize) -> Extent {
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

    /// Drain: looks up the end if the thread could not tell.
    pub(super) fn resolve(&self) {
        let probe = self.probe.swap(0, Ordering::Relaxed);
        if probe != 0 && self.end.load(Ordering::Relaxed) == 0 {
            let end = mapping_of(&read_mappings(), probe).map_or(0, |mapping| mapping.end);
            self.end.store(end, Ordering::Relaxed);
        }
    }

    /// Drain: it will be another thread's.
    pub(super) fn forget(&self) {
        self.end.store(0, Ordering::Relaxed);
        self.probe.store(0, Ordering::Relaxed);
    }
}

/// Where the calling thread's stack ends, if [`learn`] has found out enough.
fn end_by_convention() -> Option<usize> {
    if is_main_thread() {
        let end = MAIN_END.load(Ordering::Relaxed);
        (end != 0).then_some(end)
    } else {
        let is_above = IS_CONTROL_BLOCK_ABOVE.load(Ordering::Relaxed);
        is_above.then(arch::thread_pointer)
    }
}

/// Finds out what the calling thread can tell about stacks, unless it is known.
pub(super) fn learn() {
    let is_main = is_main_thread();
    let is_convention_known = IS_CONTROL_BLOCK_ABOVE.load(Ordering::Relaxed);
    if MAIN_END.load(Ordering::Relaxed) != 0 && (is_main || is_convention_known) {
        return;
    }
    let maps = read_mappings();
    if let Some(main) = maps.iter().find(|mapping| mapping.is_main_stack) {
        MAIN_END.store(main.end, Ordering::Relaxed);
    }
    if !is_main {
        let (here, control_block) = (arch::frame_pointer(), arch::thread_pointer());
        let is_above = here < control_block
            && mapping_of(&maps, here).is_some_and(|mapping| mapping.contains(control_block));
        IS_CONTROL_BLOCK_ABOVE.store(is_above, Ordering::Relaxed);
    }
}

/// The kernel gives the first thread the number of the process.
fn is_main_thread() -> bool {
    rustix::thread::gettid() == rustix::process::getpid()
}

/// A line of `/proc/self/maps`.
#[derive(Debug, PartialEq, Eq)]
struct Mapping {
    start: usize,
    end: usize,
    is_main_stack: bool,
}

impl Mapping {
    fn contains(&self, address: usize) -> bool {
        (self.start..self.end).contains(&address)
    }

    fn parse(line: &str) -> Option<Mapping> {
        let (start, rest) = line.split_once('-')?;
        let (end, _) = rest.split_once(' ')?;
        Some(Mapping {
            start: usize::from_str_radix(start, 16).ok()?,
            end: usize::from_str_radix(end, 16).ok()?,
            is_main_stack: line.ends_with("[stack]"),
        })
    }
}

fn mapping_of(mappings: &[Mapping], address: usize) -> Option<&Mapping> {
    mappings.iter().find(|mapping| mapping.contains(address))
}

/// What is mapped; nothing where `/proc` is not there: then stacks stay unknown.
fn read_mappings() -> Vec<Mapping> {
    let text = kvant_env::host::read_text(Path::new("/proc/self/maps")).unwrap_or_default();
    text.lines().filter_map(Mapping::parse).collect()
}

#[cfg(test)]
mod tests;
