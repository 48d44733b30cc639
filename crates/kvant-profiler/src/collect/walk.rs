//! The walk over a stack by frame pointers: who called whom.
//!
//! A function that was compiled with frame pointers keeps, at the address in the frame pointer's register, its caller's frame
//! pointer, and above it the address that it returns to. Everything of ours is compiled so (`.cargo/config.toml`), the standard
//! library too. C libraries are not, which costs three things, each with its remedy:
//!
//! 1. The register may hold anything. Nothing is read but aligned words between the stack pointer and the stack's end, upwards only,
//!    and nothing is taken for a caller that is not code. So the walk never faults and always ends.
//! 2. Callers are lost below a C function that uses the register for itself. The walk goes on at the nearest anchor
//!    (see [`super::anchor`]).
//! 3. The direct caller of a function without a frame is skipped: the register still has the caller's frame. It is taken from the
//!    top of the stack where the return address must be there (our own code before its frame is made), or where what is there
//!    looks like one: an address in our own code, right after a call.
//!
//! Never used: unwinders that allocate or lock, as that of libgcc does.
//!
//! Threads: each walks its own stack; also inside of a signal handler.

use super::anchor::Anchor;
use super::arch::{self, Registers};
use super::code;
use super::stack::Extent;

/// Bytes of a frame: the caller's frame pointer and the return address.
const FRAME_BYTES: usize = 2 * size_of::<usize>();

impl Extent {
    fn contains(&self, address: usize, bytes: usize) -> bool {
        address >= self.start && address.is_multiple_of(size_of::<usize>()) && self.fits(address, bytes)
    }

    fn fits(&self, address: usize, bytes: usize) -> bool {
        address <= self.end && self.end - address >= bytes
    }

    /// # Safety
    /// What [`Extent`] says holds: its bytes can be read.
    unsafe fn word(&self, address: usize) -> Option<usize> {
        // SAFETY: inside of the stack, aligned, and read by the thread whose stack it is.
        self.contains(address, size_of::<usize>())
            .then(|| unsafe { (address as *const usize).read_volatile() })
    }

    /// The anchor at an address, if it and its frame are on this stack.
    ///
    /// # Safety
    /// As for [`Extent::word`].
    unsafe fn anchor(&self, address: *const Anchor) -> Option<Anchor> {
        if !self.contains(address as usize, size_of::<Anchor>()) {
            return None;
        }
        // SAFETY: inside of the stack; an anchor consists of words, so any bytes are one.
        let anchor = unsafe { address.read_volatile() };
        self.contains(anchor.frame, FRAME_BYTES).then_some(anchor)
    }
}

/// Calls `take` with the address that was interrupted and then with each return address, outwards, until it returns false.
///
/// # Safety
/// All of `stack` can be read and does not change meanwhile: it belongs to the calling thread.
pub(super) unsafe fn from_registers(
    registers: Registers,
    stack: Extent,
    innermost: *const Anchor,
    take: &mut impl FnMut(usize) -> bool,
) {
    if !take(registers.pc) {
        return;
    }
    // SAFETY: the caller vouches for the stack.
    let anchor = unsafe { stack.anchor(innermost) };
    // SAFETY: as above.
    let skipped = unsafe { skipped_caller(registers, stack, anchor.as_ref()) };
    if skipped.is_some_and(|caller| !take(caller)) {
        return;
    }
    // SAFETY: as above.
    unsafe { climb(registers.fp, stack, anchor, take) };
}

/// Calls `take` with each return address from the frame at `frame` on, outwards, until it returns false.
///
/// # Safety
/// As for [`from_registers`].
pub(super) unsafe fn from_frame(
    frame: usize,
    stack: Extent,
    innermost: *const Anchor,
    take: &mut impl FnMut(usize) -> bool,
) {
    // SAFETY: the caller vouches for the stack.
    unsafe { climb(frame, stack, stack.anchor(innermost), take) };
}

/// # Safety
/// As for [`from_registers`].
unsafe fn climb(
    mut frame: usize,
    mut stack: Extent,
    mut anchor: Option<Anchor>,
    take: &mut impl FnMut(usize) -> bool,
) {
    loop {
        // Frames of functions between here and the anchor are below it: a frame pointer that leads past it is none.
        let is_frame =
            stack.contains(frame, FRAME_BYTES) && anchor.is_none_or(|anchor| frame <= anchor.frame);
        // SAFETY: the caller vouches for the stack.
        let read = |address| unsafe { stack.word(address) };
        let caller = is_frame
            .then(|| read(frame + size_of::<usize>()))
            .flatten()
            .filter(|&address| code::is_code(address));
        let Some(caller) = caller else {
            let Some(reached) = anchor else { return };
            if !take(reached.code) {
                return;
            }
            // Before the next anchor is looked for: it is further out, so that even a list that was overwritten comes to an end.
            stack.start = reached.frame;
            frame = reached.frame;
            // SAFETY: as above.
            anchor = unsafe { stack.anchor(reached.outer) };
            continue;
        };
        if let Some(reached) = anchor.filter(|anchor| anchor.frame == frame) {
            // SAFETY: as above.
            anchor = unsafe { stack.anchor(reached.outer) };
        }
        if !take(caller) {
            return;
        }
        let outer = read(frame).unwrap_or(0);
        stack.start = frame + FRAME_BYTES;
        frame = outer;
    }
}

/// The return address of the interrupted function where its frame pointer is still, or again, its caller's.
///
/// # Safety
/// As for [`from_registers`].
unsafe fn skipped_caller(registers: Registers, stack: Extent, anchor: Option<&Anchor>) -> Option<usize> {
    // SAFETY: the caller vouches for the stack.
    let word = |address| unsafe { stack.word(address) };
    if code::is_own_code(registers.pc) {
        // SAFETY: the thread was about to execute what is at `pc`, in a segment that stays mapped.
        let offset_bytes = unsafe { arch::frameless_return_offset_bytes(registers.pc) }?;
        return word(registers.sp + offset_bytes).filter(|&address| code::is_code(address));
    }
    if let Some(anchor) = anchor {
        return (anchor.frame == registers.fp).then_some(anchor.code);
    }
    let top = word(registers.sp)?;
    // SAFETY: inside of our own code, which begins with more than seven bytes that are no call's.
    (code::is_own_code(top) && unsafe { arch::follows_call(top) }).then_some(top)
}

#[cfg(test)]
mod tests;
