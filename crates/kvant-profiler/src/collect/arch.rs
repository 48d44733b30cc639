//! What depends on the processor: registers, the thread pointer, and where a function keeps its
//! return address before it has a frame.
//!
//! Threads: any; all of it may be called in a signal handler.

use std::arch::asm;

/// Where a thread was when a signal interrupted it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Registers {
    /// The instruction that comes next.
    pub(super) pc: usize,
    /// The lowest address of the stack that is in use.
    pub(super) sp: usize,
    /// The frame pointer: the address of the caller's frame pointer, above which lies the return
    /// address. Any number in code that was compiled without frame pointers.
    pub(super) fp: usize,
    /// Whether it was in a system call that the signal ended, or that will be made again after it:
    /// one that waited.
    pub(super) is_call_interrupted: bool,
}

/// What a system call returns that a signal has ended.
const INTERRUPTED: i64 = -(libc::EINTR as i64);

#[cfg(target_arch = "x86_64")]
impl Registers {
    /// The registers that a signal handler was given.
    pub(super) fn of(context: &libc::ucontext_t) -> Registers {
        /// Of the instruction `syscall`.
        const CALL_BYTES: usize = 2;

        let register = |number: libc::c_int| context.uc_mcontext.gregs[number as usize] as usize;
        let pc = register(libc::REG_RIP);
        // The instruction leaves the address of the next one there, which is where the thread goes
        // on.
        let after_call = register(libc::REG_RCX);
        let has_failed = context.uc_mcontext.gregs[libc::REG_RAX as usize] == INTERRUPTED;
        Registers {
            pc,
            sp: register(libc::REG_RSP),
            fp: register(libc::REG_RBP),
            is_call_interrupted: (pc == after_call && has_failed) || pc + CALL_BYTES == after_call,
        }
    }
}

#[cfg(target_arch = "aarch64")]
impl Registers {
    /// The registers that a signal handler was given.
    pub(super) fn of(context: &libc::ucontext_t) -> Registers {
        const CALL_BYTES: usize = 4;
        /// `svc #0`.
        const CALL: u32 = 0xd400_0001;

        let pc = context.uc_mcontext.pc as usize;
        let has_failed = context.uc_mcontext.regs[0] as i64 == INTERRUPTED;
        // SAFETY: the thread goes on at `pc`. Code does not begin with the instruction after a
        // call.
        let instruction = |address: usize| unsafe { *(address as *const u32) };
        Registers {
            pc,
            sp: context.uc_mcontext.sp as usize,
            fp: context.uc_mcontext.regs[29] as usize,
            is_call_interrupted: instruction(pc) == CALL
                || (has_failed && instruction(pc - CALL_BYTES) == CALL),
        }
    }
}

/// The frame pointer of the function that this is inlined into.
#[inline(always)]
pub(super) fn frame_pointer() -> usize {
    let fp: usize;
    // SAFETY: copies a register.
    unsafe {
        #[cfg(target_arch = "x86_64")]
        asm!("mov {}, rbp", out(reg) fp, options(nomem, nostack, preserves_flags));
        #[cfg(target_arch = "aarch64")]
        asm!("mov {}, x29", out(reg) fp, options(nomem, nostack, preserves_flags));
    }
    fp
}

/// An address inside of the function that this is inlined into.
#[inline(always)]
pub(super) fn code_address() -> usize {
    let pc: usize;
    // SAFETY: computes an address.
    unsafe {
        #[cfg(target_arch = "x86_64")]
        asm!("lea {}, [rip]", out(reg) pc, options(nomem, nostack, preserves_flags));
        #[cfg(target_arch = "aarch64")]
        asm!("adr {}, .", out(reg) pc, options(nomem, nostack, preserves_flags));
    }
    pc
}

/// Where the C library keeps what it knows of the calling thread.
#[inline]
pub(super) fn thread_pointer() -> usize {
    let tp: usize;
    // SAFETY: reads the word that the ABI sets aside for this (x86_64), or copies a register
    // (aarch64).
    unsafe {
        #[cfg(target_arch = "x86_64")]
        asm!("mov {}, fs:0", out(reg) tp, options(readonly, nostack, preserves_flags));
        #[cfg(target_arch = "aarch64")]
        asm!("mrs {}, tpidr_el0", out(reg) tp, options(nomem, nostack, preserves_flags));
    }
    tp
}

/// How far above the stack pointer the return address lies, if the instruction at `pc` shows that
/// the function has no frame yet or no longer: at `push rbp`, at `mov rbp, rsp` after it, and at
/// `ret`.
///
/// # Safety
/// The bytes at `pc` can be read: it is inside of a loaded function.
#[cfg(target_arch = "x86_64")]
pub(super) unsafe fn frameless_return_offset_bytes(pc: usize) -> Option<usize> {
    const PUSH_RBP: u8 = 0x55;
    const RET: u8 = 0xc3;
    const MOV_RBP_RSP: [u8; 3] = [0x48, 0x89, 0xe5];

    let code = pc as *const u8;
    // SAFETY: the caller vouches for the first byte. The others are read only when those before
    // them are those of a longer instruction, which the thread was about to execute.
    let is_move = || unsafe { (0..3).all(|index| *code.add(index) == MOV_RBP_RSP[index]) };
    // SAFETY: as above.
    match unsafe { *code } {
        PUSH_RBP | RET => Some(0),
        _ if is_move() => Some(size_of::<usize>()),
        _ => None,
    }
}

/// Functions keep their return address in a register until they have a frame: nothing to find on
/// the stack.
///
/// # Safety
/// None needed; the signature is that of other processors.
#[cfg(target_arch = "aarch64")]
pub(super) unsafe fn frameless_return_offset_bytes(_pc: usize) -> Option<usize> {
    None
}

/// Whether the instruction before `address` is a call.
///
/// # Safety
/// The seven bytes before `address` can be read.
#[cfg(target_arch = "x86_64")]
pub(super) unsafe fn follows_call(address: usize) -> bool {
    const CALL_RELATIVE: u8 = 0xe8;
    const CALL_INDIRECT: u8 = 0xff;
    /// Of the byte after [`CALL_INDIRECT`]: the bits that tell a call from other instructions with
    /// that code.
    const EXTENSION_MASK: u8 = 0b0011_1000;
    const EXTENSION_CALL: u8 = 0b0001_0000;

    // SAFETY: the caller vouches for the seven bytes.
    let byte_before = |distance: usize| unsafe { *((address - distance) as *const u8) };
    let is_indirect = |length: usize| {
        byte_before(length) == CALL_INDIRECT
            && byte_before(length - 1) & EXTENSION_MASK == EXTENSION_CALL
    };
    byte_before(5) == CALL_RELATIVE || (2..=7).any(is_indirect)
}

/// Return addresses of leaf functions are not on the stack: nothing that is found there is one.
///
/// # Safety
/// None needed; the signature is that of other processors.
#[cfg(target_arch = "aarch64")]
pub(super) unsafe fn follows_call(_address: usize) -> bool {
    false
}
