//! The handler of `SIGPROF`, which samples CPU time.
//!
//! Invariants:
//! 1. It is installed once and never removed: the signal's default action would terminate the
//!    process, and a signal may be late.
//! 2. It acts on signals of our timers and perf events while a session runs, and ignores all
//!    others.
//! 3. It does not allocate, lock or wait, and preserves `errno`. Interrupted system calls are
//!    restarted where possible (`SA_RESTART`); others, such as `epoll_wait`, fail with `EINTR`,
//!    which their callers handle.
//!
//! Threads: the sampled thread. It writes only to that thread's lane.

use super::arch::Registers;
use super::lane::{self, Lane, SIGNAL};
use super::perf;
use super::ring::Header;
use super::{anchor, clock, timer, walk};
use crate::recording::Kind;
use kvant_base::tag::Tag;
use std::ffi::{c_int, c_void};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::{io, mem, ptr};

/// `si_code` of signals for descriptors: `POLL_IN` to `POLL_HUP`.
const DESCRIPTOR_CODES: std::ops::RangeInclusive<c_int> = 1..=6;

static IS_SAMPLING: AtomicBool = AtomicBool::new(false);

/// Installs the handler unless it is installed.
pub(super) fn install() -> io::Result<()> {
    static INSTALLED: OnceLock<Result<(), i32>> = OnceLock::new();
    let installed = INSTALLED.get_or_init(|| {
        // SAFETY: all zeros is a valid `sigaction`: no flags, an empty mask.
        let mut action: libc::sigaction = unsafe { mem::zeroed() };
        action.sa_sigaction = on_signal as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
        // SAFETY: the handler does only what signal handlers may do (invariant 3).
        let status = unsafe { libc::sigaction(SIGNAL, &raw const action, ptr::null_mut()) };
        if status == 0 {
            Ok(())
        } else {
            Err(io::Error::last_os_error().raw_os_error().unwrap_or(0))
        }
    });
    installed.map_err(io::Error::from_raw_os_error)
}

/// Sends the signal to every thread of the process, to test its effect on system calls. Nothing is
/// sampled.
pub fn interrupt_threads() -> io::Result<()> {
    install()?;
    for thread_id in super::threads::list()? {
        // SAFETY: the handler is installed and ignores signals that are not from a timer or a perf
        // event. The call fails for threads that have ended.
        unsafe { libc::syscall(libc::SYS_tgkill, std::process::id(), thread_id, SIGNAL) };
    }
    Ok(())
}

pub(super) fn set_sampling(is_sampling: bool) {
    IS_SAMPLING.store(is_sampling, Ordering::SeqCst);
}

extern "C" fn on_signal(_signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    if !IS_SAMPLING.load(Ordering::Acquire) {
        return;
    }
    // SAFETY: the C library has one `errno` for each thread, at that address.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: as above.
    let before = unsafe { *errno };
    // SAFETY: with `SA_SIGINFO` the kernel passes the signal's description and the interrupted
    // state.
    let (info, context) = unsafe { (&*info, &*context.cast::<libc::ucontext_t>()) };
    let registers = Registers::of(context);
    if info.si_code == libc::SI_TIMER {
        // SAFETY: signals of timers carry the value that the timer was created with.
        let value = unsafe { info.si_value() }.sival_ptr as usize;
        // Other timers carry other values. Our timers signal only the owner of their lane.
        if let Some(lane) = lane::at(value) {
            let now_mono_ns = clock::monotonic_ns();
            if let Some(sample) = timer::fired(lane, registers, now_mono_ns) {
                write_sample(lane, registers, sample, std::iter::empty());
            }
        }
    } else if DESCRIPTOR_CODES.contains(&info.si_code)
        && let Some(lane) = lane::of_this_thread_with_page()
    {
        take_perf_samples(lane, registers);
    }
    // SAFETY: as above.
    unsafe { *errno = before };
}

/// Writes one sample for each that the kernel took since the last signal. If there are several, the
/// thread was in the kernel throughout, as otherwise the signal would have been delivered between
/// them; so all have the same user frames.
fn take_perf_samples(lane: &Lane, registers: Registers) {
    perf::with_page(lane, |page| {
        let lost_count = page.consume(|sample| {
            let header = Header {
                time_mono_ns: sample.time_mono_ns(),
                // Not the CPU clock: in a long system call it has advanced since the sample.
                weight: sample.period_ns(),
                ..Header::default()
            };
            write_sample(lane, registers, header, sample.kernel_frames());
        });
        lane.signal.count_dropped(lost_count);
    });
}

fn write_sample(
    lane: &Lane,
    registers: Registers,
    sample: Header,
    kernel_frames: impl Iterator<Item = u64>,
) {
    let mut entry = lane.signal.begin();
    let mut kernel_frame_count = 0;
    for frame in kernel_frames.take(usize::from(u8::MAX)) {
        entry.push_frame(frame);
        kernel_frame_count += 1;
    }
    let stack = lane.stack.extent_from(registers.sp);
    let mut take = |address: usize| entry.push_frame(address as u64);
    // SAFETY: the registers are those of the calling thread, and the lane is its own.
    unsafe { walk::from_registers(registers, stack, anchor::innermost(), &mut take) };
    entry.commit(&Header {
        code: Kind::Cpu.code(),
        has_interrupted_frame: true,
        kernel_frame_count,
        tag: Tag::current_code(),
        ..sample
    });
}
