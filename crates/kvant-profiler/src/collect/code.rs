//! Which addresses are code: the modules of the process, with a copy of their ranges for the signal
//! handler.
//!
//! Threads: one at a time refreshes (at a session's start and end); any reads, also in a signal
//! handler. During a refresh a reader may miss a module that is being loaded or unloaded; the
//! executable's own range never changes.

use crate::maps;
use crate::recording::Module;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Code beyond this many ranges is not recognised; a process has about five.
const RANGES_MAX: usize = 64;

/// The executable's own range comes first.
static RANGES: [Range; RANGES_MAX] = [const { Range::new() }; RANGES_MAX];
static RANGE_COUNT: AtomicUsize = AtomicUsize::new(0);

struct Range {
    start: AtomicUsize,
    end: AtomicUsize,
}

impl Range {
    const fn new() -> Range {
        Range { start: AtomicUsize::new(0), end: AtomicUsize::new(0) }
    }

    fn contains(&self, address: usize) -> bool {
        (self.start.load(Ordering::Relaxed)..self.end.load(Ordering::Relaxed)).contains(&address)
    }
}

/// Whether `address` is code of any module.
#[inline]
pub(super) fn is_code(address: usize) -> bool {
    let count = RANGE_COUNT.load(Ordering::Acquire);
    RANGES[..count].iter().any(|range| range.contains(address))
}

/// Whether `address` is code of the executable: Rust, which has frame pointers.
#[inline]
pub(super) fn is_own_code(address: usize) -> bool {
    RANGE_COUNT.load(Ordering::Acquire) > 0 && RANGES[0].contains(address)
}

/// Updates the ranges; returns the modules, the executable first.
pub(super) fn refresh() -> Vec<Module> {
    let modules = maps::own_modules();
    let ranges = modules.iter().take(RANGES_MAX).zip(&RANGES);
    for (module, range) in ranges {
        range.start.store(module.start as usize, Ordering::Relaxed);
        range.end.store(module.end as usize, Ordering::Relaxed);
    }
    RANGE_COUNT.store(modules.len().min(RANGES_MAX), Ordering::Release);
    modules
}

#[cfg(test)]
mod tests;
