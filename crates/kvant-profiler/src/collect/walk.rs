//! Walks a stack by frame pointers.
//!
//! A function compiled with frame pointers stores its caller's frame pointer at the address in the
//! frame pointer's register, and its return address above it. All of our code is compiled so
//! (`.cargo/config.toml`), the standard library included. C libraries are not, which causes three
//! problems, each with its remedy:
//!
//! 1. The register may contain anything. Only aligned words between the stack pointer and the
//!    stack's end are read, upwards, and only code addresses are taken for callers. So the walk
//!    never faults and always ends.
//! 2. Callers are lost below a C function that uses the register for itself, as glibc's `recv` and
//!    `malloc` do. The walk continues at the nearest anchor (see [`super::anchor`]). Without one it
//!    searches for a return address in our own code, right after a call, and for our frame pointer,
//!    which the C function must have saved just below (see [`search`]).
//! 3. The direct caller of a function without a frame is skipped, as the register still has the
//!    caller's frame. Its return address is at the top of the stack if our own code has not created
//!    its frame yet; otherwise the first word that looks like one is taken.
//!
//! Unwinders that allocate or lock, as libgcc's does, are not used.
//!
//! Threads: each walks its own stack, also in a signal handler.

use super::anchor::Anchor;
use super::arch::{self, Registers};
use super::code;
use super::stack::Extent;

/// Bytes of a frame: the caller's frame pointer and the return address.
const FRAME_BYTES: usize = 2 * WORD_BYTES;
const WORD_BYTES: usize = size_of::<usize>();
/// How much of the stack is searched for the caller of C functions: several of their frames.
const SEARCHED_WORDS_MAX: usize = 128;
/// A return address within this distance from the stack pointer needs no more evidence.
const NEAR_WORDS_MAX: usize = 16;
/// Registers that a C function saves below its return address, the frame pointer among them.
const SAVED_WORDS_MAX: usize = 6;
/// Our functions have fewer local variables.
const LOCALS_BYTES_MAX: usize = 1 << 20;

impl Extent {
    fn contains(&self, address: usize, bytes: usize) -> bool {
        address >= self.start && address.is_multiple_of(WORD_BYTES) && self.fits(address, bytes)
    }

    fn fits(&self, address: usize, bytes: usize) -> bool {
        address <= self.end && self.end - address >= bytes
    }

    /// # Safety
    /// The extent is readable.
    unsafe fn word(&self, address: usize) -> Option<usize> {
        // SAFETY: inside of the stack, aligned, and read by the owning thread.
        self.contains(address, WORD_BYTES)
            .then(|| unsafe { (address as *const usize).read_volatile() })
    }

    /// The anchor at `address`, if it and its frame are on this stack.
    ///
    /// # Safety
    /// As for [`Extent::word`].
    unsafe fn anchor(&self, address: *const Anchor) -> Option<Anchor> {
        if !self.contains(address as usize, size_of::<Anchor>()) {
            return None;
        }
        // SAFETY: inside of the stack; an anchor consists of words, so any bytes are valid.
        let anchor = unsafe { address.read_volatile() };
        self.contains(anchor.frame, FRAME_BYTES).then_some(anchor)
    }
}

/// Calls `take` with the interrupted address and then with each return address, outwards, until it
/// returns false.
///
/// # Safety
/// `stack` is readable and does not change meanwhile: it belongs to the calling thread.
pub(super) unsafe fn from_registers(
    registers: Registers,
    stack: Extent,
    innermost: *const Anchor,
    take: &mut impl FnMut(usize) -> bool,
) {
    if !take(registers.pc) {
        return;
    }
    // SAFETY: the caller guarantees the stack.
    let anchor = unsafe { stack.anchor(innermost) };
    // SAFETY: as above.
    let skipped = unsafe { skipped_caller(registers, stack, anchor.as_ref()) };
    if skipped.is_some_and(|caller| !take(caller)) {
        return;
    }
    // SAFETY: as above.
    unsafe { climb(registers.fp, stack, anchor, code::is_own_code(registers.pc), take) };
}

/// Calls `take` with each return address, from `frame` outwards, until it returns false.
///
/// # Safety
/// As for [`from_registers`].
pub(super) unsafe fn from_frame(
    frame: usize,
    stack: Extent,
    innermost: *const Anchor,
    take: &mut impl FnMut(usize) -> bool,
) {
    // SAFETY: the caller guarantees the stack.
    unsafe { climb(frame, stack, stack.anchor(innermost), true, take) };
}

/// `is_trusted`: `frame` comes from our own code. A frame of a C function must lead to our own
/// code: the register may contain anything.
///
/// # Safety
/// As for [`from_registers`].
unsafe fn climb(
    mut frame: usize,
    mut stack: Extent,
    mut anchor: Option<Anchor>,
    mut is_trusted: bool,
    take: &mut impl FnMut(usize) -> bool,
) {
    // Beyond the C library's thread start function there are no callers.
    let mut is_searchable = true;
    loop {
        // Frames before the anchor are below it: a value beyond it is no frame pointer.
        let is_frame =
            stack.contains(frame, FRAME_BYTES) && anchor.is_none_or(|anchor| frame <= anchor.frame);
        // SAFETY: the caller guarantees the stack.
        let read = |address| unsafe { stack.word(address) };
        let caller = is_frame.then(|| read(frame + WORD_BYTES)).flatten().filter(|&address| {
            code::is_own_code(address) || (is_trusted && code::is_code(address))
        });
        is_trusted = true;
        let Some(caller) = caller else {
            let Some(reached) = anchor else {
                // SAFETY: as above.
                let Some(found) = is_searchable.then(|| unsafe { search(stack) }).flatten() else {
                    return;
                };
                if !take(found.caller) {
                    return;
                }
                stack.start = found.end;
                frame = found.frame;
                continue;
            };
            if !take(reached.code) {
                return;
            }
            is_searchable = true;
            // The next anchor must be further out, so that even an overwritten list ends.
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
        is_searchable = code::is_own_code(caller);
        let outer = read(frame).unwrap_or(0);
        stack.start = frame + FRAME_BYTES;
        frame = outer;
    }
}

/// The return address of the interrupted function, if its frame pointer is still, or again, its
/// caller's.
///
/// # Safety
/// As for [`from_registers`].
unsafe fn skipped_caller(
    registers: Registers,
    stack: Extent,
    anchor: Option<&Anchor>,
) -> Option<usize> {
    // SAFETY: the caller guarantees the stack.
    let word = |address| unsafe { stack.word(address) };
    if code::is_own_code(registers.pc) {
        // SAFETY: the thread was about to execute `pc`, in a segment that stays mapped.
        let offset_bytes = unsafe { arch::frameless_return_offset_bytes(registers.pc) }?;
        return word(registers.sp + offset_bytes).filter(|&address| code::is_code(address));
    }
    if let Some(anchor) = anchor {
        return (anchor.frame == registers.fp).then_some(anchor.code);
    }
    // It is below the caller's frame, if the register has that.
    let words = (0..NEAR_WORDS_MAX).map(|index| registers.sp + index * WORD_BYTES);
    let mut words = words.take_while(|&at| at < registers.fp).map_while(word);
    words.find(|&address| is_caller(address))
}

/// The caller of a C function.
struct FoundCaller {
    caller: usize,
    frame: usize,
    /// The address after that of the return address.
    end: usize,
}

/// Searches for the caller of C functions that use the frame pointer's register for themselves,
/// from the start of `stack` on. C functions save the register first, so the caller's frame pointer
/// lies just below the return address; both must be plausible.
///
/// # Safety
/// As for [`from_registers`].
unsafe fn search(stack: Extent) -> Option<FoundCaller> {
    // SAFETY: the caller guarantees the stack.
    let word = |address| unsafe { stack.word(address) };
    let is_frame = |at: usize, frame: usize| {
        let is_above = frame > at && frame - at <= LOCALS_BYTES_MAX;
        is_above
            && stack.contains(frame, FRAME_BYTES)
            && word(frame + WORD_BYTES).is_some_and(code::is_code)
    };
    for at in (1..SEARCHED_WORDS_MAX).map(|index| stack.start + index * WORD_BYTES) {
        let caller = word(at)?;
        if !is_caller(caller) {
            continue;
        }
        let saved = (1..=SAVED_WORDS_MAX).map_while(|index| word(at - index * WORD_BYTES));
        if let Some(frame) = saved.filter(|&frame| is_frame(at, frame)).min() {
            let end = at + WORD_BYTES;
            return Some(FoundCaller { caller, frame, end });
        }
    }
    None
}

/// Whether an address is plausible as a return address in our own code.
fn is_caller(address: usize) -> bool {
    let is_own_code = code::is_own_code(address) && code::is_own_code(address.wrapping_sub(7));
    // SAFETY: the seven bytes before the address are own code, too.
    is_own_code && unsafe { arch::follows_call(address) }
}

#[cfg(test)]
mod tests;
