//! What else used the machine while load was generated: the server, other processes, the
//! hypervisor.
//!
//! A run on a machine that others use measures them too. This module says how much they took, and
//! from which amount on the figures are no longer the server's ([`disturbance`]).
//!
//! 1. Shares are parts of the time of all CPUs, except for the pressure, which is a part of the
//!    time.
//! 2. Interrupts count for none: whether the kernel charges them to tasks depends on its build, so
//!    that "others" may be a little too low, never too high.
//! 3. The server is told from other processes where it listens on this machine and its descriptors
//!    may be looked at (same user, or root). Where it cannot be told, `others` includes it, says
//!    so, and is no reason for distrust.

use crate::outcome::Outcome;
use crate::target::{Address, Target};
use kvant_env::host::procfs::{CpuTimes, ProcFs};
use serde::{Deserialize, Serialize};

/// Share of a phase that the hypervisor may take. A 99th percentile is made by one request of a
/// hundred: a share of that size can be all of it. A calm one had 0.06 % in an hour.
pub const STOLEN_PART_MAX: f64 = 0.02;
/// Likewise of one second, which may have more: its ticks are few (that hour had 2 over 5 %).
pub const STOLEN_PART_OF_SECOND_MAX: f64 = 0.05;
/// Share that other processes may take, if tasks have to wait as well: CPUs that no other task
/// wants cost nothing.
pub const OTHERS_PART_MAX: f64 = 0.15;
/// Part of the time in which some task may wait for a CPU before other processes are a reason for
/// distrust.
pub const PRESSURE_PART_MAX: f64 = 0.1;
/// Part of a phase that may lie in disturbed seconds.
pub const DISTURBED_TIME_PART_MAX: f64 = 0.1;

/// Less time than this says nothing: the kernel counts in ticks of 10 ms, of which one would be a
/// share of several per cent.
const TIME_MIN_NS: u64 = 500_000_000;

/// Use of the CPUs over a stretch of time; written as JSON under these names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MachineUse {
    /// How long it was looked at, in nanoseconds.
    pub time_ns: u64,
    /// CPUs of the machine.
    pub cpu_count: u32,
    /// Share of this process.
    pub generator_part: f64,
    /// Share of the processes that listen where the load goes; `None` when they are not on this
    /// machine, or not known.
    pub server_part: Option<f64>,
    /// Share of all other processes.
    pub others_part: f64,
    /// Whether the server is on this machine and could not be told from other processes.
    pub others_include_server: bool,
    /// Share that the hypervisor took while a task wanted to run.
    pub stolen_part: f64,
    /// Part of the time in which at least one task was ready to run and had no CPU; `None` where
    /// the kernel does not tell.
    pub pressure_part: Option<f64>,
}

impl MachineUse {
    fn is_stolen(&self, part_max: f64) -> bool {
        self.stolen_part > part_max
    }

    fn is_crowded(&self) -> bool {
        let waits = self.pressure_part.is_none_or(|part| part > PRESSURE_PART_MAX);
        self.others_part > OTHERS_PART_MAX && !self.others_include_server && waits
    }

    /// Whether a second was disturbed.
    pub fn is_disturbed_second(&self) -> bool {
        self.is_stolen(STOLEN_PART_OF_SECOND_MAX) || self.is_crowded()
    }

    fn took(&self) -> String {
        let whole_percent = |part: f64| (part * 100.0).round() as u64;
        match (whole_percent(self.stolen_part), whole_percent(self.others_part)) {
            (stolen, 0) => format!("the hypervisor took {stolen} % of the CPU time"),
            (0, others) => format!("other processes took {others} % of the CPU time"),
            (stolen, others) => {
                format!(
                    "the hypervisor took {stolen} % of the CPU time, other processes {others} %"
                )
            }
        }
    }
}

/// Why the figures of a phase are not the server's, in words that follow "disturbed:"; `None` when
/// the machine was calm, or does not tell.
pub fn disturbance(outcome: &Outcome) -> Option<String> {
    let total = outcome.machine?;
    if total.is_stolen(STOLEN_PART_MAX) || total.is_crowded() {
        return Some(total.took());
    }
    let (disturbed, part) = disturbed_seconds(outcome)?;
    (part > DISTURBED_TIME_PART_MAX).then_some(disturbed)
}

/// As [`disturbance`], but one disturbed second is enough: what failed may have failed for it.
pub fn disturbance_of_any_second(outcome: &Outcome) -> Option<String> {
    disturbance(outcome).or_else(|| Some(disturbed_seconds(outcome)?.0))
}

/// Seconds that were disturbed, in words, and their part of the time; `None` when none was.
fn disturbed_seconds(outcome: &Outcome) -> Option<(String, f64)> {
    let all = outcome.seconds.iter().filter_map(|second| second.machine);
    let time_ns: u64 = all.clone().map(|second| second.time_ns).sum();
    let disturbed: Vec<MachineUse> = all.filter(MachineUse::is_disturbed_second).collect();
    let worst = disturbed.iter().max_by(|a, b| {
        let taken = |second: &MachineUse| second.stolen_part + second.others_part;
        taken(a).total_cmp(&taken(b))
    })?;
    let disturbed_ns: u64 = disturbed.iter().map(|second| second.time_ns).sum();
    let text = format!(
        "in {} of {} seconds; in the worst {}",
        disturbed.len(),
        outcome.seconds.len(),
        worst.took()
    );
    Some((text, disturbed_ns as f64 / time_ns as f64))
}

/// Looks at the machine.
#[derive(Debug)]
pub struct Machine {
    proc: ProcFs,
    server: Server,
}

/// Where the server is.
#[derive(Debug, PartialEq, Eq)]
enum Server {
    /// On another machine, or in this process.
    Elsewhere,
    /// On this machine, in these processes.
    Processes(Vec<String>),
    /// On this machine.
    Hidden,
}

/// Sums of the kernel at one moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample {
    at_ns: u64,
    cpu: CpuTimes,
    own_ns: u64,
    server_ns: Option<u64>,
    pressure_ns: Option<u64>,
}

impl Machine {
    /// Finds out which processes are the server that `targets` lead to.
    pub fn new(proc: ProcFs, targets: &[Target]) -> Machine {
        let server = server(&proc, targets);
        Machine { proc, server }
    }

    /// How it is at `now_ns`; `None` where the system does not tell.
    pub(crate) fn sample(&self, now_ns: u64) -> Option<Sample> {
        let server_ns = match &self.server {
            // One that has ended uses nothing more.
            Server::Processes(pids) => {
                Some(pids.iter().filter_map(|pid| self.proc.process_cpu_ns(pid)).sum())
            }
            Server::Elsewhere | Server::Hidden => None,
        };
        Some(Sample {
            at_ns: now_ns,
            cpu: self.proc.cpu_times()?,
            own_ns: self.proc.process_cpu_ns("self")?,
            server_ns,
            pressure_ns: self.proc.cpu_pressure_ns(),
        })
    }

    /// What happened between two samples; `None` when that is too little time to say.
    pub(crate) fn between(&self, before: &Sample, after: &Sample) -> Option<MachineUse> {
        let time_ns = after.at_ns.saturating_sub(before.at_ns);
        let all_ns = after.cpu.all_ns.saturating_sub(before.cpu.all_ns);
        if time_ns < TIME_MIN_NS || all_ns == 0 {
            return None;
        }
        let cpus_ns = time_ns as f64 * f64::from(after.cpu.cpu_count.max(1));
        let part =
            |before: u64, after: u64| (after.saturating_sub(before) as f64 / cpus_ns).min(1.0);
        let server_part =
            before.server_ns.zip(after.server_ns).map(|(before, after)| part(before, after));
        let generator_part = part(before.own_ns, after.own_ns);
        let tasks_part = part(before.cpu.tasks_ns, after.cpu.tasks_ns);
        let others_part = (tasks_part - generator_part - server_part.unwrap_or(0.0)).max(0.0);
        let pressure = before.pressure_ns.zip(after.pressure_ns);
        Some(MachineUse {
            time_ns,
            cpu_count: after.cpu.cpu_count,
            generator_part,
            server_part,
            others_part,
            others_include_server: self.server == Server::Hidden,
            stolen_part: part(before.cpu.stolen_ns, after.cpu.stolen_ns),
            pressure_part: pressure.map(|(before, after)| {
                (after.saturating_sub(before) as f64 / time_ns as f64).min(1.0)
            }),
        })
    }
}

/// The machine over a phase.
pub(crate) struct Watch<'a> {
    machine: &'a Machine,
    first: Option<Sample>,
    /// Where the lap begins.
    lap: Option<Sample>,
    last: Option<Sample>,
}

impl<'a> Watch<'a> {
    pub(crate) fn new(machine: &'a Machine) -> Watch<'a> {
        Watch { machine, first: None, lap: None, last: None }
    }

    /// The measured time begins.
    pub(crate) fn begin(&mut self, now_ns: u64) {
        self.first = self.machine.sample(now_ns);
        self.lap = self.first;
        self.last = self.first;
    }

    /// Use of the CPUs since the start or the last lap; `None`, and no new lap, when that is too
    /// little time to say.
    pub(crate) fn lap(&mut self, now_ns: u64) -> Option<MachineUse> {
        let now = self.machine.sample(now_ns)?;
        let since = self.machine.between(self.lap.as_ref()?, &now);
        if since.is_some() {
            self.lap = Some(now);
        }
        self.last = Some(now);
        since
    }

    /// Use of the CPUs from the start to the last sample.
    pub(crate) fn whole(&self) -> Option<MachineUse> {
        self.machine.between(self.first.as_ref()?, self.last.as_ref()?)
    }
}

fn server(proc: &ProcFs, targets: &[Target]) -> Server {
    let own_pid = proc.own_pid();
    let mut pids = Vec::new();
    for address in targets.iter().filter_map(|target| target.addresses.first()) {
        let found = match address {
            Address::Tcp(address) => {
                if !address.ip().is_loopback() && !proc.is_own_address(address.ip()) {
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
