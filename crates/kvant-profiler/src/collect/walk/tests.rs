//! Stacks are built by hand in an array, with return addresses of real functions.

use super::*;
use std::ptr;

/// Memory for a stack, addressed by word.
struct Fake {
    words: Box<[usize; 64]>,
}

fn code_at(index: usize) -> usize {
    code::refresh();
    // Inside of a function of this binary.
    code_at as *const () as usize + index
}

impl Fake {
    fn new() -> Fake {
        Fake { words: Box::new([0; 64]) }
    }

    fn address(&self, index: usize) -> usize {
        self.words.as_ptr() as usize + index * size_of::<usize>()
    }

    fn extent(&self) -> Extent {
        Extent { start: self.address(0), end: self.address(64) }
    }

    /// Stores a frame at a word, whose caller's frame is at another.
    fn frame(&mut self, at: usize, caller_at: usize, caller: usize) {
        self.words[at] = self.address(caller_at);
        self.words[at + 1] = caller;
    }

    fn walk(&self, frame: usize, innermost: *const Anchor) -> Vec<usize> {
        let mut callers = Vec::new();
        let mut take = |address| {
            callers.push(address);
            true
        };
        // SAFETY: the extent is that of the array, which does not change.
        unsafe { from_frame(frame, self.extent(), innermost, &mut take) };
        callers
    }

    /// Stores an anchor at a word: its frame, an address in its function, the next outer anchor.
    fn anchor(&mut self, at: usize, frame_at: usize, code: usize, outer_at: Option<usize>) {
        self.words[at] = self.address(frame_at);
        self.words[at + 1] = code;
        self.words[at + 2] = outer_at.map_or(0, |at| self.address(at));
    }
}

#[test]
fn a_chain_of_frames_is_followed_to_its_end() {
    let mut fake = Fake::new();
    fake.frame(4, 10, code_at(1));
    fake.frame(10, 20, code_at(2));
    fake.frame(20, 0, code_at(3));
    assert_eq!(fake.walk(fake.address(4), ptr::null()), [1, 2, 3].map(code_at));
}

#[test]
fn an_invalid_frame_ends_the_walk() {
    let mut fake = Fake::new();
    let (end, here) = (fake.address(64), fake.address(4));
    fake.frame(4, 10, code_at(1));
    for nonsense in
        [0, 1, 12345, usize::MAX, usize::MAX - 7, end, end - 8, here, here - 8, here + 17]
    {
        fake.words[4] = nonsense;
        assert_eq!(fake.walk(here, ptr::null()), [code_at(1)], "{nonsense:#x}");
        assert_eq!(fake.walk(nonsense & !7 | 1, ptr::null()), [0_usize; 0], "{nonsense:#x}");
    }
    // A frame whose return address is data.
    fake.frame(4, 10, code_at(1));
    fake.frame(10, 20, here);
    fake.frame(20, 0, code_at(3));
    assert_eq!(fake.walk(here, ptr::null()), [code_at(1)]);
}

#[test]
fn a_broken_walk_continues_at_the_nearest_anchor() {
    let mut fake = Fake::new();
    // Rust, C, Rust, C: both C functions have other values in the register.
    fake.frame(30, 40, code_at(8));
    fake.frame(40, 0, code_at(9));
    fake.anchor(26, 30, code_at(7), None);
    fake.frame(14, 33, code_at(4));
    fake.frame(4, 14, code_at(3));
    fake.anchor(10, 14, code_at(3), Some(26));
    let innermost = fake.address(10) as *const Anchor;
    // The register has another value.
    let expected = [3, 4, 7, 8, 9].map(code_at);
    assert_eq!(fake.walk(12345, innermost), expected);
    // It leads past the anchor.
    assert_eq!(fake.walk(fake.address(40), innermost), expected);
    // It is a frame that leads to the anchor's: no caller is lost.
    assert_eq!(fake.walk(fake.address(4), innermost), expected);
}

#[test]
fn anchors_that_are_not_on_the_stack_are_ignored() {
    let mut fake = Fake::new();
    fake.frame(4, 10, code_at(1));
    fake.frame(10, 0, code_at(2));
    let elsewhere = Anchor { frame: fake.address(10), code: code_at(5), outer: ptr::null() };
    assert_eq!(fake.walk(fake.address(4), &raw const elsewhere), [1, 2].map(code_at));
    // An anchor that leads to itself.
    fake.anchor(20, 22, code_at(5), Some(20));
    let innermost = fake.address(20) as *const Anchor;
    assert_eq!(fake.walk(fake.address(4), innermost), [1, 2, 5].map(code_at));
}

#[test]
fn a_walk_ends_when_take_returns_false() {
    let mut fake = Fake::new();
    fake.frame(4, 10, code_at(1));
    fake.frame(10, 20, code_at(2));
    let mut callers = Vec::new();
    let mut take = |address| {
        callers.push(address);
        false
    };
    // SAFETY: the extent is that of the array, which does not change.
    unsafe { from_frame(fake.address(4), fake.extent(), ptr::null(), &mut take) };
    assert_eq!(callers, [code_at(1)]);
}

/// A return address in this file.
#[inline(never)]
fn real_caller() -> usize {
    let frame = arch::frame_pointer();
    // SAFETY: the frame of this function.
    unsafe { ((frame + WORD_BYTES) as *const usize).read_volatile() }
}

#[cfg(target_arch = "x86_64")]
#[test]
fn the_caller_of_a_c_function_without_frame_pointer_is_found() {
    let mut fake = Fake::new();
    code::refresh();
    let caller = std::hint::black_box(real_caller());
    assert!(is_caller(caller) && !is_caller(0));
    // The C function: locals, three saved registers, the return address.
    fake.words[3] = fake.address(2);
    fake.words[6] = 77;
    fake.words[7] = fake.address(20);
    fake.words[8] = 0;
    fake.words[9] = caller;
    // Our function and its callers.
    fake.frame(20, 30, code_at(5));
    fake.frame(30, 0, libc::getppid as *const () as usize);
    // There are no callers beyond the C library's thread start function.
    fake.words[40] = fake.address(50);
    fake.words[41] = caller;
    fake.frame(50, 0, code_at(9));
    let expected = [caller, code_at(5), libc::getppid as *const () as usize];
    assert_eq!(fake.walk(12345, ptr::null()), expected);
    // A stale return address has no frame pointer below it: the next one counts.
    fake.words[7] = 0;
    assert_eq!(fake.walk(12345, ptr::null()), [caller, code_at(9)]);
}
