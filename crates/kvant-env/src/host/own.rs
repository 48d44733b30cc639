//! What this process takes of the machine, and what it does not get, read several times per second.
//!
//! The kernel's files stay open, so that a reading costs a system call per file. Only differences
//! between readings are meaningful.
//!
//! Invariants:
//! 1. Figures never decrease: a thread that has ended keeps its share.
//! 2. Nothing here fails: what a kernel or container does not tell is `None`.
//!
//! Threads: belongs to one.

use super::procfs;
use rustix::process::{Resource, getrlimit};
use rustix::time::{ClockId, clock_gettime};
use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt;

/// New threads are looked for at each tenth reading.
const READINGS_PER_LISTING: u32 = 10;
/// Threads beyond this many are not read: each costs a descriptor and a system call.
const THREADS_MAX: u64 = 256;
/// Nor do they take more than one in so many of the descriptors that the process may have.
const DESCRIPTOR_PARTS: u64 = 8;
/// More than the files have, but for `stat`, of which the first line counts.
const TEXT_BYTES: usize = 2048;

/// Sums since an arbitrary moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OwnFigures {
    /// CPU time of this process.
    pub cpu_ns: u64,
    /// Time in which its threads were ready to run and had no CPU.
    pub run_queue_wait_ns: Option<u64>,
    /// Time that the hypervisor took from all CPUs of the machine, in ticks of 10 ms.
    pub stolen_ns: Option<u64>,
    /// CPU time of all tasks of the machine, in ticks.
    pub all_cpu_ns: Option<u64>,
    /// Bytes that the process caused to be read from disks.
    pub read_bytes: Option<u64>,
    /// Bytes that it caused to be written to disks.
    pub written_bytes: Option<u64>,
    /// TCP segments that the machine sent again, since the other side had not acknowledged them.
    pub resent_segments: Option<u64>,
}

impl OwnFigures {
    /// What was added since `earlier`; `None` where either is.
    #[must_use]
    pub fn since(&self, earlier: &OwnFigures) -> OwnFigures {
        let grown = |now: Option<u64>, then: Option<u64>| Some(now?.saturating_sub(then?));
        OwnFigures {
            cpu_ns: self.cpu_ns.saturating_sub(earlier.cpu_ns),
            run_queue_wait_ns: grown(self.run_queue_wait_ns, earlier.run_queue_wait_ns),
            stolen_ns: grown(self.stolen_ns, earlier.stolen_ns),
            all_cpu_ns: grown(self.all_cpu_ns, earlier.all_cpu_ns),
            read_bytes: grown(self.read_bytes, earlier.read_bytes),
            written_bytes: grown(self.written_bytes, earlier.written_bytes),
            resent_segments: grown(self.resent_segments, earlier.resent_segments),
        }
    }
}

/// Reads [`OwnFigures`].
#[derive(Debug)]
pub struct OwnUse {
    stat: Option<File>,
    io: Option<File>,
    network: Option<File>,
    threads: BTreeMap<u32, ThreadWait>,
    threads_max: usize,
    waited_ns: Option<u64>,
    readings_to_listing: u32,
}

/// The scheduler statistics of a thread, which stay its own even if its id is reused.
#[derive(Debug)]
struct ThreadWait {
    file: File,
    waited_ns: u64,
}

impl OwnUse {
    /// Opens the files.
    pub fn open() -> OwnUse {
        let descriptors = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        let threads_max = THREADS_MAX.min(descriptors / DESCRIPTOR_PARTS);
        OwnUse {
            stat: File::open("/proc/stat").ok(),
            io: File::open("/proc/self/io").ok(),
            network: File::open("/proc/self/net/snmp").ok(),
            threads: BTreeMap::new(),
            threads_max: threads_max as usize,
            waited_ns: None,
            readings_to_listing: 0,
        }
    }

    /// The figures of now.
    pub fn read(&mut self) -> OwnFigures {
        self.read_threads();
        let io = self.io.as_ref().and_then(text);
        let bytes = |name| procfs::field(io.as_deref()?, name);
        let times = self.stat.as_ref().and_then(text);
        let times = times.and_then(|text| procfs::machine_times(&text));
        let network = self.network.as_ref().and_then(text);
        let cpu_time = clock_gettime(ClockId::ProcessCPUTime);
        OwnFigures {
            cpu_ns: cpu_time.tv_sec.cast_unsigned() * 1_000_000_000
                + cpu_time.tv_nsec.cast_unsigned(),
            run_queue_wait_ns: self.waited_ns,
            stolen_ns: times.map(|times| times.stolen_ns),
            all_cpu_ns: times.map(|times| times.tasks_ns),
            read_bytes: bytes("read_bytes:"),
            written_bytes: bytes("write_bytes:"),
            resent_segments: network.and_then(|text| procfs::resent_segments(&text)),
        }
    }

    fn read_threads(&mut self) {
        let total_ns = &mut self.waited_ns;
        self.threads.retain(|_, thread| {
            let Some(now_ns) = waited_ns(&thread.file) else { return false };
            *total_ns = Some(total_ns.unwrap_or(0) + now_ns.saturating_sub(thread.waited_ns));
            thread.waited_ns = now_ns;
            true
        });
        if self.readings_to_listing == 0 {
            self.list_threads();
            self.readings_to_listing = READINGS_PER_LISTING;
        }
        self.readings_to_listing -= 1;
    }

    fn list_threads(&mut self) {
        let is_first = self.threads.is_empty();
        for id in procfs::names("/proc/self/task".as_ref()) {
            let Ok(number) = id.parse() else { continue };
            if self.threads.len() >= self.threads_max || self.threads.contains_key(&number) {
                continue;
            }
            let Ok(file) = File::open(format!("/proc/self/task/{id}/schedstat")) else { continue };
            let Some(now_ns) = waited_ns(&file) else { continue };
            // A thread that has started since the last listing counts from its start.
            let new_ns = if is_first { 0 } else { now_ns };
            self.waited_ns = Some(self.waited_ns.unwrap_or(0) + new_ns);
            self.threads.insert(number, ThreadWait { file, waited_ns: now_ns });
        }
    }
}

/// The second of three numbers: time on a CPU, time ready without one, times scheduled. `None` once
/// the thread has ended.
fn waited_ns(schedstat: &File) -> Option<u64> {
    text(schedstat)?.split_ascii_whitespace().nth(1)?.parse().ok()
}

/// The beginning of a file of the kernel.
fn text(file: &File) -> Option<String> {
    let mut bytes = [0; TEXT_BYTES];
    let count = file.read_at(&mut bytes, 0).ok()?;
    std::str::from_utf8(&bytes[..count]).ok().map(str::to_owned)
}

#[cfg(test)]
mod tests;
