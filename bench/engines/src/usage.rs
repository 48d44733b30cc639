//! What this process and the machine have used, by the kernel's accounts.

use crate::Failure;
use serde::{Deserialize, Serialize};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, Instant};

/// Accounts at one moment, or between two.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Usage {
    pub(crate) at_ns: u64,
    /// CPU time of all threads.
    pub(crate) cpu_ns: u64,
    /// Bytes of pages that the process made dirty: what it sends to the disk.
    pub(crate) written_bytes: u64,
    /// Bytes that the process read by system calls, whether from memory or disk.
    pub(crate) read_bytes: u64,
    /// CPU time of all processes of the machine, and of the kernel's own threads, which write pages
    /// back.
    pub(crate) processes_ns: u64,
    pub(crate) kernel_threads_ns: u64,
    /// CPU time that the hypervisor took, on all CPUs.
    pub(crate) stolen_ns: u64,
}

/// `/proc/stat` counts in these.
const TICK_NS: u64 = 10_000_000;
/// Parts of one CPU's time.
const STOLEN_SHARE_MAX: f64 = 0.02;
const OTHERS_SHARE_MAX: f64 = 0.10;
/// At a given rate: a p99.9 is made of a thousandth of the time.
const OTHERS_SHARE_MAX_AT_RATE: f64 = 0.01;
/// Less is within the resolution of the accounts.
const NOTABLE_NS: u64 = 5 * TICK_NS;

impl Usage {
    pub(crate) fn now() -> Result<Usage, Failure> {
        let io = fs::read_to_string("/proc/self/io")?;
        let stat = fs::read_to_string("/proc/stat")?;
        let all_cpus = stat.lines().next().unwrap_or_default();
        let ticks: Vec<u64> =
            all_cpus.split_whitespace().skip(1).map_while(|field| field.parse().ok()).collect();
        let [user, nice, system, _idle, _iowait, _irq, _softirq, stolen, ..] = ticks[..] else {
            return Err("/proc/stat has no times".into());
        };
        Ok(Usage {
            at_ns: clock_ns(libc::CLOCK_MONOTONIC)?,
            cpu_ns: clock_ns(libc::CLOCK_PROCESS_CPUTIME_ID)?,
            written_bytes: field(&io, "write_bytes:")?,
            read_bytes: field(&io, "rchar:")?,
            processes_ns: (user + nice + system) * TICK_NS,
            kernel_threads_ns: kernel_threads_ticks()? * TICK_NS,
            stolen_ns: stolen * TICK_NS,
        })
    }

    /// What was used since `earlier`.
    pub(crate) fn since(&self, earlier: &Usage) -> Usage {
        Usage {
            at_ns: self.at_ns - earlier.at_ns,
            cpu_ns: self.cpu_ns - earlier.cpu_ns,
            written_bytes: self.written_bytes - earlier.written_bytes,
            read_bytes: self.read_bytes - earlier.read_bytes,
            processes_ns: self.processes_ns - earlier.processes_ns,
            // The times of threads that have ended are gone.
            kernel_threads_ns: self.kernel_threads_ns.saturating_sub(earlier.kernel_threads_ns),
            stolen_ns: self.stolen_ns - earlier.stolen_ns,
        }
    }

    /// CPU time of other processes.
    pub(crate) fn others_ns(&self) -> u64 {
        self.processes_ns.saturating_sub(self.cpu_ns + self.kernel_threads_ns)
    }

    /// Whether other processes or the hypervisor took a notable share of one CPU.
    pub(crate) fn is_disturbed(&self, has_rate: bool) -> bool {
        let others_share_max = if has_rate { OTHERS_SHARE_MAX_AT_RATE } else { OTHERS_SHARE_MAX };
        let is_notable =
            |ns: u64, share: f64| ns > NOTABLE_NS && ns as f64 > self.at_ns as f64 * share;
        is_notable(self.stolen_ns, STOLEN_SHARE_MAX)
            || is_notable(self.others_ns(), others_share_max)
    }
}

fn clock_ns(clock: libc::clockid_t) -> Result<u64, Failure> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is valid for the call.
    if unsafe { libc::clock_gettime(clock, &mut time) } != 0 {
        return Err(std::io::Error::last_os_error().into());
    }
    Ok(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

/// CPU time of the kernel's threads: the children of process 2.
fn kernel_threads_ticks() -> Result<u64, Failure> {
    let mut sum = 0;
    for entry in fs::read_dir("/proc")? {
        // Other entries have no such file, and processes may end meanwhile.
        let Ok(stat) = fs::read_to_string(entry?.path().join("stat")) else { continue };
        // After the name, which may contain anything: state, parent, ...
        let fields: Vec<&str> =
            stat.rsplit(") ").next().unwrap_or_default().split_whitespace().collect();
        if let [_state, "2", ..] = fields[..] {
            let ticks = |index: usize| fields.get(index).and_then(|text| text.parse::<u64>().ok());
            sum += ticks(11).unwrap_or(0) + ticks(12).unwrap_or(0);
        }
    }
    Ok(sum)
}

/// The number after `name` in one of the kernel's tables.
fn field(table: &str, name: &str) -> Result<u64, Failure> {
    let line = table.lines().find_map(|line| line.strip_prefix(name));
    let number = line.and_then(|rest| rest.split_whitespace().next());
    Ok(number.ok_or_else(|| format!("no {name} in the kernel's table"))?.parse()?)
}

/// Resident memory.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Memory {
    /// Largest since the process started.
    pub(crate) peak_bytes: u64,
    pub(crate) now_bytes: u64,
    /// Of these, without pages of files.
    pub(crate) anonymous_bytes: u64,
}

impl Memory {
    pub(crate) fn now() -> Result<Memory, Failure> {
        let status = fs::read_to_string("/proc/self/status")?;
        let bytes = |name| Ok::<_, Failure>(field(&status, name)? * 1024);
        Ok(Memory {
            peak_bytes: bytes("VmHWM:")?,
            now_bytes: bytes("VmRSS:")?,
            anonymous_bytes: bytes("RssAnon:")?,
        })
    }
}

/// Allocated bytes of all files below `dir`.
pub(crate) fn disk_bytes(dir: &Path) -> Result<u64, Failure> {
    let mut bytes = 0;
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        bytes += match entry.metadata()? {
            metadata if metadata.is_dir() => disk_bytes(&entry.path())?,
            metadata => metadata.blocks() * 512,
        };
    }
    Ok(bytes)
}

const POLL: Duration = Duration::from_millis(20);
/// Consecutive polls that must find no work.
const QUIET_POLLS: u32 = 15;

/// Waits until no other thread of this process has run or waited for the disk for some time: what
/// is left of engines that do not say when they are idle.
pub(crate) fn wait_for_quiet_threads(longest: Duration) -> Result<(), Failure> {
    let deadline = Instant::now() + longest;
    let mut quiet_polls = 0;
    while quiet_polls < QUIET_POLLS {
        if Instant::now() > deadline {
            return Err(format!("background threads still work after {longest:?}").into());
        }
        std::thread::sleep(POLL);
        quiet_polls = if is_any_other_thread_busy()? { 0 } else { quiet_polls + 1 };
    }
    Ok(())
}

fn is_any_other_thread_busy() -> Result<bool, Failure> {
    // SAFETY: a call without arguments.
    let own = unsafe { libc::gettid() }.to_string();
    for entry in fs::read_dir("/proc/self/task")? {
        let entry = entry?;
        if entry.file_name() == own.as_str() {
            continue;
        }
        // A thread that has ended meanwhile is not busy.
        let Ok(stat) = fs::read_to_string(entry.path().join("stat")) else { continue };
        let state = stat.rsplit(") ").next().and_then(|rest| rest.chars().next());
        if matches!(state, Some('R' | 'D')) {
            return Ok(true);
        }
    }
    Ok(false)
}
