//! A perf event that counts a thread's CPU time: the engine that sees kernel frames.
//!
//! The kernel writes each sample, with the kernel part of the stack, into shared memory and signals
//! the thread. The signal handler walks the user part (the kernel's walk does not know anchors),
//! adds the tag, and empties the memory.
//!
//! Invariant: the memory is unmapped only after its pointer is removed from the lane and the
//! handler does not use it. Each side first writes (`is_page_in_use`; null) and then reads what the
//! other writes, in one total order, so at least one sees the other.
//!
//! Threads: the drain opens and closes; the signal handler of the sampled thread reads.

use super::lane::{self, Lane, SIGNAL};
use rustix::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::ffi::{c_int, c_ulong};
use std::marker::PhantomData;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::{io, ptr, thread};

/// Pages for samples; a power of two. A sample takes at most 1.1 KiB.
const DATA_PAGES: usize = 2;

/// Processes that may use perf events: -1 all; 0 and 1 any process, for itself; 2 the same without
/// the kernel; 3 and more only privileged processes.
const PARANOID: &str = "/proc/sys/kernel/perf_event_paranoid";

// From <linux/perf_event.h>.
const TYPE_SOFTWARE: u32 = 1;
const SOFTWARE_CPU_CLOCK: u64 = 0;
const SAMPLE_TIME: u64 = 1 << 2;
const SAMPLE_CALLCHAIN: u64 = 1 << 5;
const SAMPLE_PERIOD: u64 = 1 << 8;
const FLAG_DISABLED: u64 = 1 << 0;
const FLAG_EXCLUDE_KERNEL: u64 = 1 << 5;
const FLAG_EXCLUDE_HYPERVISOR: u64 = 1 << 6;
const FLAG_EXCLUDE_CALLCHAIN_USER: u64 = 1 << 22;
const FLAG_USE_CLOCK_ID: u64 = 1 << 25;
const OPEN_CLOSE_ON_EXEC: c_ulong = 1 << 3;
const IOCTL_ENABLE: c_ulong = 0x2400;
const IOCTL_DISABLE: c_ulong = 0x2401;
const RECORD_LOST: u32 = 2;
const RECORD_SAMPLE: u32 = 9;
/// Frames from this value on are markers.
const CONTEXT_MIN: u64 = -4095_i64 as u64;
/// Offsets in the first page of the kernel's write position and of our read position.
const PAGE_HEAD_OFFSET_BYTES: usize = 1024;
const PAGE_TAIL_OFFSET_BYTES: usize = 1032;

// From <fcntl.h>.
const F_SETSIG: c_int = 10;
const F_SETOWN_EX: c_int = 15;
const F_OWNER_TID: c_int = 0;

/// `struct perf_event_attr`, in the oldest version with all fields that we use.
#[repr(C)]
#[derive(Default)]
struct Attributes {
    kind: u32,
    size_bytes: u32,
    config: u64,
    sample_period: u64,
    sample_kind: u64,
    read_format: u64,
    flags: u64,
    wakeup_event_count: u32,
    breakpoint_kind: u32,
    config_1: u64,
    config_2: u64,
    branch_sample_kind: u64,
    sample_registers_user: u64,
    sample_stack_user: u32,
    clock_id: i32,
}
const _: () = assert!(size_of::<Attributes>() == 96);

/// `struct f_owner_ex`.
#[repr(C)]
struct Owner {
    kind: c_int,
    id: c_int,
}

/// Checks that the system permits perf events of our own threads.
pub(super) fn probe(with_kernel: bool) -> io::Result<()> {
    open_event(lane::own_thread_id(), 1_000_000, with_kernel).map(drop)
}

/// Explains a refusal: what was refused, by which setting, and the remedies.
pub(super) fn refusal(error: &io::Error) -> io::Error {
    let setting = kvant_env::host::read_text(Path::new(PARANOID)).unwrap_or_default();
    io::Error::new(error.kind(), refusal_text(error, setting.trim()))
}

fn refusal_text(error: &io::Error, setting: &str) -> String {
    let setting = match setting {
        "" => String::new(),
        level => format!("; kernel.perf_event_paranoid is {level}"),
    };
    format!(
        "perf events: {error}{setting}. `sysctl kernel.perf_event_paranoid=1` permits them, in \
         the kernel too; `--engine timer` needs no permission"
    )
}

/// A running event. Dropping it closes it.
pub(super) struct Event {
    descriptor: OwnedFd,
    lane: &'static Lane,
}

impl Event {
    /// Lets the kernel sample the thread that owns `lane` after each `period_ns` of its CPU time,
    /// in the kernel too or only outside of it.
    pub(super) fn start(
        lane: &'static Lane,
        period_ns: u64,
        with_kernel: bool,
    ) -> io::Result<Event> {
        let thread_id = lane.owner();
        let descriptor = open_event(thread_id, period_ns, with_kernel)?;
        let page = map(&descriptor)?;
        lane.perf_page.store(page, Ordering::SeqCst);
        let event = Event { descriptor, lane };
        event.control_signals(thread_id)?;
        event.control(IOCTL_ENABLE)?;
        Ok(event)
    }

    fn control_signals(&self, thread_id: u32) -> io::Result<()> {
        let descriptor = self.descriptor.as_raw_fd();
        let owner = Owner { kind: F_OWNER_TID, id: thread_id.cast_signed() };
        // SAFETY: the descriptor is open, and `owner` is what the command reads.
        check(unsafe { libc::fcntl(descriptor, F_SETOWN_EX, &raw const owner) })?;
        // SAFETY: the descriptor is open; these commands take numbers.
        check(unsafe { libc::fcntl(descriptor, F_SETSIG, SIGNAL) })?;
        // SAFETY: as above.
        check(unsafe { libc::fcntl(descriptor, libc::F_SETFL, libc::O_NONBLOCK | libc::O_ASYNC) })
    }

    fn control(&self, command: c_ulong) -> io::Result<()> {
        // SAFETY: the descriptor is a perf event's, and these commands take no argument.
        check(unsafe { libc::ioctl(self.descriptor.as_raw_fd(), command as _, 0) })
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        let disabled = self.control(IOCTL_DISABLE);
        debug_assert!(disabled.is_ok(), "{disabled:?}");
        let page = self.lane.perf_page.swap(ptr::null_mut(), Ordering::SeqCst);
        // The handler takes microseconds, or longer if its thread has no processor.
        while self.lane.is_page_in_use.load(Ordering::SeqCst) {
            thread::yield_now();
        }
        // SAFETY: `map` mapped it, and the handler no longer uses it (see the invariant).
        let status = unsafe { libc::munmap(page.cast(), mapped_bytes()) };
        debug_assert_eq!(status, 0);
    }
}

fn open_event(thread_id: u32, period_ns: u64, with_kernel: bool) -> io::Result<OwnedFd> {
    let kernel_flag = if with_kernel { 0 } else { FLAG_EXCLUDE_KERNEL };
    let attributes = Attributes {
        kind: TYPE_SOFTWARE,
        size_bytes: size_of::<Attributes>() as u32,
        config: SOFTWARE_CPU_CLOCK,
        sample_period: period_ns,
        sample_kind: SAMPLE_TIME | SAMPLE_PERIOD | SAMPLE_CALLCHAIN,
        flags: FLAG_DISABLED
            | FLAG_EXCLUDE_HYPERVISOR
            | FLAG_EXCLUDE_CALLCHAIN_USER
            | FLAG_USE_CLOCK_ID
            | kernel_flag,
        wakeup_event_count: 1,
        clock_id: libc::CLOCK_MONOTONIC,
        ..Attributes::default()
    };
    let (any_cpu, no_group): (c_int, c_int) = (-1, -1);
    // SAFETY: `attributes` has the kernel's layout and states its length.
    let descriptor = unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            &raw const attributes,
            thread_id.cast_signed(),
            any_cpu,
            no_group,
            OPEN_CLOSE_ON_EXEC,
        )
    };
    if descriptor < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: a new descriptor without another owner.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor as RawFd) })
}

fn map(descriptor: &OwnedFd) -> io::Result<*mut u8> {
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: a new mapping, anywhere.
    let page = unsafe {
        libc::mmap(
            ptr::null_mut(),
            mapped_bytes(),
            protection,
            libc::MAP_SHARED,
            descriptor.as_raw_fd(),
            0,
        )
    };
    if page == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    Ok(page.cast())
}

fn mapped_bytes() -> usize {
    (1 + DATA_PAGES) * rustix::param::page_size()
}

fn check(status: c_int) -> io::Result<()> {
    if status < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Signal handler: calls `use_page` with the memory into which the kernel writes samples of this
/// thread, if it is mapped.
pub(super) fn with_page(lane: &Lane, use_page: impl FnOnce(Page<'_>)) {
    lane.is_page_in_use.store(true, Ordering::SeqCst);
    let start = lane.perf_page.load(Ordering::SeqCst);
    if !start.is_null() {
        let mut page = Page { lane: PhantomData, start, end: 0 };
        page.end = page.position(PAGE_HEAD_OFFSET_BYTES).load(Ordering::Acquire);
        use_page(page);
    }
    lane.is_page_in_use.store(false, Ordering::SeqCst);
}

/// Memory shared with the kernel, valid while the lane marks it as in use.
pub(super) struct Page<'a> {
    lane: PhantomData<&'a Lane>,
    start: *mut u8,
    /// The kernel's write position at the start. Later samples have their own signal.
    end: u64,
}

impl Page<'_> {
    /// Passes all samples to `take`, and returns their memory to the kernel. Returns the number of
    /// lost samples.
    pub(super) fn consume(&self, mut take: impl FnMut(PageSample<'_>)) -> u64 {
        let mut lost_count = 0;
        let tail = self.position(PAGE_TAIL_OFFSET_BYTES);
        let mut at = tail.load(Ordering::Relaxed);
        while at < self.end {
            let header = self.word(at);
            match header as u32 {
                RECORD_SAMPLE => take(PageSample { page: self, at }),
                // The record is the event's id and the count.
                RECORD_LOST => lost_count += self.word(at + 16),
                _ => {}
            }
            let bytes = header >> 48;
            if bytes == 0 {
                break;
            }
            at += bytes;
        }
        tail.store(self.end, Ordering::Release);
        lost_count
    }

    fn position(&self, offset_bytes: usize) -> &AtomicU64 {
        // SAFETY: the first page is mapped while in use, and has an atomic number there.
        unsafe { AtomicU64::from_ptr(self.start.add(offset_bytes).cast()) }
    }

    /// The word at `position`, a multiple of eight.
    fn word(&self, position: u64) -> u64 {
        let page_bytes = rustix::param::page_size();
        let offset_bytes = position as usize & (DATA_PAGES * page_bytes - 1);
        // SAFETY: inside of the mapping; the kernel does not write it until it is returned.
        unsafe { self.start.add(page_bytes + offset_bytes).cast::<u64>().read() }
    }
}

/// A sample of the kernel: a header, the time, the period, the number of frames, the frames.
pub(super) struct PageSample<'a> {
    page: &'a Page<'a>,
    at: u64,
}

impl PageSample<'_> {
    pub(super) fn time_mono_ns(&self) -> u64 {
        self.page.word(self.at + 8)
    }

    pub(super) fn period_ns(&self) -> u64 {
        self.page.word(self.at + 16)
    }

    pub(super) fn kernel_frames(&self) -> impl Iterator<Item = u64> {
        let count = self.page.word(self.at + 24);
        let frames = (0..count).map(|index| self.page.word(self.at + 32 + index * 8));
        frames.filter(|&frame| frame < CONTEXT_MIN)
    }
}

#[cfg(test)]
mod tests;
