//! Processor-specific code: registers, the thread pointer, and the location of a return address
//! before a function has its frame.
//!
//! Threads: any, also in signal handlers.

use std::arch::asm;

/// Where a thread was when a signal interrupted it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Registers {
    pub(super) pc: usize,
    /// The lowest used address of the stack.
    pub(super) sp: usize,
    /// The frame pointer: the address of the caller's frame pointer, above which lies the return
    /// address. Any value in code compiled without frame pointers.
    pub(super) fp: usize,
    /// Whether the signal interrupted a system call that waited, which then fails or is restarted.
    pub(super) is_call_interrupted: bool,
    /// Whether the signal was delivered at the end of a system call.
    pub(super) is_after_call: bool,
}

const INTERRUPTED: i64 = -(libc::EINTR as i64);

#[cfg(target_arch = "x86_64")]
impl Registers {
    /// The registers that a signal handler received.
    pub(super) fn of(context: &libc::ucontext_t) -> Registers {
        const CALL_BYTES: usize = 2;

        let register = |number: libc::c_int| context.uc_mcontext.gregs[number as usize] as usize;
        let pc = register(libc::REG_RIP);
        // `syscall` stores its return address there.
        let after_call = register(libc::REG_RCX);
        let has_failed = context.uc_mcontext.gregs[libc::REG_RAX as usize] == INTERRUPTED;
        Registers {
            pc,
            sp: register(libc::REG_RSP),
            fp: register(libc::REG_RBP),
            is_call_interrupted: (pc == after_call && has_failed) || pc + CALL_BYTES == after_call,
            is_after_call: pc == after_call,
        }
    }
}

#[cfg(target_arch = "aarch64")]
impl Registers {
    /// The registers that a signal handler received.
    pub(super) fn of(context: &libc::ucontext_t) -> Registers {
        const CALL_BYTES: usize = 4;
        const PAGE_BYTES_MIN: usize = 4096;
        /// `svc #0`.
        const CALL: u32 = 0xd400_0001;

        let pc = context.uc_mcontext.pc as usize;
        let has_failed = context.uc_mcontext.regs[0] as i64 == INTERRUPTED;
        // SAFETY: of the thread's next instruction, or of one before it in the same page.
        let instruction = |address: usize| unsafe { *(address as *const u32) };
        let is_after_call = pc % PAGE_BYTES_MIN != 0 && instruction(pc - CALL_BYTES) == CALL;
        Registers {
            pc,
            sp: context.uc_mcontext.sp as usize,
            fp: context.uc_mcontext.regs[29] as usize,
            is_call_interrupted: instruction(pc) == CALL || (has_failed && is_after_call),
            is_after_call,
        }
    }
}

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

#[inline(always)]
pub(super) fn stack_pointer() -> usize {
    let sp: usize;
    // SAFETY: copies a register.
    unsafe {
        #[cfg(target_arch = "x86_64")]
        asm!("mov {}, rsp", out(reg) sp, options(nomem, nostack, preserves_flags));
        #[cfg(target_arch = "aarch64")]
        asm!("mov {}, sp", out(reg) sp, options(nomem, nostack, preserves_flags));
    }
    sp
}

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

/// The address of the calling thread's control block in the C library.
#[inline]
pub(super) fn thread_pointer() -> usize {
    let tp: usize;
    // SAFETY: reads the word that the ABI reserves for this (x86_64), or copies a register
    // (aarch64).
    unsafe {
        #[cfg(target_arch = "x86_64")]
        asm!("mov {}, fs:0", out(reg) tp, options(readonly, nostack, preserves_flags));
        #[cfg(target_arch = "aarch64")]
        asm!("mrs {}, tpidr_el0", out(reg) tp, options(nomem, nostack, preserves_flags));
    }
    tp
}

/// The return address's offset from the stack pointer, if the instruction at `pc` shows that the
/// function has no frame: `push rbp`, the following `mov rbp, rsp`, or `ret`.
///
/// # Safety
/// `pc` is inside of a loaded function.
#[cfg(target_arch = "x86_64")]
pub(super) unsafe fn frameless_return_offset_bytes(pc: usize) -> Option<usize> {
    const PUSH_RBP: u8 = 0x55;
    const RET: u8 = 0xc3;
    const MOV_RBP_RSP: [u8; 3] = [0x48, 0x89, 0xe5];

    let code = pc as *const u8;
    // SAFETY: the caller guarantees the first byte. The others are read only if the preceding bytes
    // start a longer instruction, which the thread was about to execute.
    let is_move = || unsafe { (0..3).all(|index| *code.add(index) == MOV_RBP_RSP[index]) };
    // SAFETY: as above.
    match unsafe { *code } {
        PUSH_RBP | RET => Some(0),
        _ if is_move() => Some(size_of::<usize>()),
        _ => None,
    }
}

/// `None`: functions keep their return address in a register until they have a frame.
///
/// # Safety
/// Always safe; the signature is that of other processors.
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
    /// Bits of the byte after [`CALL_INDIRECT`] that distinguish calls from other instructions.
    const EXTENSION_MASK: u8 = 0b0011_1000;
    const EXTENSION_CALL: u8 = 0b0001_0000;

    // SAFETY: the caller guarantees the seven bytes.
    let byte_before = |distance: usize| unsafe { *((address - distance) as *const u8) };
    let is_indirect = |length: usize| {
        byte_before(length) == CALL_INDIRECT
            && byte_before(length - 1) & EXTENSION_MASK == EXTENSION_CALL
    };
    byte_before(5) == CALL_RELATIVE || (2..=7).any(is_indirect)
}

/// `false`: return addresses of leaf functions are not on the stack.
///
/// # Safety
/// Always safe; the signature is that of other processors.
#[cfg(target_arch = "aarch64")]
pub(super) unsafe fn follows_call(_address: usize) -> bool {
    false
}
