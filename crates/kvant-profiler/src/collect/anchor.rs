//! Anchors: where a stack goes on when the walk through a C function breaks.
//!
//! A C library keeps other things than frame pointers in the frame pointer's register. Whoever
//! calls it wraps the call in [`anchored`]: while the call lasts, the thread's list of anchors says
//! where the caller's own frame is, and a sample that finds no way through the C function goes on
//! from there. Calls nest: C may call back into Rust, which allocates.
//!
//! Invariants:
//! 1. The list is made of values on the stack of the thread that owns it, innermost first; it is
//!    empty outside of such calls.
//! 2. Only the thread itself changes its list, with single stores: its signal handler sees one
//!    state or the other.
//!
//! Threads: each has its own list.

use super::arch;
use std::cell::Cell;
use std::ptr;
use std::sync::atomic::{Ordering, compiler_fence};

/// A frame that is certainly on the stack.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(super) struct Anchor {
    /// Its address: the value of the frame pointer in its function.
    pub(super) frame: usize,
    /// An address in its function.
    pub(super) code: usize,
    /// The next one out.
    pub(super) outer: *const Anchor,
}

thread_local! {
    // Constant and without a destructor: reading it is one load, also in a signal handler.
    static INNERMOST: Cell<*const Anchor> = const { Cell::new(ptr::null()) };
}

/// Makes a call to code without frame pointers. Costs four stores.
#[inline(always)]
pub fn anchored<T>(call: impl FnOnce() -> T) -> T {
    let anchor =
        Anchor { frame: arch::frame_pointer(), code: arch::code_address(), outer: INNERMOST.get() };
    INNERMOST.set(&raw const anchor);
    let _restore = Restore(anchor.outer);
    // The handler runs between any two instructions. Without this, the compiler may drop the first
    // store: it knows of functions such as `malloc` that they do not look at it.
    compiler_fence(Ordering::SeqCst);
    call()
}

/// Takes the innermost anchor off when dropped: also when the call panics.
struct Restore(*const Anchor);

impl Drop for Restore {
    #[inline(always)]
    fn drop(&mut self) {
        compiler_fence(Ordering::SeqCst);
        INNERMOST.set(self.0);
    }
}

/// The calling thread's innermost anchor, or null.
#[inline]
pub(super) fn innermost() -> *const Anchor {
    INNERMOST.get()
}
