//! The CPU use of this machine while load is generated: by the generator, the server, other
//! processes and the hypervisor.
//!
//! 1. Shares are parts of the time of the CPUs that [`ProcFs::cpu_times`] accounts for, except for
//!    the pressure of the whole machine, which is a part of wall time. If these are not all CPUs,
//!    the generator and the server run on no others.
//! 2. Time in interrupts counts for no share: whether the kernel charges it to tasks depends on its
//!    build. So `others` may be slightly too low, never too high.
//! 3. The server's share is known if it listens on this machine and its descriptors are readable
//!    (same user, or root). Otherwise `others` includes it, says so, and is not held against the
//!    measurement.

use crate::target::{Address, Target};
use kvant_env::host::procfs::{CpuTimes, ProcFs};
use serde::{Deserialize, Serialize};

/// The shortest time that gives shares: the kernel counts in ticks of 10 ms, and one tick of a
/// shorter time would be a share of several per cent.
const TIME_MIN_NS: u64 = 500_000_000;

/// CPU use over a period of time; written as JSON under these names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MachineUse {
    /// The length of the period, in nanoseconds.
    pub time_ns: u64,
    /// CPUs of which the shares are parts.
    pub cpu_count: u32,
    /// Share of this process.
    pub generator_part: f64,
    /// Share of the processes that listen at the targets, and of nodes of their cluster that are
    /// known; `None` if they are elsewhere or unknown.
    pub server_part: Option<f64>,
    /// Share of all other processes.
    pub others_part: f64,
    /// Whether the server is on this machine and `others_part` includes its share.
    pub others_include_server: bool,
    /// Share that the hypervisor took while a task was ready to run.
    pub stolen_part: f64,
    /// Part of the time in which at least one task was ready to run and had no CPU; `None` if the
    /// kernel does not report it.
    pub pressure_part: Option<f64>,
}

/// Samples the CPU use of this machine.
#[derive(Debug)]
pub struct Machine {
    proc: ProcFs,
    server: Server,
}

#[derive(Debug, PartialEq, Eq)]
enum Server {
    /// On another machine, or in this process.
    Elsewhere,
    /// In these processes.
    Processes(Vec<String>),
    /// On this machine, in unknown processes.
    Hidden,
}

#[derive(Clone, Copy, Debug)]
struct MachineSample {
    at_ns: u64,
    cpu: CpuTimes,
    own_ns: u64,
    server_ns: Option<u64>,
    pressure_ns: Option<u64>,
}

impl Machine {
    /// Finds the server processes of `targets`; `nodes` are processes that keep their records.
    pub fn new(proc: ProcFs, targets: &[Target], nodes: &[u32]) -> Machine {
        let mut server = find_server(&proc, targets);
        if let Server::Processes(pids) = &mut server {
            pids.extend(nodes.iter().map(u32::to_string));
        }
        Machine { proc, server }
    }

    /// Reads the counters; `None` if the system does not report them.
    fn sample(&self, now_ns: u64) -> Option<MachineSample> {
        let server_ns = match &self.server {
            // A process that has ended uses nothing more.
            Server::Processes(pids) => {
                Some(pids.iter().filter_map(|pid| self.proc.process_cpu_ns(pid)).sum())
            }
            Server::Elsewhere | Server::Hidden => None,
        };
        Some(MachineSample {
            at_ns: now_ns,
            cpu: self.proc.cpu_times()?,
            own_ns: self.proc.process_cpu_ns("self")?,
            server_ns,
            pressure_ns: self.proc.cpu_pressure_ns(),
        })
    }

    /// The CPU use between two samples; `None` if the time is too short.
    fn between(&self, before: &MachineSample, after: &MachineSample) -> Option<MachineUse> {
        let time_ns = after.at_ns.saturating_sub(before.at_ns);
        let all_ns = after.cpu.all_ns.saturating_sub(before.cpu.all_ns);
        if time_ns < TIME_MIN_NS || all_ns == 0 {
            return None;
        }
        let part = |of_ns: f64, before: u64, after: u64| {
            (after.saturating_sub(before) as f64 / of_ns).min(1.0)
        };
        let cpus_ns = time_ns as f64 * f64::from(after.cpu.cpu_count.max(1));
        let server = before.server_ns.zip(after.server_ns);
        let server_part = server.map(|(before, after)| part(cpus_ns, before, after));
        let generator_part = part(cpus_ns, before.own_ns, after.own_ns);
        let tasks_part = part(cpus_ns, before.cpu.tasks_ns, after.cpu.tasks_ns);
        let pressure = before.pressure_ns.zip(after.pressure_ns);
        Some(MachineUse {
            time_ns,
            cpu_count: after.cpu.cpu_count,
            generator_part,
            server_part,
            others_part: (tasks_part - generator_part - server_part.unwrap_or(0.0)).max(0.0),
            others_include_server: self.server == Server::Hidden,
            stolen_part: part(cpus_ns, before.cpu.stolen_ns, after.cpu.stolen_ns),
            pressure_part: pressure.map(|(before, after)| part(time_ns as f64, before, after)),
        })
    }
}

pub(crate) struct MachineWatch<'a> {
    machine: Option<&'a Machine>,
    first: Option<MachineSample>,
    lap: Option<MachineSample>,
    last: Option<MachineSample>,
}

impl<'a> MachineWatch<'a> {
    /// Without a machine, nothing is sampled.
    pub(crate) fn new(machine: Option<&'a Machine>) -> MachineWatch<'a> {
        MachineWatch { machine, first: None, lap: None, last: None }
    }

    pub(crate) fn begin(&mut self, now_ns: u64) {
        self.first = self.machine.and_then(|machine| machine.sample(now_ns));
        self.lap = self.first;
        self.last = self.first;
    }

    /// Ends a lap: the CPU use since the beginning or the last lap. `None`, and the lap goes on, if
    /// the time is too short.
    pub(crate) fn lap(&mut self, now_ns: u64) -> Option<MachineUse> {
        let machine = self.machine?;
        let now = machine.sample(now_ns)?;
        let since = machine.between(self.lap.as_ref()?, &now);
        if since.is_some() {
            self.lap = Some(now);
        }
        self.last = Some(now);
        since
    }

    /// The CPU use from the beginning to the last sample.
    pub(crate) fn total(&self) -> Option<MachineUse> {
        self.machine?.between(self.first.as_ref()?, self.last.as_ref()?)
    }
}

fn find_server(proc: &ProcFs, targets: &[Target]) -> Server {
    let own_pid = proc.own_pid();
    let mut pids = Vec::new();
    for address in targets.iter().filter_map(|target| target.addresses.first()) {
        let found = match address {
            Address::Tcp(address) => {
                if !proc.is_own_address(address.ip()) {
                    continue;
                }
                proc.tcp_listeners(*address)
            }
            Address::Unix(path) => proc.unix_listeners(path),
        };
        if found.is_empty() {
            return Server::Hidden;
        }
        pids.extend(found.into_iter().filter(|pid| Some(*pid) != own_pid));
    }
    if pids.is_empty() {
        return Server::Elsewhere;
    }
    pids.sort_unstable();
    pids.dedup();
    Server::Processes(pids.iter().map(u32::to_string).collect())
}

#[cfg(test)]
mod tests;
