//! CPU times, pressure, processes and listening sockets from `/proc`.
//!
//! 1. Nothing here fails: data that a kernel or container does not provide is `None` or empty.
//! 2. Times have an arbitrary origin and the resolution of kernel ticks (10 ms), so only
//!    differences over a second or more are meaningful.

use std::ffi::OsStr;
use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};

/// Nanoseconds per tick of `/proc`.
fn tick_ns() -> u64 {
    1_000_000_000 / rustix::param::clock_ticks_per_second().max(1)
}

/// State of a listening socket in `/proc/net/tcp`.
const TCP_LISTEN: &str = "0A";
/// Flag of a listening socket in `/proc/net/unix`.
const UNIX_LISTENS: u32 = 0x1_0000;

/// A `/proc` directory.
#[derive(Clone, Debug)]
pub struct ProcFs {
    root: PathBuf,
    /// CPUs of [`ProcFs::cpu_times`]; empty: all.
    cpus: Vec<u32>,
}

/// Total CPU time of some CPUs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuTimes {
    /// Their number, without those that are offline.
    pub cpu_count: u32,
    /// Used by tasks in user mode and in the kernel, without interrupts.
    pub tasks_ns: u64,
    /// Taken by the hypervisor while a task was runnable.
    pub stolen_ns: u64,
    /// The sum of task, interrupt, idle and stolen time.
    pub all_ns: u64,
}

/// Counters of a process, those of its ended and awaited children included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProcessUse {
    /// CPU time of all threads.
    pub cpu_ns: u64,
    /// Resident memory, a level.
    pub rss_bytes: u64,
    /// Bytes that it caused to be read from disks; `None` without the permission to see them.
    pub read_bytes: Option<u64>,
    /// Bytes that it caused to be written to disks; likewise.
    pub written_bytes: Option<u64>,
}

/// Context switches of a thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Switches {
    /// It waited.
    pub voluntary: u64,
    /// It was preempted.
    pub involuntary: u64,
}

impl ProcFs {
    /// The system's `/proc`.
    pub fn system() -> ProcFs {
        ProcFs::at("/proc")
    }

    /// A directory with the same layout, for tests.
    pub fn at(root: impl Into<PathBuf>) -> ProcFs {
        ProcFs { root: root.into(), cpus: Vec::new() }
    }

    /// The same with [`ProcFs::cpu_times`] of these CPUs only.
    #[must_use]
    pub fn on_cpus(&self, cpus: Vec<u32>) -> ProcFs {
        ProcFs { root: self.root.clone(), cpus }
    }

    /// CPU times of the machine, or of the CPUs of [`ProcFs::on_cpus`] if each of them has a row.
    pub fn cpu_times(&self) -> Option<CpuTimes> {
        let text = self.text("stat")?;
        let rows: Vec<(&str, &str)> =
            text.lines().filter_map(|line| line.strip_prefix("cpu")?.split_once(' ')).collect();
        let row = |name: &str| rows.iter().find(|(known, _)| *known == name);
        let chosen: Option<Vec<_>> = self.cpus.iter().map(|cpu| row(&cpu.to_string())).collect();
        if let Some(chosen) = chosen.filter(|chosen| !chosen.is_empty()) {
            return chosen.iter().try_fold(CpuTimes::default(), |sum, (_, ticks)| {
                let of_cpu = cpu_times_of(ticks)?;
                Some(CpuTimes {
                    cpu_count: sum.cpu_count + 1,
                    tasks_ns: sum.tasks_ns + of_cpu.tasks_ns,
                    stolen_ns: sum.stolen_ns + of_cpu.stolen_ns,
                    all_ns: sum.all_ns + of_cpu.all_ns,
                })
            });
        }
        let (_, all) = row("")?;
        Some(CpuTimes { cpu_count: rows.len() as u32 - 1, ..cpu_times_of(all)? })
    }

    /// Time in which at least one runnable task of the machine had no CPU.
    pub fn cpu_pressure_ns(&self) -> Option<u64> {
        let text = self.text("pressure/cpu")?;
        let some = text.lines().find_map(|line| line.strip_prefix("some "))?;
        let total = some.split_whitespace().find_map(|word| word.strip_prefix("total="))?;
        total.parse::<u64>().ok()?.checked_mul(1_000)
    }

    /// CPU time of a process id, or of `self`.
    pub fn process_cpu_ns(&self, process: &str) -> Option<u64> {
        let text = self.text(&format!("{process}/stat"))?;
        // The name, in parentheses, may contain any character.
        let mut fields = text.rsplit_once(')')?.1.split_whitespace().skip(11);
        let user: u64 = fields.next()?.parse().ok()?;
        let system: u64 = fields.next()?.parse().ok()?;
        Some((user + system).saturating_mul(tick_ns()))
    }

    /// Processes of a process group that have not ended, in ascending order.
    pub fn group_members(&self, group: u32) -> Vec<u32> {
        let is_member = |pid: &u32| {
            let text = self.text(&format!("{pid}/stat")).unwrap_or_default();
            // After the name: state, parent, group.
            let mut fields = text.rsplit_once(')').unwrap_or_default().1.split_whitespace();
            let has_ended = matches!(fields.next(), None | Some("Z" | "X"));
            !has_ended && fields.nth(1).and_then(|field| field.parse().ok()) == Some(group)
        };
        let all = names(&self.root);
        let mut pids: Vec<u32> =
            all.iter().filter_map(|name| name.parse().ok()).filter(is_member).collect();
        pids.sort_unstable();
        pids
    }

    /// When a process started, in ticks since the boot; `None` if there is no such process. With
    /// [`ProcFs::boot_id`] it tells a process from a later one with the same id.
    pub fn process_start_ticks(&self, pid: u32) -> Option<u64> {
        let stat = self.text(&format!("{pid}/stat"))?;
        stat.rsplit_once(')')?.1.split_whitespace().nth(19)?.parse().ok()
    }

    /// The random id of this boot.
    pub fn boot_id(&self) -> Option<String> {
        Some(self.text("sys/kernel/random/boot_id")?.trim().to_owned())
    }

    /// Counters of a process; `None` if it has ended.
    pub fn process_use(&self, pid: u32) -> Option<ProcessUse> {
        let stat = self.text(&format!("{pid}/stat"))?;
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
        // User and system time, of the process and of its awaited children.
        let ticks = fields.get(11..15)?.iter().map(|field| field.parse::<u64>().ok());
        let ticks: u64 = ticks.sum::<Option<u64>>()?;
        let rss_pages: u64 = fields.get(21)?.parse().ok()?;
        let io = self.text(&format!("{pid}/io")).unwrap_or_default();
        Some(ProcessUse {
            cpu_ns: ticks.saturating_mul(tick_ns()),
            rss_bytes: rss_pages.saturating_mul(rustix::param::page_size() as u64),
            read_bytes: field(&io, "read_bytes:"),
            written_bytes: field(&io, "write_bytes:"),
        })
    }

    /// Threads of a process with their context switches.
    pub fn thread_switches(&self, pid: u32) -> Vec<(u32, Switches)> {
        let tasks = names(&self.root.join(pid.to_string()).join("task"));
        let of_thread = |name: &String| {
            let status = self.text(&format!("{pid}/task/{name}/status"))?;
            let switches = Switches {
                voluntary: field(&status, "voluntary_ctxt_switches:")?,
                involuntary: field(&status, "nonvoluntary_ctxt_switches:")?,
            };
            Some((name.parse().ok()?, switches))
        };
        tasks.iter().filter_map(of_thread).collect()
    }

    /// The calling process's id in this directory.
    pub fn own_pid(&self) -> Option<u32> {
        self.text("self/stat")?.split_whitespace().next()?.parse().ok()
    }

    /// Whether an address belongs to this machine.
    pub fn is_own_address(&self, ip: IpAddr) -> bool {
        match ip {
            _ if ip.is_loopback() => true,
            IpAddr::V4(ip) => {
                // An address is followed by lines with its route types.
                let table = self.text("net/fib_trie").unwrap_or_default();
                let leaf = format!("|-- {ip}");
                let mut lines = table.lines().map(str::trim);
                lines.any(|line| line == leaf)
                    && lines
                        .take_while(|line| line.starts_with('/'))
                        .any(|line| line == "/32 host LOCAL")
            }
            IpAddr::V6(ip) => {
                let table = self.text("net/if_inet6").unwrap_or_default();
                let digits: String = ip.octets().iter().map(|byte| format!("{byte:02x}")).collect();
                table.lines().any(|line| line.starts_with(&digits))
            }
        }
    }

    /// Processes that listen at a TCP address or at its port on all addresses. Finds only processes
    /// whose descriptors are readable, that is, of the same user unless root.
    pub fn tcp_listeners(&self, address: SocketAddr) -> Vec<u32> {
        self.tcp_listeners_at(|listening| {
            let is_match = listening.ip() == address.ip() || listening.ip().is_unspecified();
            is_match && listening.port() == address.port()
        })
    }

    /// Processes that listen at TCP addresses that are wanted, as [`ProcFs::tcp_listeners`]. That
    /// of a listener on all addresses is unspecified.
    pub fn tcp_listeners_at(&self, is_wanted: impl Fn(SocketAddr) -> bool) -> Vec<u32> {
        let tables = ["net/tcp", "net/tcp6"].map(|table| self.text(table).unwrap_or_default());
        let inodes = tables.iter().flat_map(|table| table.lines()).filter_map(|line| {
            let fields: Vec<&str> = line.split_whitespace().collect();
            let (local, state, inode) = (fields.get(1)?, fields.get(3)?, fields.get(9)?);
            let listening = (*state == TCP_LISTEN).then(|| socket_address(local)).flatten()?;
            is_wanted(listening).then(|| (*inode).to_owned())
        });
        self.owners(&inodes.collect::<Vec<_>>())
    }

    /// Processes that listen at a Unix socket, as [`ProcFs::tcp_listeners`].
    pub fn unix_listeners(&self, path: &Path) -> Vec<u32> {
        let table = self.text("net/unix").unwrap_or_default();
        let inodes = table.lines().filter_map(|line| {
            let fields: Vec<&str> = line.split_whitespace().collect();
            let (flags, inode, bound) =
                (fields.get(3)?, fields.get(6)?, fields.get(7..)?.join(" "));
            let listens = u32::from_str_radix(flags, 16).ok()? & UNIX_LISTENS != 0;
            (listens && Path::new(&bound) == path).then(|| (*inode).to_owned())
        });
        self.owners(&inodes.collect::<Vec<_>>())
    }

    /// Processes with a descriptor of one of these sockets, in ascending order.
    fn owners(&self, inodes: &[String]) -> Vec<u32> {
        if inodes.is_empty() {
            return Vec::new();
        }
        let links: Vec<String> = inodes.iter().map(|inode| format!("socket:[{inode}]")).collect();
        let owns = |pid: &u32| {
            let dir = self.root.join(pid.to_string()).join("fd");
            names(&dir).iter().any(|name| {
                fs::read_link(dir.join(name)).is_ok_and(|target| {
                    links.iter().any(|link| target.as_os_str() == OsStr::new(link))
                })
            })
        };
        let all = names(&self.root);
        let mut pids: Vec<u32> =
            all.iter().filter_map(|name| name.parse().ok()).filter(owns).collect();
        pids.sort_unstable();
        pids
    }

    fn text(&self, file: &str) -> Option<String> {
        super::read_text(&self.root.join(file)).ok()
    }
}

/// The machine's times in the beginning of `stat`, for no CPU.
pub(super) fn machine_times(stat: &str) -> Option<CpuTimes> {
    cpu_times_of(stat.lines().next()?.strip_prefix("cpu ")?)
}

/// The times in a row of `stat`, for no CPU.
fn cpu_times_of(row: &str) -> Option<CpuTimes> {
    let ticks: Vec<u64> = row.split_whitespace().map_while(|word| word.parse().ok()).collect();
    // User time includes the guest time that follows.
    let &[user, nice, system, idle, io_wait, irq, soft_irq, stolen, ..] = &ticks[..] else {
        return None;
    };
    let tasks = user + nice + system;
    let all = tasks + idle + io_wait + irq + soft_irq + stolen;
    Some(CpuTimes {
        cpu_count: 0,
        tasks_ns: tasks.saturating_mul(tick_ns()),
        stolen_ns: stolen.saturating_mul(tick_ns()),
        all_ns: all.saturating_mul(tick_ns()),
    })
}

/// The number in the line that begins with `name`.
pub(super) fn field(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(name))?.trim().parse().ok()
}

/// TCP segments that were sent again, in the text of `net/snmp`: a line with names, a line with
/// numbers.
pub(super) fn resent_segments(snmp: &str) -> Option<u64> {
    let mut rows = snmp.lines().filter_map(|line| line.strip_prefix("Tcp:"));
    let (names, numbers) = (rows.next()?.split_whitespace(), rows.next()?.split_whitespace());
    names.zip(numbers).find(|(name, _)| *name == "RetransSegs")?.1.parse().ok()
}

/// Names in a directory; empty if it is unreadable.
pub(super) fn names(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().into_string().ok()).collect()
}

/// Parses `0100007F:1F90`: 32-bit words in native byte order, and the port.
fn socket_address(text: &str) -> Option<SocketAddr> {
    let (ip, port) = text.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let word = |at: usize| {
        let digits = ip.get(at * 8..(at + 1) * 8)?;
        Some(u32::from_str_radix(digits, 16).ok()?.to_ne_bytes())
    };
    let ip = match ip.len() {
        8 => IpAddr::V4(Ipv4Addr::from(word(0)?)),
        32 => {
            let mut bytes = [0; 16];
            for at in 0..4 {
                bytes[at * 4..(at + 1) * 4].copy_from_slice(&word(at)?);
            }
            // An IPv6 socket may listen at a mapped IPv4 address.
            Ipv6Addr::from(bytes).to_canonical()
        }
        _ => return None,
    };
    Some(SocketAddr::new(ip, port))
}

#[cfg(test)]
mod tests;
