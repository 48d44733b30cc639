//! Anchors: where a stack walk continues when it cannot pass a C function.
//!
//! C libraries use the frame pointer's register for other values. Calls into them are wrapped in
//! [`anchored`]: during the call the thread's list of anchors contains the caller's frame, and a
//! sample that cannot walk through the C function continues there. Calls nest: C may call back into
//! Rust, which allocates.
//!
//! Invariants:
//! 1. The list consists of values on the owning thread's stack, innermost first; it is empty
//!    outside of such calls.
//! 2. Only the thread itself changes its list, with single stores: its signal handler sees one
//!    state or the other.
//!
//! Threads: each has its own list.

use super::arch;
use std::cell::Cell;
use std::ptr;
use std::sync::atomic::{Ordering, compiler_fence};

/// A frame known to be on the stack.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(super) struct Anchor {
    /// The value of the frame pointer in its function.
    pub(super) frame: usize,
    /// An address in its function.
    pub(super) code: usize,
    pub(super) outer: *const Anchor,
}

thread_local! {
    // Constant and without a destructor: access is one load, also in a signal handler.
    static INNERMOST: Cell<*const Anchor> = const { Cell::new(ptr::null()) };
}

/// Calls code without frame pointers. Costs four stores.
#[inline(always)]
pub fn anchored<T>(call: impl FnOnce() -> T) -> T {
    let anchor =
        Anchor { frame: arch::frame_pointer(), code: arch::code_address(), outer: INNERMOST.get() };
    INNERMOST.set(&raw const anchor);
    let _restore = Restore(anchor.outer);
    // The handler runs between any two instructions. Without the fence the compiler may remove the
    // store: it knows that functions such as `malloc` do not read it.
    compiler_fence(Ordering::SeqCst);
    call()
}

/// Removes the innermost anchor when dropped, also when the call panics.
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
