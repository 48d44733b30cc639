//! The handler of `SIGPROF`, which takes the samples of CPU time.
//!
//! Invariants:
//! 1. It is installed once and never removed: the default action of the signal would end the
//!    process, and a signal may be late.
//! 2. It acts on signals that carry the mark of our timers or perf events while a session runs, and
//!    ignores all others.
//! 3. It allocates nothing, takes no lock, waits for nobody, and leaves `errno` as it was.
//!    Interrupted system calls that can be restarted are (`SA_RESTART`); those that cannot
//!    (`epoll_wait` and its like) fail with `EINTR`, which their callers handle.
//!
//! Threads: runs on the thread that is sampled. All that it writes is the thread's own lane.

use super::arch::Registers;
use super::lane::{self, Lane};
use super::perf;
use super::ring::Header;
use super::{anchor, clock, timer, walk};
use crate::recording::Kind;
use kvant_base::tag::Tag;
use std::ffi::{c_int, c_void};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::{io, mem, ptr};

/// The signal of profilers, that nobody else here uses.
pub(super) const SIGNAL: c_int = libc::SIGPROF;

/// `si_code` of signals of descriptors: `POLL_IN` to `POLL_HUP`.
const DESCRIPTOR_CODES: std::ops::RangeInclusive<c_int> = 1..=6;

static IS_SAMPLING: AtomicBool = AtomicBool::new(false);

/// Installs the handler, if that was not done before.
///
/// # Errors
/// When the system refuses it.
pub(super) fn install() -> io::Result<()> {
    static INSTALLED: OnceLock<Result<(), i32>> = OnceLock::new();
    let installed = INSTALLED.get_or_init(|| {
        // SAFETY: all zeros is a valid `sigaction`: no flags, an empty mask.
        let mut action: libc::sigaction = unsafe { mem::zeroed() };
        action.sa_sigaction = on_signal as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
        // SAFETY: the handler keeps to what signal handlers may do (invariant 3).
        let status = unsafe { libc::sigaction(SIGNAL, &raw const action, ptr::null_mut()) };
        if status == 0 {
            Ok(())
        } else {
            Err(io::Error::last_os_error().raw_os_error().unwrap_or(0))
        }
    });
    installed.map_err(io::Error::from_raw_os_error)
}

/// Sends the signal to every thread of the process, as a profile may at any moment: for tests of
/// what that does to system calls. Nothing is sampled.
///
/// # Errors
/// When the handler cannot be installed, or the threads cannot be listed.
pub fn interrupt_threads() -> io::Result<()> {
    install()?;
    for thread_id in super::threads::list()? {
        // SAFETY: the handler is installed and ignores signals without its mark. The call fails for
        // threads that have ended.
        unsafe { libc::syscall(libc::SYS_tgkill, std::process::id(), thread_id, SIGNAL) };
    }
    Ok(())
}

/// Whether signals are acted on from now on.
pub(super) fn switch(is_sampling: bool) {
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
    // SAFETY: the kernel passes the signal's description and the interrupted state to handlers that
    // ask for them.
    let (info, context) = unsafe { (&*info, &*context.cast::<libc::ucontext_t>()) };
    let registers = Registers::of(context);
    if info.si_code == libc::SI_TIMER {
        // SAFETY: signals of timers carry the value that the timer was created with.
        let value = unsafe { info.si_value() }.sival_ptr as usize;
        // A timer of somebody else has another value; a timer of ours is only ever that of the
        // lane's owner.
        if let Some(lane) = lane::at(value) {
            let now_mono_ns = clock::monotonic_ns();
            if let Some(since) = timer::fired(lane, registers, now_mono_ns) {
                let sample = CpuSample {
                    time_mono_ns: since.mono_ns,
                    duration_ns: now_mono_ns.saturating_sub(since.mono_ns),
                    weight_ns: since.cpu_ns,
                };
                write_sample(lane, registers, &sample, std::iter::empty());
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

/// Takes one sample for each that the kernel took since the last signal. More than one are of one
/// stay in the kernel: the signal would have come before the thread went on. So the frames of the
/// process are the same in all.
fn take_perf_samples(lane: &Lane, registers: Registers) {
    perf::with_page(lane, |page| {
        let (sample_count, lost_count) = page.count();
        lane.signal.count_dropped(lost_count);
        if sample_count == 0 {
            return;
        }
        page.consume(|sample| {
            let cpu_sample = CpuSample {
                time_mono_ns: sample.time_mono_ns(),
                duration_ns: 0,
                // Not what the CPU clock says: in a long call of the system it has gone on since
                // the sample.
                weight_ns: sample.period_ns(),
            };
            write_sample(lane, registers, &cpu_sample, sample.kernel_frames());
        });
    });
}

/// What a sample stands for.
struct CpuSample {
    time_mono_ns: u64,
    duration_ns: u64,
    weight_ns: u64,
}

fn write_sample(
    lane: &Lane,
    registers: Registers,
    sample: &CpuSample,
    kernel_frames: impl Iterator<Item = u64>,
) {
    let mut entry = lane.signal.begin();
    let mut kernel_frame_count = 0;
    for frame in kernel_frames.take(usize::from(u8::MAX)) {
        entry.push_frame(frame);
        kernel_frame_count += 1;
    }
    let stack = lane.stack.from(registers.sp);
    let mut take = |address: usize| entry.push_frame(address as u64);
    // SAFETY: the registers are those of the calling thread, and the lane is its own.
    unsafe { walk::from_registers(registers, stack, anchor::innermost(), &mut take) };
    entry.commit(&Header {
        code: Kind::Cpu.code(),
        has_interrupted_frame: true,
        kernel_frame_count,
        tag: Tag::current_code(),
        time_mono_ns: sample.time_mono_ns,
        weight: sample.weight_ns,
        duration_ns: sample.duration_ns,
        name: "",
        address: 0,
    });
}
